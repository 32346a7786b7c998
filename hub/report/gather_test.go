package report

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

func TestTextsThatMayQuoteASecretAreWithheld(t *testing.T) {
	const canary = "hunter2"
	tests := map[string]struct {
		kind, reason string
		kept         bool
	}{
		"a refused Secret":            {"Secret", hubv1.ReasonManifestRefused, false},
		"a Secret denied by a policy": {"Secret", hubv1.ReasonAdmissionDenied, false},
		"a missing right":             {"Secret", hubv1.ReasonForbidden, true},
		"policies that disagree":      {"Secret", hubv1.ReasonOverrideConflict, true},
		"a refused ConfigMap":         {"ConfigMap", hubv1.ReasonManifestRefused, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := &run{id: hubv1.ObjectIdentity{Kind: tc.kind, Namespace: "n", Name: "s"}}
			o := r.withoutSecrets(member.Outcome{Applied: metav1.ConditionFalse, Reason: tc.reason, Message: "data: invalid value " + canary})
			if got := strings.Contains(o.Message, canary); got != tc.kept {
				t.Errorf("message %q", o.Message)
			}
		})
	}
}
