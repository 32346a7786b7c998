package views

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hanse-dev/hanse/view/wire"
)

func TestAProofIsAsOldAsItsRequest(t *testing.T) {
	proof, err := NewProof()
	if err != nil {
		t.Fatal(err)
	}
	made := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	proof.Request.Name, proof.Request.UID, proof.Request.CreationTimestamp = "hansectl-x", "u", metav1.NewTime(made)
	proof.Request.Spec.Username = "jane"
	token, err := proof.Token(wire.PathIn("eu", wire.Copy, "shop"), []byte("{}"), made)
	if err != nil {
		t.Fatal(err)
	}
	c, payload, signature, err := readProof(token)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		now  time.Time
		says string // part of the expected error
	}{
		"it is new":                                  {made, ""},
		"the clock of the hub is ahead":              {made.Add(proofAge), ""},
		"it is old":                                  {made.Add(proofAge + time.Second), "from the hub's clock"},
		"the hub's clock is far behind":              {made.Add(-proofAge - time.Second), "from the hub's clock"},
		"the clock of the hub is a little behind it": {made.Add(-time.Minute), ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := c.check(proof.Request, payload, signature, tc.now)
			if tc.says == "" && err != nil || tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAProofIsForOneRequestAndShortTime(t *testing.T) {
	signedAt := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	of := wire.PathIn("eu", wire.Copy, "shop")
	c := claim{Name: "hansectl-x", UID: "u", Path: of, Body: digest([]byte("{}")), Time: signedAt}
	old := c
	old.Path, old.Body = "", ""
	tests := map[string]struct {
		claim claim
		path  string
		now   time.Time
		says  string // part of the expected error
	}{
		"a request that was just signed":                    {c, of, signedAt, ""},
		"a request at the end of the time":                  {c, of, signedAt.Add(proofWindow), ""},
		"a request that is sent again later":                {c, of, signedAt.Add(proofWindow + time.Second), "the request was signed at 2026-03-01T12:00:00Z, and the clock of the hub says 2026-03-01T12:02:01Z"},
		"a request of a user whose clock is ahead":          {c, of, signedAt.Add(-proofWindow - time.Second), "set the clock of your machine"},
		"the same request about another cluster":            {c, wire.PathIn("us", wire.Copy, "shop"), signedAt, "is for another request"},
		"the same request about another namespace":          {c, wire.PathIn("eu", wire.Copy, "bank"), signedAt, "is for another request"},
		"another request about the same cluster":            {c, wire.PathIn("eu", wire.Prune, "shop"), signedAt, "is for another request"},
		"a proof of an older hansectl, for any request":     {old, of, signedAt, "install the hansectl of the hub's version"},
		"a request without a namespace, signed for the one": {c, wire.PathIn("eu", wire.Copy, ""), signedAt, "is for another request"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := tc.claim.checkRequest(tc.path, tc.now)
			if tc.says == "" && err != nil || tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("got %v", err)
			}
		})
	}
}
