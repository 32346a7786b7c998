package membership

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/credential"
)

func TestWhetherCredentialsAreRenewed(t *testing.T) {
	issued := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	day := func(n int) time.Time { return issued.AddDate(0, 0, n) }
	token := credential.Credential{ID: "a", Issued: issued, Expires: day(30), Secret: "hanse-token-a", UID: "uid", Own: true}
	certificate := credential.Credential{ID: "a", Issued: issued, Expires: day(30)}
	lasting := credential.Credential{ID: "a", Secret: credential.LastingSecret, Own: true}
	tests := map[string]struct {
		in           renewal
		renew, soon  bool
		cannot       string // part of the text that says why renewal is impossible
		waitsAtLeast time.Duration
	}{
		"a fresh token is left as it is":                        {in: renewal{inUse: token, stored: token, ours: true, now: day(1)}, waitsAtLeast: maxCheckInterval},
		"a token is renewed after two thirds of its life":       {in: renewal{inUse: token, stored: token, ours: true, now: day(20)}, renew: true, soon: true},
		"a token is renewed before, if somebody asks":           {in: renewal{inUse: token, stored: token, ours: true, now: day(1), asked: true}, renew: true},
		"one that does not expire is left as it is":             {in: renewal{inUse: lasting, stored: lasting, ours: true, now: day(999)}},
		"one that does not expire is replaced, if asked":        {in: renewal{inUse: lasting, stored: lasting, ours: true, now: day(1), asked: true}, renew: true},
		"a new token that is being tried is waited for":         {in: renewal{inUse: token, stored: credential.Credential{ID: "b"}, ours: true, now: day(20)}, soon: true},
		"a new token that is refused is told":                   {in: renewal{inUse: token, stored: credential.Credential{ID: "b"}, ours: true, now: day(20), refused: true}, soon: true, cannot: "the cluster refuses them"},
		"a client certificate is not renewed, and told":         {in: renewal{inUse: certificate, stored: certificate, ours: true, now: day(21)}, soon: true, cannot: "tokens of ServiceAccount"},
		"a client certificate with time left is left":           {in: renewal{inUse: certificate, stored: certificate, ours: true, now: day(18)}, waitsAtLeast: time.Second},
		"a Secret of somebody else is not written, and told":    {in: renewal{inUse: token, stored: token, now: day(21)}, soon: true, cannot: "not created by hansectl"},
		"one that has expired is renewed once the link is back": {in: renewal{inUse: token, stored: token, ours: true, now: day(31)}, renew: true, soon: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.in.cluster = "eu-fra-1"
			got := tc.in.decide()
			if got.renew != tc.renew || got.soon != tc.soon || (got.cannot == "") != (tc.cannot == "") || !strings.Contains(got.cannot, tc.cannot) || got.wait < tc.waitsAtLeast {
				t.Errorf("got %+v", got)
			}
			if got.wait > maxCheckInterval {
				t.Errorf("it rests for %s", got.wait)
			}
		})
	}
}

func TestTheEventOfAFailedRenewalHasNoTextOfTheMember(t *testing.T) {
	c := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "eu-fra-1"}}
	inUse := credential.Credential{ID: "a", Expires: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)}
	setExpireSoon(c, inUse, due{renew: true, soon: true}, errors.New("the token is canary"))
	got := meta.FindStatusCondition(c.Status.Conditions, hubv1.ConditionCredentialsExpireSoon)
	if got == nil || got.Status != metav1.ConditionTrue || got.Reason != hubv1.ReasonRenewalFailed || strings.Contains(got.Message, "canary") ||
		!strings.Contains(got.Message, "2026-12-01T00:00:00Z") || !strings.Contains(got.Message, "hansectl rotate eu-fra-1") {
		t.Errorf("the condition is %+v", got)
	}
}

func TestWhichTokenWasReplaced(t *testing.T) {
	inUse := credential.Credential{ID: "new", Secret: "hanse-token-b", UID: "uid-b", Own: true}
	secret := func(name, uid string) *hubv1.CredentialsStatus {
		return &hubv1.CredentialsStatus{ID: "old", TokenSecret: &hubv1.TokenSecret{Name: name, UID: uid}}
	}
	tests := map[string]struct {
		before *hubv1.CredentialsStatus
		inUse  credential.Credential
		want   string
	}{
		"the one before is":                                 {secret("hanse-token-a", "uid-a"), inUse, "hanse-token-a"},
		"so is one that does not expire":                    {secret("hanse-token", ""), inUse, "hanse-token"},
		"one that ends with the same Secret is not":         {secret("hanse-token-b", "uid-b"), inUse, ""},
		"nothing was before":                                {nil, inUse, ""},
		"one without a Secret cannot be revoked":            {&hubv1.CredentialsStatus{ID: "old"}, inUse, ""},
		"a certificate in the place of a token ends none":   {secret("hanse-token-a", "uid-a"), credential.Credential{ID: "new"}, ""},
		"the same credentials after a restart replace none": {&hubv1.CredentialsStatus{ID: "new", TokenSecret: &hubv1.TokenSecret{Name: "hanse-token-b", UID: "uid-b"}}, inUse, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if s := replaced(tc.before, tc.inUse); s != nil {
				got = s.Name
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
