package decide

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestAReplayDecidesAsTheHubDoes(t *testing.T) {
	t.Parallel()
	two := int32(2)
	tests := map[string]struct {
		placements []hubv1.PlacementObject
		asked      bool // whether the placement's filters check the clusters
	}{
		"every cluster":         {only(policy("web")), true},
		"some, of two":          {only(policy("web", named("eu", "us")), policy("other")), true},
		"a spread":              {only(policy("web", spreading(hubv1.SpreadPolicy{NumberOfClusters: &two}))), true},
		"suspended":             {only(policy("web", func(p *hubv1.Placement) { p.Spec.Suspend.Scheduling = true })), false},
		"the placement is gone": {nil, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			binding := bound(present("eu"), present("sg"))
			clusters := []*hubv1.MemberCluster{cluster("eu"), cluster("sg", unreachable), cluster("us")}
			f := given{binding: binding, uid: "a", placements: tc.placements, clusters: clusters}.input()
			want := Decide(f)
			got := Replay(f)
			if diff := cmp.Diff(*want.Spec, got.Spec); diff != "" {
				t.Errorf("the binding (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want.Status.Scheduled, got.Scheduled); diff != "" {
				t.Errorf("what is said (-want +got):\n%s", diff)
			}
			if asked := got.Input != nil && len(got.Trace.Clusters) == len(clusters); asked != tc.asked {
				t.Errorf("clusters were asked: %v, want %v", asked, tc.asked)
			}
			if tc.placements != nil && got.Choice.Winner != tc.placements[0] {
				t.Errorf("%v is followed", got.Choice.Winner)
			}
		})
	}
}
