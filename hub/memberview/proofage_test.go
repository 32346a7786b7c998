package memberview

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAProofIsAsOldAsItsRequest(t *testing.T) {
	proof, err := NewProof()
	if err != nil {
		t.Fatal(err)
	}
	made := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	proof.Request.Name, proof.Request.UID, proof.Request.CreationTimestamp = "hansectl-x", "u", metav1.NewTime(made)
	proof.Request.Spec.Username = "jane"
	token, err := proof.Token()
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
		"it is old":                                  {made.Add(proofAge + time.Second), "was not made within"},
		"the hub's clock is far behind":              {made.Add(-proofAge - time.Second), "was not made within"},
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
