package preview

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide/decidetest"
)

// A bundle changes one object, adds one and drops one.
func TestThePlanOfABundleShowsOneChangeWaveByWave(t *testing.T) {
	t.Parallel()
	waves := []hubv1.RolloutWave{{Name: "first", Clusters: &hubv1.RuleClusters{Names: []string{"eu"}}}, {Name: "rest", Approval: hubv1.ApprovalManual}}
	for name, staged := range map[string]bool{"with a rollout": true, "without a rollout": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := fleet(3, decidetest.Policy("web", decidetest.Named("eu", "sg"), func(p *hubv1.Placement) {
				p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: hubv1.GroupVersion.Group, Kind: hubv1.BundleKind}}
				if staged {
					p.Spec.Rollout = &hubv1.RolloutPolicy{Waves: waves}
				}
			}))
			of := hubv1.ObjectBundle{BundleReference: hubv1.BundleReference{Kind: hubv1.BundleKind, Namespace: "shop", Name: "all"}}
			for i := range before.Objects {
				before.Objects[i].Object.SetAnnotations(map[string]string{hubv1.BundleAnnotation: of.Annotation()})
			}
			after := before
			after.Objects = slices.Clone(before.Objects)
			after.Objects[0].Object = before.Objects[0].Object.DeepCopy()
			after.Objects[0].Object.Object["spec"] = map[string]any{"size": int64(4)}
			after.Objects[2].Removed = true
			added := object("added")
			added.Object.SetAnnotations(map[string]string{hubv1.BundleAnnotation: of.Annotation()})
			after.Objects = append(after.Objects, added)

			id := func(name string) []Object {
				o := objectOf(before.Objects[0].Identity())
				o.Name = name
				return []Object{o}
			}
			want := []BundleChange{{
				Bundle: "Bundle shop/all", Added: id("added"), Changed: id("web-0"), Removed: id("web-2"),
				Waves: []Wave{{Name: "first", Clusters: []string{"eu"}}, {Name: "rest", Clusters: []string{"sg"}, Approval: true}},
			}}
			if !staged {
				want = nil
			}
			p := planned(t, before, after, Options{})
			if diff := cmp.Diff(want, p.Bundles); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(p.Changes) != 1 || p.Changes[0].Waves != nil {
				t.Errorf("the changes are %+v", p.Changes)
			}
			if again := planned(t, before, before, Options{}); again.Bundles != nil {
				t.Errorf("without a change: %+v", again.Bundles)
			}
		})
	}
}
