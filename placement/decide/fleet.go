package decide

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Fleet has many objects, and the policies and clusters that determine the decisions about the objects. A running hub
// also knows two things that a Fleet does not know: how long the capacity of a cluster has been stable, and which
// clusters have not yet reported the kinds that they serve.
type Fleet struct {
	Clusters []*hubv1.MemberCluster
	// Placements are the placements of all namespaces, and the cluster-scoped ones.
	Placements []hubv1.PlacementObject
	// Overrides are the override policies of all namespaces, and the cluster-scoped ones. Policies that exclude no
	// cluster have no effect.
	Overrides []hubv1.OverridePolicyObject
	// NamespaceLabels by namespace.
	NamespaceLabels map[string]map[string]string
	Objects         []FleetObject
	// Elsewhere has, for each cluster, the number of objects that the hub sends there in addition to those in the field
	// Objects.
	Elsewhere map[string]int
	Now       time.Time

	lost []string // clusters that are unreachable for longer than any placement tolerates
}

// FleetObject is one object of a fleet. A fleet has many objects, and the policies and clusters that determine the
// decisions about them.
type FleetObject struct {
	// Object is the hub object, at the API version at which the hub reads it. It is not being deleted.
	Object *unstructured.Unstructured
	// Binding is the binding of the object, or nil if the object has no binding.
	Binding hubv1.BindingObject
	// OtherVersions are the other API versions at which clusters may get the object. ScalePath is the path of the replicas
	// in the scale subresource. HubRuns is true if controllers of the hub would act on the object.
	OtherVersions []string
	ScalePath     string
	HubRuns       bool
	// Removed is true if the object was removed from its bundle, which still exists: its copies are withdrawn.
	Removed bool
}

// Identity returns the kind, the namespace and the name of the object.
func (o FleetObject) Identity() hubv1.ObjectIdentity { return hubv1.IdentityOf(o.Object) }

// Settlement is the result of Settle: the state of a fleet after Settle has simulated all decisions.
type Settlement struct {
	// Outcomes has the result for each object of the fleet, in the order of Fleet.Objects.
	Outcomes []Outcome

	fleet   Fleet
	facts   map[string]Facts // namespace facts, by namespace
	memo    Memo
	objects map[string]int // number of objects, by cluster
	// neededBy has, for each object X, the indexes in fleet.Objects of the objects that need X. places has the index of
	// each object in fleet.Objects.
	neededBy map[hubv1.ObjectIdentity]sets.Set[int]
	places   map[hubv1.ObjectIdentity]int
}

// Outcome is the result of Settle for one object, after the last simulated decision on the object.
type Outcome struct {
	// Binding is the binding of the object after the last decision, or nil if the object has no binding. Settle does not
	// change the parts of the binding's status that no decision reads.
	Binding hubv1.BindingObject
	// Scheduled is the condition Scheduled that the last simulated decision on the object would write to the binding.
	Scheduled metav1.Condition
	// Restless is true if Settle stopped after the maximum number of decisions on this object (settleRounds), and the
	// decision was not yet stable. The last decision still changed the binding of this object, or of an object that needs
	// this object.
	Restless bool
	// Losses are the copies of the object that clusters lost by the simulated decisions, in the order of the decisions.
	Losses []Loss
}

// settleRounds is the maximum number of decisions on one object. An object that leaves a lost cluster needs about three
// decisions: an eviction, a replacement and a withdrawal.
const settleRounds = 20

// Settle simulates the decisions on all objects until no decision changes. After a decision has changed, Settle decides
// again on this object and on the objects that it needs. Between two decisions, each reachable cluster applies the last
// decision, and its copy becomes healthy. For lost clusters (see Without), Settle makes two passes. In the first pass,
// they have just become unreachable. In the second pass, they have been unreachable for longer than the placements
// tolerate. Settle writes to no API server. It calls progress with the number of objects on which it has decided once.
func (f Fleet) Settle(ctx context.Context, progress func(decided, of int)) (*Settlement, error) {
	if len(f.lost) > 0 {
		silent, err := f.inGrace().settle(ctx, progress)
		if err != nil {
			return nil, err
		}
		s, err := f.From(silent).settle(ctx, progress)
		if err != nil {
			return nil, err
		}
		for i := range s.Outcomes {
			s.Outcomes[i].Losses = slices.Concat(silent.Outcomes[i].Losses, s.Outcomes[i].Losses)
		}
		return s, nil
	}
	return f.settle(ctx, progress)
}

// From returns the fleet f with the bindings that the settlement s has computed for the same objects. A settlement is
// the state of a fleet after all decisions were simulated.
func (f Fleet) From(s *Settlement) Fleet {
	places := make(map[hubv1.ObjectIdentity]int, len(s.Outcomes))
	for i, o := range s.fleet.Objects {
		places[o.Identity()] = i
	}
	f.Objects = slices.Clone(f.Objects)
	for i, o := range f.Objects {
		if j, ok := places[o.Identity()]; ok {
			f.Objects[i].Binding = s.Outcomes[j].Binding
		}
	}
	return f
}

func (f Fleet) settle(ctx context.Context, progress func(decided, of int)) (*Settlement, error) {
	s := &Settlement{fleet: f.identified(), Outcomes: make([]Outcome, len(f.Objects)), facts: map[string]Facts{}, objects: map[string]int{}}
	s.neededBy, s.places = map[hubv1.ObjectIdentity]sets.Set[int]{}, map[hubv1.ObjectIdentity]int{}
	maps.Copy(s.objects, f.Elsewhere)
	moving := make([]int, len(f.Objects))
	for i, o := range f.Objects {
		moving[i] = i
		s.Outcomes[i].Binding, s.places[o.Identity()] = o.Binding, i
		s.count(nil, o.Binding)
		s.need(i, nil, o.Binding)
	}
	for round := 0; len(moving) > 0 && round < settleRounds; round++ {
		moved := sets.New[int]()
		for n, i := range moving {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			before := s.Outcomes[i].Binding
			if s.decideOn(i) {
				moved.Insert(i)
				moved.Insert(s.need(i, before, s.Outcomes[i].Binding)...)
			}
			if round == 0 {
				progress(n+1, len(moving))
			}
		}
		moving = sets.List(moved)
	}
	for _, i := range moving {
		s.Outcomes[i].Restless = true
	}
	return s, nil
}

// identified returns the fleet with a UID for each cluster and placement that has none. Such objects were never stored
// on an API server. The cache Memo uses the UID as a key.
func (f Fleet) identified() Fleet {
	out := f
	out.Clusters, out.Placements = nil, nil
	for _, c := range f.Clusters {
		if c.UID == "" {
			c = c.DeepCopy()
			c.UID = types.UID("simulated/" + c.Name)
		}
		out.Clusters = append(out.Clusters, c)
	}
	for _, p := range f.Placements {
		if p.GetUID() == "" {
			p = p.DeepCopyObject().(hubv1.PlacementObject)
			p.SetUID(types.UID("simulated/" + p.GetNamespace() + "/" + p.GetName()))
		}
		out.Placements = append(out.Placements, p)
	}
	return out
}

// decideOn makes the next decision on the object with index i. changed is true if the decision changed the object's
// binding.
func (s *Settlement) decideOn(i int) (changed bool) {
	in, o := s.input(i), &s.Outcomes[i]
	p := Decide(in)
	o.Scheduled = p.Status.Scheduled
	before := o.Binding
	o.Losses = append(o.Losses, in.losses(p)...)
	switch {
	case p.Spec == nil:
		return false
	case p.Remove:
		o.Binding = nil
	case before == nil:
		o.Binding = hubv1.NewBinding(in.Object.ID.BindingKey())
		o.Binding.SetGeneration(1)
		*o.Binding.BindingSpec() = *p.Spec
	case equality.Semantic.DeepEqual(before.BindingSpec(), p.Spec):
		return false
	default:
		o.Binding = in.Binding.DeepCopyObject().(hubv1.BindingObject)
		o.Binding.SetGeneration(before.GetGeneration() + 1)
		*o.Binding.BindingSpec() = *p.Spec
	}
	s.count(before, o.Binding)
	return true
}

// need updates s.neededBy after the binding of the object with index i has changed. It returns the indexes of the
// objects that this object needed before the change or needs now. Settle must decide on these objects again.
func (s *Settlement) need(i int, before, after hubv1.BindingObject) (moved []int) {
	each := func(b hubv1.BindingObject, do func(hubv1.ObjectIdentity)) {
		if b == nil {
			return
		}
		for _, r := range b.BindingSpec().References {
			id := r.In(b.GetNamespace())
			do(id)
			if j, ok := s.places[id]; ok {
				moved = append(moved, j)
			}
		}
	}
	each(before, func(id hubv1.ObjectIdentity) { s.neededBy[id].Delete(i) })
	each(after, func(id hubv1.ObjectIdentity) {
		if s.neededBy[id] == nil {
			s.neededBy[id] = sets.New[int]()
		}
		s.neededBy[id].Insert(i)
	})
	return moved
}

// count updates s.objects, the number of objects on each cluster, after a change of a binding. before is the old
// binding, and after is the new one.
func (s *Settlement) count(before, after hubv1.BindingObject) {
	add := func(b hubv1.BindingObject, n int) {
		if b == nil {
			return
		}
		for _, e := range b.BindingSpec().Clusters {
			if e.State == hubv1.TargetPresent {
				s.objects[e.Name] += n
			}
		}
	}
	add(before, -1)
	add(after, 1)
}

// input returns the input for the next decision on an object, as if the clusters had applied its last decision.
func (s *Settlement) input(i int) Input {
	o := s.fleet.Objects[i]
	in := Input{
		Object: Object{ID: o.Identity(), Template: o.Object, OtherVersions: o.OtherVersions, ScalePath: o.ScalePath, HubRuns: o.HubRuns},
		Facts:  s.factsOf(o.Object.GetNamespace()), Objects: s.objects, Now: s.fleet.Now, Memo: &s.memo,
	}
	if o.Removed {
		in.Object.State = Deleted
		if b := hubv1.BundleOf(o.Object); b != nil {
			in.Object.CutFrom = &b.BundleReference
		}
	}
	in.Referrers = []Referrer{}
	for _, j := range sets.List(s.neededBy[o.Identity()]) {
		in.Referrers = append(in.Referrers, Referrer{ID: s.fleet.Objects[j].Identity(), Spec: s.Outcomes[j].Binding.BindingSpec()})
	}
	if b := s.Outcomes[i].Binding; b != nil {
		in.Binding = in.Facts.carryOut(b, in.Object.hub())
	}
	return in
}

func (s *Settlement) factsOf(namespace string) Facts {
	if f, ok := s.facts[namespace]; ok {
		return f
	}
	f := Facts{Clusters: s.fleet.Clusters, NamespaceLabels: s.fleet.NamespaceLabels[namespace], NamespaceRead: true}
	for _, p := range s.fleet.Placements {
		if ns := p.GetNamespace(); ns == "" || ns == namespace {
			f.Placements = append(f.Placements, p)
		}
	}
	for _, p := range s.fleet.Overrides {
		if ns := p.GetNamespace(); ns == "" || ns == namespace {
			f.Overrides = append(f.Overrides, p)
		}
	}
	s.facts[namespace] = f
	return f
}

// carryOut returns a copy of the binding b, with the status that b has after all reachable clusters have applied its
// spec. The row of an unreachable cluster stays as it is.
func (f Facts) carryOut(b hubv1.BindingObject, o hubv1.HubObject) hubv1.BindingObject {
	out := b.DeepCopyObject().(hubv1.BindingObject)
	status := out.BindingStatus()
	status.ObservedGeneration = out.GetGeneration()
	status.Clusters = nil
	for _, e := range out.BindingSpec().Clusters {
		c := f.Cluster(e.Name)
		switch {
		case c == nil || c.IsAway():
			if row := b.BindingStatus().Row(e.Name); row != nil {
				status.Clusters = append(status.Clusters, *row)
			}
		case e.State == hubv1.TargetAbsent:
			status.Clusters = append(status.Clusters, hubv1.ClusterRow{Name: e.Name, Applied: metav1.ConditionFalse, Reason: hubv1.ReasonWithdrawn})
		default:
			row := b.BindingStatus().Row(e.Name)
			status.Clusters = append(status.Clusters, hubv1.ClusterRow{
				Name: e.Name, Generation: hubv1.Wanted(e, o).Generation, Revision: e.Revision, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy,
				Adopted: row != nil && row.Adopted,
				Digest:  fmt.Sprintf("simulated-%d", out.GetGeneration()), // a new digest, because each decision sends a new copy
			})
		}
	}
	return out
}

// Replay repeats the last decision on the object with index i, and returns it with its steps.
func (s *Settlement) Replay(i int) Replayed { return Replay(s.input(i)) }

// Object returns one object of the fleet.
func (s *Settlement) Object(i int) FleetObject { return s.fleet.Objects[i] }

// Without returns a copy of the fleet in which the given clusters are lost: they have been unreachable for longer than
// any placement tolerates.
func (f Fleet) Without(clusters ...string) Fleet {
	out := f
	out.lost = append(slices.Clone(f.lost), clusters...)
	out.Clusters = slices.Clone(f.Clusters)
	for i, c := range out.Clusters {
		if slices.Contains(clusters, c.Name) {
			out.Clusters[i] = f.silenced(c)
		}
	}
	return out
}

// inGrace returns a copy of the fleet in which the lost clusters have just become unreachable. These clusters do not
// have the NoExecute taint yet, so that their objects are not evicted.
func (f Fleet) inGrace() Fleet {
	out := f
	out.Clusters = slices.Clone(f.Clusters)
	for i, c := range out.Clusters {
		if slices.Contains(f.lost, c.Name) {
			out.Clusters[i] = c.DeepCopy()
			out.Clusters[i].Status.Taints = slices.DeleteFunc(out.Clusters[i].Status.Taints, func(t corev1.Taint) bool {
				return t.Key == hubv1.UnreachableTaint && t.Effect == corev1.TaintEffectNoExecute
			})
		}
	}
	return out
}

func (f Fleet) silenced(c *hubv1.MemberCluster) *hubv1.MemberCluster {
	out := c.DeepCopy()
	meta.SetStatusCondition(&out.Status.Conditions, metav1.Condition{
		Type: hubv1.ConditionReady, Status: metav1.ConditionFalse, Reason: hubv1.ReasonUnreachable, Message: "the cluster does not answer",
		LastTransitionTime: metav1.NewTime(f.Now),
	})
	since := metav1.NewTime(f.Now.Add(-f.patience()))
	out.Status.Taints = slices.DeleteFunc(out.Status.Taints, func(t corev1.Taint) bool { return t.Key == hubv1.UnreachableTaint })
	for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule} {
		out.Status.Taints = append(out.Status.Taints, corev1.Taint{Key: hubv1.UnreachableTaint, Effect: effect, TimeAdded: &since})
	}
	return out
}

// patience returns a time that is longer than every placement tolerates an unreachable cluster. Tolerations without a
// time limit do not count.
func (f Fleet) patience() time.Duration {
	const forEver = 1 << 32
	longest := int64(0)
	for _, p := range f.Placements {
		spec := p.PlacementSpec()
		longest = max(longest, int64(ptr.Deref(spec.Failover.EvictAfterSeconds, 0)))
		for _, t := range spec.Clusters.Tolerations {
			if s := ptr.Deref(t.TolerationSeconds, 0); s < forEver {
				longest = max(longest, s)
			}
		}
	}
	return time.Duration(longest+1) * time.Second
}
