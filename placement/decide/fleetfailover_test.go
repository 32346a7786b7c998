package decide

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestALostClusterIsReplacedInAFleet(t *testing.T) {
	t.Parallel()
	one, two := int32(1), int32(2)
	failover := func(seconds int32) func(*hubv1.Placement) {
		return func(p *hubv1.Placement) { p.Spec.Failover.EvictAfterSeconds = &seconds }
	}
	tests := map[string]struct {
		policy  *hubv1.Placement
		binding *hubv1.ResourceBinding
		without []string
		want    string
		reason  string
	}{
		"without failover it keeps what it has": {
			policy("web", spreading(hubv1.SpreadPolicy{NumberOfClusters: &one})), bound(present("eu")), []string{"eu"}, "eu", hubv1.ReasonScheduled,
		},
		"with it another cluster takes its place, and its copy waits for it": {
			policy("web", spreading(hubv1.SpreadPolicy{NumberOfClusters: &one}), failover(604800)), bound(present("eu")), []string{"eu"}, "eu us", hubv1.ReasonScheduled,
		},
		"where no other can it keeps what it has": {
			policy("web", named("eu"), spreading(hubv1.SpreadPolicy{NumberOfClusters: &one}), failover(0)), bound(present("eu")), []string{"eu"}, "eu", hubv1.ReasonNoReplacement,
		},
		"if most are away nothing moves": {
			policy("web", spreading(hubv1.SpreadPolicy{NumberOfClusters: &one}), failover(0)), bound(present("eu")), []string{"eu", "us"}, "eu", hubv1.ReasonTooManyAway,
		},
		"its replicas go to the others": {
			policy("web", dividing(hubv1.DivideByWeight), spreading(hubv1.SpreadPolicy{NumberOfClusters: &two}), failover(300)),
			divided(share("eu", 3), share("sg", 3)), []string{"eu"}, "eu=3 sg=3 us=3", hubv1.ReasonScheduled,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := template("a")
			if tc.binding.Spec.Division != nil {
				if err := unstructured.SetNestedField(o.Object, int64(6), "spec", "size"); err != nil {
					t.Fatal(err)
				}
			}
			f := Fleet{Clusters: three(), Placements: only(tc.policy), Objects: []FleetObject{{Object: o, Binding: tc.binding}}, Now: now}
			s := settled(t, f.Without(tc.without...))
			if diff := cmp.Diff(tc.want, shares(s.Outcomes[0].Binding.BindingSpec())); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := s.Outcomes[0]; got.Scheduled.Reason != tc.reason || got.Restless {
				t.Errorf("it says %v, restless %v", got.Scheduled, got.Restless)
			}
			for _, e := range s.Outcomes[0].Binding.BindingSpec().Clusters {
				if evicts := tc.want != "eu" && e.Name == "eu"; evicts != (e.State == hubv1.TargetEvicting) {
					t.Errorf("%s is %s", e.Name, e.State)
				}
			}
			if got := settled(t, f.From(s)).Outcomes[0]; slices.ContainsFunc(got.Binding.BindingSpec().Clusters, func(e hubv1.BindingTarget) bool { return e.State != hubv1.TargetPresent }) {
				t.Errorf("after it is back: %v", got.Binding.BindingSpec().Clusters)
			}
		})
	}
}
