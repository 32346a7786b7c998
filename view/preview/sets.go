package preview

import (
	"cmp"
	"maps"
	"slices"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

// BundleChange is the change of a bundle that is rolled out as a whole.
type BundleChange struct {
	// Bundle is the bundle, such as "FederatedOperator gears".
	Bundle string `json:"bundle"`
	// Added, Changed and Removed are the objects that a cluster gets, that change there, and that it loses in its turn.
	Added   []Object `json:"added,omitempty"`
	Changed []Object `json:"changed,omitempty"`
	Removed []Object `json:"removed,omitempty"`
	// Waves are the waves in which the clusters change, in order.
	Waves []Wave `json:"waves,omitempty"`
}

// setChange collects the change of one bundle.
type setChange struct {
	BundleChange
	policy   *hubv1.RolloutPolicy
	before   bool // an object of the bundle had a rollout before the change
	clusters map[string]bool
}

// setOf returns the change of the bundle that contains an object. It returns nil if the object does not change with a
// bundle: its placement has no rollout after the change.
func (m *maker) setOf(p pair) *setChange {
	of := hubv1.BundleOf(p.New.Object)
	if of == nil {
		return nil
	}
	policy := rolloutOf(m.after, p.After)
	if p.New.Removed {
		policy = rolloutOf(m.before, p.Before)
	}
	if policy == nil {
		return nil
	}
	s := m.sets[of.BundleReference]
	if s == nil {
		s = &setChange{BundleChange: BundleChange{Bundle: of.String()}, policy: policy, clusters: map[string]bool{}}
		m.sets[of.BundleReference] = s
	}
	return s
}

// inSet adds an object to the change of its bundle. changes is true if copies of the object change.
func (m *maker) inSet(p pair, changes bool) {
	s := m.setOf(p)
	if s == nil {
		return
	}
	s.before = s.before || p.Old != nil && rolloutOf(m.before, p.Before) != nil
	for name := range p.Held {
		s.clusters[name] = true
	}
	for _, name := range p.Lost {
		s.clusters[name] = true
	}
	switch {
	case p.New.Removed:
		s.Removed = append(s.Removed, p.Object)
	case p.Old == nil:
		s.Added = append(s.Added, p.Object)
	case changes && (p.Old.Object != p.New.Object || len(m.edit.overrides) > 0):
		s.Changed = append(s.Changed, p.Object)
	}
}

// bundles adds the changes of bundles to the plan. A bundle whose objects have no rollout yet goes to all clusters at
// once.
func (m *maker) bundles() {
	for _, of := range slices.SortedFunc(maps.Keys(m.sets), func(a, b hubv1.BundleReference) int { return cmp.Compare(a.String(), b.String()) }) {
		s := m.sets[of]
		if s.before && len(s.Added)+len(s.Changed)+len(s.Removed) > 0 {
			s.Waves = m.wavesOf(s.policy, s.clusters)
			m.plan.Bundles = append(m.plan.Bundles, s.BundleChange)
		}
	}
}

// wavesOf returns the waves of some clusters, in order. It leaves out waves without a cluster.
func (m *maker) wavesOf(policy *hubv1.RolloutPolicy, clusters map[string]bool) []Wave {
	all := make([]Wave, len(policy.Waves))
	for i, w := range policy.Waves {
		all[i] = Wave{Name: w.Name, Approval: w.Approval == hubv1.ApprovalManual}
	}
	for _, c := range m.after.Clusters {
		if clusters[c.Name] {
			w := &all[decide.WaveOf(policy, c)]
			w.Clusters = append(w.Clusters, c.Name)
		}
	}
	return slices.DeleteFunc(all, func(w Wave) bool { return len(w.Clusters) == 0 })
}
