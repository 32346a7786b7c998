package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestRowsAreCountedByState(t *testing.T) {
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	for name, test := range map[string]struct {
		row  hubv1.ClusterRow
		want string
	}{
		"a copy that is newer than the hub counts apart, whatever its health": {hubv1.ClusterRow{Applied: no, Health: hubv1.HealthHealthy, Reason: hubv1.ReasonHubIsOlder}, "HubIsOlder"},
		"a removal that is held because the copy is newer than the hub, too":  {hubv1.ClusterRow{Applied: no, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonHubIsOlder}, "HubIsOlder"},
		"a copy that is refused for another reason is not applied":            {hubv1.ClusterRow{Applied: no, Health: hubv1.HealthHealthy, Reason: hubv1.ReasonForbidden}, "NotApplied"},
		"a copy of which it is not known whether it is applied is unknown":    {hubv1.ClusterRow{Applied: unknown, Health: hubv1.HealthHealthy}, "Unknown"},
		"a copy without a health is unknown":                                  {hubv1.ClusterRow{Applied: yes}, "Unknown"},
		"an applied copy counts by its health":                                {hubv1.ClusterRow{Applied: yes, Health: hubv1.HealthDegraded}, "Degraded"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(map[string]int{test.want: 1}, count([]hubv1.ClusterRow{test.row}, []hubv1.BindingTarget{{State: hubv1.TargetPresent}})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheGaugeFollowsCopiesThatAreNewerThanTheHub(t *testing.T) {
	value := func(state string) float64 {
		families, err := metrics.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == "hanse_binding_clusters" && m.GetLabel()[0].GetValue() == state {
					return m.GetGauge().GetValue()
				}
			}
		}
		return 0
	}
	older, healthy := value(hubv1.ReasonHubIsOlder), value(string(hubv1.HealthHealthy))
	present := []hubv1.BindingTarget{{State: hubv1.TargetPresent}}
	held := count([]hubv1.ClusterRow{{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonHubIsOlder}, {Applied: metav1.ConditionFalse, Reason: hubv1.ReasonHubIsOlder}}, present)
	accepted := count([]hubv1.ClusterRow{{Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy}, {Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy}}, present)
	recount(nil, held)
	if got := value(hubv1.ReasonHubIsOlder) - older; got != 2 {
		t.Errorf("%v copies are held, want 2", got)
	}
	recount(held, accepted)
	if gone, now := value(hubv1.ReasonHubIsOlder)-older, value(string(hubv1.HealthHealthy))-healthy; gone != 0 || now != 2 {
		t.Errorf("%v copies are held and %v healthy, want 0 and 2", gone, now)
	}
	recount(accepted, nil)
}
