package view

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestHealthyIsDatedIfTheDecisionIsNewer(t *testing.T) {
	for name, tc := range map[string]struct {
		observed int64
		want     string
	}{
		"of the last decision":           {3, "HEALTHY 1/2   Healthy=True (HealthyEverywhere)\n"},
		"of an earlier decision":         {2, "HEALTHY 1/2   Healthy=True (HealthyEverywhere, before the last decision)\n"},
		"of a decision that is not told": {0, "HEALTHY 1/2   Healthy=True (HealthyEverywhere)\n"},
	} {
		b := &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
		b.Spec.Clusters = []hubv1.BindingTarget{{Name: "eu-fra-1", State: hubv1.TargetPresent}, {Name: "eu-fra-2", State: hubv1.TargetPresent}}
		b.Status.Clusters = []hubv1.ClusterRow{{Name: "eu-fra-1", Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy}}
		b.Status.Summary = hubv1.BindingSummary{Desired: 1, Applied: 1, Healthy: 1}
		b.Status.Conditions = []metav1.Condition{{
			Type: hubv1.ConditionHealthy, Status: metav1.ConditionTrue, Reason: hubv1.ReasonHealthyEverywhere, ObservedGeneration: tc.observed,
		}}
		var text strings.Builder
		Of(StatusInput{ID: hubv1.ObjectIdentity{Kind: "Widget", Name: "web"}, Binding: b, Now: time.Now()}).Write(&text, time.Now())
		if !strings.Contains(text.String(), tc.want) {
			t.Errorf("%s: want %q in\n%s", name, tc.want, text.String())
		}
	}
}
