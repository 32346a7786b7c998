package schedule

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestAMoveIsAnotherPartOfAClusterInTheDecision(t *testing.T) {
	t.Parallel()
	spec := func(targets ...hubv1.BindingTarget) *hubv1.BindingSpec { return &hubv1.BindingSpec{Clusters: targets} }
	target := func(name string, state hubv1.TargetState) hubv1.BindingTarget {
		return hubv1.BindingTarget{Name: name, State: state}
	}
	const present, evicting, absent = hubv1.TargetPresent, hubv1.TargetEvicting, hubv1.TargetAbsent
	tests := map[string]struct {
		before, after *hubv1.BindingSpec
		want          moves
	}{
		"nothing changes":                       {before: spec(target("eu", present)), after: spec(target("eu", present))},
		"a cluster is chosen":                   {before: spec(), after: spec(target("eu", present)), want: moves{to: []string{"eu"}}},
		"one is left for another":               {before: spec(target("eu", present)), after: spec(target("eu", absent), target("us", present)), want: moves{to: []string{"us"}, from: []string{"eu"}}},
		"others take its place":                 {before: spec(target("eu", present)), after: spec(target("eu", evicting), target("us", present)), want: moves{to: []string{"us"}, evicting: []string{"eu"}}},
		"it takes its place again":              {before: spec(target("eu", evicting)), after: spec(target("eu", present)), want: moves{to: []string{"eu"}}},
		"a copy is withdrawn and has no target": {before: spec(target("eu", absent)), after: spec()},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := movesOf(tt.before, tt.after)
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(moves{})); diff != "" {
				t.Errorf("moves (-want +got):\n%s", diff)
			}
			if got.none() != cmp.Equal(got, moves{}, cmp.AllowUnexported(moves{})) {
				t.Errorf("none() is %t of %+v", got.none(), got)
			}
		})
	}
}
