//go:build !race

package health

import (
	"testing"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/operators"
)

// Assess must give each sample the health that an experienced user of the operator would give. It uses only the sample
// and the definition of its kind.
func TestSamplesOfOperators(t *testing.T) {
	for _, s := range operators.Samples(t) {
		t.Run(s.Operator+"/"+s.Name, func(t *testing.T) {
			gvk := s.Object.GroupVersionKind()
			got := Assess(s.Object, ReadConventions(operators.Definition(t, gvk.GroupKind()), gvk.Version))
			if got.Health != s.Verdict {
				t.Errorf("%s (%s: %s), want %s: %s", got.Health, got.Reason, got.Message, s.Verdict, s.Why)
			}
			if (got.Health == hubv1.HealthHealthy) != (got.Reason == "" && got.Message == "") && got.Reason != ReasonGenerationNotObserved {
				t.Errorf("reason %q and message %q of an object that is %s", got.Reason, got.Message, got.Health)
			}
		})
	}
}
