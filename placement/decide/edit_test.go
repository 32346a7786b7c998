package decide

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestTheRemovalsOfAnEdit(t *testing.T) {
	t.Parallel()
	one := int32(1)
	both := policy("web", named("eu", "sg"))
	adopted := bound(present("eu"), present("sg"))
	adopted.Status.Clusters = append(adopted.Status.Clusters, hubv1.ClusterRow{Name: "eu", Adopted: true})
	held := bound(hubv1.BindingTarget{Name: "eu", State: hubv1.TargetPresent, Removal: &hubv1.HeldRemoval{Reason: hubv1.ReasonNotSelected}}, present("sg"))
	tests := map[string]struct {
		binding       *hubv1.ResourceBinding
		before, after Facts
		want          string // "cluster reason", and "last" for a last copy
	}{
		"a narrower placement removes a copy": {
			bound(present("eu"), present("sg")), Facts{Placements: only(both)}, Facts{Placements: only(policy("web", named("sg")))}, "[eu NotSelected]",
		},
		"a wider placement removes none": {
			bound(present("eu")), Facts{Placements: only(policy("web", named("eu")))}, Facts{Placements: only(both)}, "[]",
		},
		"a name that no cluster has removes the last copy": {
			bound(present("eu")), Facts{Placements: only(policy("web", named("eu")))}, Facts{Placements: only(policy("web", named("typo")))}, "[eu NotSelected last]",
		},
		"a smaller number of clusters removes a copy": {
			bound(present("eu"), present("sg")), Facts{Placements: only(both)},
			Facts{Placements: only(policy("web", named("eu", "sg"), spreading(hubv1.SpreadPolicy{NumberOfClusters: &one})))}, "[eu NotChosen]",
		},
		"a placement that no longer selects the object removes nothing": {
			bound(present("eu")), Facts{Placements: only(both)}, Facts{Placements: only(policy("web", named("sg"), labelled("other")))}, "[]",
		},
		"a copy that goes without the edit is not counted": {
			held, Facts{Placements: only(policy("web", named("sg")))}, Facts{Placements: only(policy("web", named("sg", "us")))}, "[]",
		},
		"an adopted copy is orphaned, not removed": {
			adopted, Facts{Placements: only(both)}, Facts{Placements: only(policy("web", named("sg")))}, "[]",
		},
		"an override policy that excludes a cluster removes a copy": {
			bound(present("eu"), present("sg")), Facts{Placements: only(both)},
			Facts{Placements: only(both), Overrides: these(excluding(naming("eu")))}, "[eu ExcludedByOverride]",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			input := func(f Facts) Input {
				f.Clusters, f.NamespaceRead = three(), true
				return Input{Object: Object{ID: object, Template: template("a")}, Binding: tc.binding, Facts: f, Now: now}
			}
			got := []string{}
			for _, r := range RemovalsOfEdit(input(tc.before), input(tc.after)) {
				text := r.Cluster + " " + r.Reason
				if r.Last {
					text += " last"
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tc.want, fmt.Sprint(got)); diff != "" {
				t.Errorf("removals (-want +got):\n%s", diff)
			}
		})
	}
}
