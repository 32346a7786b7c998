package decide

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/overrides"
	"github.com/hanse-dev/hanse/placement"
	"github.com/hanse-dev/hanse/placement/replicas"
)

// ClusterChange is a change of one MemberCluster. Before is nil for a new cluster, and After for a deleted one.
type ClusterChange struct {
	Before, After *hubv1.MemberCluster
	// CapacityHeld is true if decisions do not use the capacity of After yet (Input.Capacities), so that it divides no
	// replicas in another way.
	CapacityHeld bool
}

// Touch says on which objects a change of one cluster may lead to another decision: to other clusters, replicas or
// revisions, or to another status or reason of the condition Scheduled. A change of labels also touches each object for
// whose placement the reason changes that rejects the cluster. A deleted cluster touches all objects, because it may
// stand among their rejected clusters. Otherwise, the numbers and reasons of rejected clusters are those of the last
// decision.
type Touch struct {
	cluster string
	// state is true if a part of the cluster has changed that matters to every object with an entry for the cluster.
	state bool
	// exists is true if the cluster is new or deleted, and gone if it is deleted.
	exists, gone bool
	// namespaces is true if spec.allowedNamespaces has changed. kinds has the kinds whose served versions have changed.
	namespaces bool
	kinds      sets.Set[schema.GroupKind]
	excluding  []hubv1.OverridePolicyObject // those of which a rule that excludes clusters has another result
	placements map[hubv1.PlacementReference]reach
	waves      bool
}

// reach says which objects of one placement a change concerns.
type reach struct {
	entries bool            // objects with an entry for the cluster
	others  placement.Reach // other objects
	// opening concerns other objects for which only a filter that depends on the object has another result. It is
	// ReachesNone if the cluster is open to no object of the placement, before and after the change.
	opening placement.Reach
}

// NewTouch compares two states of a cluster. placements and policies are all placements and override policies.
func NewTouch(c ClusterChange, placements []hubv1.PlacementObject, policies []hubv1.OverridePolicyObject, memo *Memo) *Touch {
	t := &Touch{
		cluster: cmp.Or(c.After, c.Before).Name, exists: c.Before == nil || c.After == nil, gone: c.After == nil,
		placements: map[hubv1.PlacementReference]reach{},
	}
	before, after := describe(c.Before), describe(c.After)
	if !t.exists {
		t.state = !equality.Semantic.DeepEqual(steady(before), steady(after)) || !equality.Semantic.DeepEqual(c.Before.Spec, c.After.Spec)
		t.namespaces = !equality.Semantic.DeepEqual(c.Before.Spec.AllowedNamespaces, c.After.Spec.AllowedNamespaces)
		t.kinds = servedOtherwise(before, after)
	}
	for _, p := range policies {
		if !t.exists && (excludesOtherwise(p, overrides.ClusterOf(c.Before), overrides.ClusterOf(c.After)) ||
			excludesOtherwise(p, operatorless(c.Before), operatorless(c.After))) {
			t.excluding = append(t.excluding, p)
		}
	}
	for _, p := range placements {
		t.placements[keyOf(ReferenceTo(p))] = t.reachOf(p, c, before, after, memo)
	}
	return t
}

// describe returns the cluster in the form that package placement reads, without the data that NewTouch compares by
// itself. The result is nil for a cluster that does not exist.
func describe(m *hubv1.MemberCluster) *placement.Cluster {
	if m == nil {
		return nil
	}
	c := ClusterOf(m)
	c.Revision = ""
	return &c
}

// steady returns the part of a cluster that matters to every object with an entry for it, whatever its policies read.
func steady(c *placement.Cluster) placement.Cluster {
	return placement.Cluster{Taints: c.Taints, Unschedulable: c.Unschedulable, Ready: c.Ready, Departure: c.Departure}
}

// servedOtherwise returns the kinds whose served versions have changed. Before its first report, a cluster counts as
// serving every kind. Its first report therefore concerns all kinds, which nil means in the result of servedBy.
func servedOtherwise(before, after *placement.Cluster) sets.Set[schema.GroupKind] {
	moved := sets.New[schema.GroupKind]()
	for gk, versions := range after.Served {
		if known, ok := before.Served[gk]; !ok || !slices.Equal(known, versions) {
			moved.Insert(gk)
		}
	}
	for gk := range before.Served {
		if _, ok := after.Served[gk]; !ok {
			moved.Insert(gk)
		}
	}
	if before.ServedInFull != after.ServedInFull {
		moved.Insert(everyKind)
	}
	return moved
}

// everyKind stands for the kinds about which a cluster has reported nothing.
var everyKind = schema.GroupKind{Kind: "*"}

// excludesOtherwise reports whether a rule of the policy that excludes clusters has another result for the cluster.
func excludesOtherwise(p hubv1.OverridePolicyObject, before, after overrides.Cluster) bool {
	rules := p.OverrideSpec().Rules
	for i := range rules {
		if !rules[i].Exclude {
			continue
		}
		was, wasErr := overrides.Selects(&rules[i], before)
		is, isErr := overrides.Selects(&rules[i], after)
		if was != is || (wasErr == nil) != (isErr == nil) {
			return true
		}
	}
	return false
}

func operatorless(m *hubv1.MemberCluster) overrides.Cluster {
	c := overrides.ClusterOf(m)
	c.Operators = nil
	return c
}

// reachOf returns which objects of a placement the change concerns.
func (t *Touch) reachOf(p hubv1.PlacementObject, c ClusterChange, before, after *placement.Cluster, memo *Memo) reach {
	spec := p.PlacementSpec()
	compiled, err := memo.Compile(p)
	if err != nil {
		return reach{} // every object keeps its clusters, and only the state of a cluster with an entry matters
	}
	divides := spec.Replicas.Divides()
	var r reach
	for _, of := range bothWays(before, after) {
		was, is := compiled.StandingOf(of.before), compiled.StandingOf(of.after)
		r.others = max(r.others, compiled.Reaches(was, is, divides))
		if relabelled(before, after) && !was.ExplainedAs(is) {
			r.others = placement.ReachesEvery // a user who changes a label looks at the reasons
		}
		if was.Open || is.Open {
			r.opening = compiled.ReachOfOpening(true, divides)
		}
		if divides && (was.Selected || is.Selected) && dividesOtherwise(spec, before, after, c.CapacityHeld) {
			r.others = placement.ReachesEvery
		}
	}
	wave := spec.Rollout != nil && !t.exists && WaveOf(spec.Rollout, c.Before) != WaveOf(spec.Rollout, c.After)
	t.waves = t.waves || wave
	r.entries = r.others > placement.ReachesNone || wave ||
		spec.Suspend.SuspendsWrites(t.cluster, c.Before) != spec.Suspend.SuspendsWrites(t.cluster, c.After)
	return r
}

type states struct{ before, after *placement.Cluster }

// bothWays returns the states of a cluster as decisions read them: with its operators, and without them for objects of
// operators.
func bothWays(before, after *placement.Cluster) []states {
	out := []states{{before, after}}
	for _, c := range []*placement.Cluster{before, after} {
		if c != nil && c.Operators != nil {
			return append(out, states{bare(before), bare(after)})
		}
	}
	return out
}

func bare(c *placement.Cluster) *placement.Cluster {
	if c == nil {
		return nil
	}
	without := withoutOperators(*c)
	return &without
}

func relabelled(before, after *placement.Cluster) bool {
	return before != nil && after != nil && !maps.Equal(before.Labels, after.Labels)
}

// dividesOtherwise reports whether the division of replicas reads another weight, limit or capacity of the cluster.
func dividesOtherwise(spec *hubv1.PlacementSpec, before, after *placement.Cluster, capacityHeld bool) bool {
	if before == nil || after == nil {
		return false // a cluster that opens or closes reaches every object already
	}
	terms, err := replicas.TermsOf(spec.Replicas.Way())
	if err != nil || terms.Cluster(before.Name, before.Labels) != terms.Cluster(after.Name, after.Labels) {
		return true
	}
	return !capacityHeld && DividesByCapacity(spec) && !equality.Semantic.DeepEqual(before.Allocatable, after.Allocatable)
}

// Waves reports whether the cluster is in another wave of a rollout than before, or whether its state has changed, so
// that rollouts of bundles may continue.
func (t *Touch) Waves() bool { return t.waves || t.state || t.exists }

// Nothing reports whether the change concerns no object at all.
func (t *Touch) Nothing() bool {
	return !t.state && !t.exists && !t.namespaces && len(t.kinds) == 0 && len(t.excluding) == 0 &&
		!slices.ContainsFunc(slices.Collect(maps.Values(t.placements)), func(r reach) bool { return r.entries || r.others > placement.ReachesNone })
}

// Reaches reports whether the decision on the object of a binding may change. placed is Plan.Placed of its last
// decision; it is false if the last decision is not known.
func (t *Touch) Reaches(b hubv1.BindingObject, placed bool) bool {
	spec := b.BindingSpec()
	r := placement.ReachesNone
	on := spec.Target(t.cluster) != nil
	if ref := spec.PlacementRef; ref != nil {
		of, known := t.placements[keyOf(ref)]
		if on && of.entries {
			return true
		}
		if r = of.others; known && t.byObject(b) {
			r = max(r, of.opening)
		}
	}
	switch {
	case t.gone:
		return true
	case on:
		return t.state || t.exists || t.byObject(b)
	case spec.Referenced:
		return len(t.excluding) > 0 && t.excludes(hubv1.ObjectOf(b))
	}
	return r == placement.ReachesEvery || r == placement.ReachesLacking && !placed
}

// byObject reports whether a filter that depends on the object may have another result.
func (t *Touch) byObject(b hubv1.BindingObject) bool {
	id := hubv1.ObjectOf(b)
	return t.namespaces || t.kinds.HasAny(id.GroupKind(), everyKind) || t.excludes(id)
}

func (t *Touch) excludes(id hubv1.ObjectIdentity) bool { return MaySelect(t.excluding, id) }

// Needed returns the objects that the object of a binding needs, if the change may concern them: they are sent to the
// clusters that have a MemberCluster.
func (t *Touch) Needed(b hubv1.BindingObject) (out []hubv1.ObjectIdentity) {
	if !t.exists || b.BindingSpec().Target(t.cluster) == nil {
		return nil
	}
	for _, r := range b.BindingSpec().References {
		out = append(out, r.In(b.GetNamespace()))
	}
	return out
}

// MaySelect reports whether one of the policies may select an object, by its kind and namespace.
func MaySelect(policies []hubv1.OverridePolicyObject, id hubv1.ObjectIdentity) bool {
	return slices.ContainsFunc(policies, func(p hubv1.OverridePolicyObject) bool {
		return (p.GetNamespace() == "" || p.GetNamespace() == id.Namespace) && slices.ContainsFunc(p.OverrideSpec().ResourceSelectors, func(r hubv1.ResourceSelector) bool {
			return r.APIGroup == id.Group && (r.Kind == id.Kind || r.Kind == everyKind.Kind)
		})
	})
}

// keyOf returns a placement reference with only the kind, namespace and name, for use as a map key.
func keyOf(ref *hubv1.PlacementReference) hubv1.PlacementReference {
	return hubv1.PlacementReference{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
}

// Outage says whether a change of the fleet has begun or ended an outage: a time in which so many clusters are
// unreachable that no object leaves an unreachable cluster.
type Outage struct {
	changed bool
	away    map[string]bool
}

// NewOutage compares two states of the fleet. maxAway is Limits.MaxAway. between is true if an outage may have begun
// and ended between the two states. Objects that were decided meanwhile are then decided again.
func NewOutage(before, after []*hubv1.MemberCluster, maxAway int, between bool) Outage {
	if !between && placement.TooManyAway(presence(before), maxAway) == placement.TooManyAway(presence(after), maxAway) {
		return Outage{}
	}
	o := Outage{changed: true, away: map[string]bool{}}
	for _, c := range slices.Concat(before, after) {
		if c.IsAway() {
			o.away[c.Name] = true
		}
	}
	return o
}

func presence(clusters []*hubv1.MemberCluster) []placement.Cluster {
	out := make([]placement.Cluster, 0, len(clusters))
	for _, c := range clusters {
		out = append(out, placement.Cluster{Ready: !c.IsAway(), Departure: placement.Departure{Leaving: c.DeletionTimestamp != nil}})
	}
	return out
}

// Changed reports whether an outage has begun or ended.
func (o Outage) Changed() bool { return o.changed }

// Reaches reports whether the decision on the object of a binding may change. placed is Plan.Placed of its last
// decision; it is false if the last decision is not known.
func (o Outage) Reaches(b hubv1.BindingObject, placed bool) bool {
	return o.changed && (!placed || slices.ContainsFunc(b.BindingSpec().Clusters, func(e hubv1.BindingTarget) bool { return o.away[e.Name] }))
}
