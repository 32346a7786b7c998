package preview

import (
	"cmp"
	"fmt"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

// waves returns the waves in which the clusters of an object get the change. It leaves out waves without a changed
// copy. It returns nil if all clusters get the change at once. Waves apply if the object's placement has a rollout
// before and after the change, and the object or an override policy changes. Changed data of a cluster is never rolled
// out in waves. An object of a bundle changes with the bundle, see BundleChange.
func (m *maker) waves(p pair, fields map[string][]Field) []Wave {
	if p.Old == nil || hubv1.BundleOf(p.New.Object) != nil || rolloutOf(m.before, p.Before) == nil || p.Old.Object == p.New.Object && len(m.edit.overrides) == 0 {
		return nil
	}
	policy := rolloutOf(m.after, p.After)
	if policy == nil {
		return nil
	}
	changing := map[string]bool{}
	for name := range fields {
		changing[name] = true
	}
	return m.wavesOf(policy, changing)
}

// noteTemplate adds a note to the plan if a rollback or an undo has given an object's clusters an older template (state
// of the hub object). The clusters then get the changed policies with the older template, but the plan shows the newest
// template.
func (m *maker) noteTemplate(p pair) {
	if p.Old == nil || p.Old.Object != p.New.Object || p.Before.Binding == nil {
		return
	}
	spec := p.Before.Binding.BindingSpec()
	if spec.Rollout == nil || rolloutOf(m.after, p.After) == nil {
		return
	}
	desired, newest := spec.Revision(spec.Rollout.Revision), spec.Revision(spec.Rollout.Newest)
	if desired == nil || newest == nil || desired.Template == newest.Template {
		return
	}
	m.plan.Notes = append(m.plan.Notes, fmt.Sprintf(
		"%s was rolled back or undone: its clusters get the changed policies with the template of revision %d; the plan shows them with the newest template",
		p.Object, cmp.Or(desired.TemplateOf, desired.Number)))
}

// rolloutOf returns the rollout of the placement that an object follows. It is nil if the placement has no rollout.
func rolloutOf(f decide.Fleet, o decide.Outcome) *hubv1.RolloutPolicy {
	if o.Binding == nil {
		return nil
	}
	placement := decide.Facts{Placements: f.Placements}.Placement(o.Binding.BindingSpec().PlacementRef)
	if placement == nil {
		return nil
	}
	return placement.PlacementSpec().Rollout
}
