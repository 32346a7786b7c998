package schedule

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
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/overrides"
)

// Fleet is many objects and what decides on them, as values. What is said of Live holds for it as well.
type Fleet struct {
	Clusters []*hubv1.MemberCluster
	// Placements of all namespaces, and the cluster-scoped ones.
	Placements []hubv1.PlacementObject
	// Overrides are override policies of all namespaces, and the cluster-scoped ones. Those that exclude no clusters decide nothing.
	Overrides []hubv1.OverridePolicyObject
	// NamespaceLabels by namespace.
	NamespaceLabels map[string]map[string]string
	Objects         []FleetObject
	// Elsewhere is how many objects that are not among Objects the hub sends to each cluster.
	Elsewhere map[string]int
	Now       time.Time

	lost []string // clusters that have not answered for longer than anything waits for them
}

// FleetObject is one object of a fleet.
type FleetObject struct {
	// Object is not being deleted, and at the version at which it is sent.
	Object *unstructured.Unstructured
	// Binding of the object, nil if it has none.
	Binding hubv1.BindingObject
	// ScalePath and Refused are as for Live.
	ScalePath string
	Refused   bool
}

// Identity of the object.
func (o FleetObject) Identity() hubv1.ObjectIdentity { return identityOf(o.Object) }

func identityOf(o *unstructured.Unstructured) hubv1.ObjectIdentity {
	gvk := o.GroupVersionKind()
	return hubv1.ObjectIdentity{Group: gvk.Group, Kind: gvk.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// Settlement is where a fleet comes to rest.
type Settlement struct {
	// Outcomes are in the order of the fleet's objects.
	Outcomes []Outcome

	fleet  Fleet
	worlds map[string]world
	memory memory
}

// Outcome is what became of one object.
type Outcome struct {
	// Binding of the object, nil if it has none. What of its status decisions do not read is what it was.
	Binding hubv1.BindingObject
	// Scheduled is what is said of the last decision.
	Scheduled metav1.Condition
	// Restless is true if each decision led to another one until nobody went on.
	Restless bool
}

// settleRounds is how often an object is decided on at most. A cluster is lost, replaced and withdrawn from within a few.
const settleRounds = 20

// Settle decides on every object, by the function that the hub decides by, then again on those that changed, as if clusters that answer had
// carried out the decision and were healthy, until nothing changes. Clusters that are lost are so in the hub's order: first they do not answer,
// then the time for them is over. It writes nothing; tell hears how many of the objects were decided on.
func (f Fleet) Settle(ctx context.Context, tell func(decided, of int)) (*Settlement, error) {
	if len(f.lost) > 0 {
		silent, err := f.inGrace().settle(ctx, tell)
		if err != nil {
			return nil, err
		}
		f = f.From(silent)
	}
	return f.settle(ctx, tell)
}

// From returns the fleet with its objects where they came to rest in a settlement.
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

func (f Fleet) settle(ctx context.Context, tell func(decided, of int)) (*Settlement, error) {
	s := &Settlement{fleet: f.identified(), Outcomes: make([]Outcome, len(f.Objects)), worlds: map[string]world{}}
	s.memory.objects = maps.Clone(f.Elsewhere)
	moving := make([]int, len(f.Objects))
	for i, o := range f.Objects {
		moving[i] = i
		s.Outcomes[i].Binding = o.Binding
		s.memory.count(o.Identity().BindingKey(), o.Binding)
	}
	for round := 0; len(moving) > 0 && round < settleRounds; round++ {
		var moved []int
		for n, i := range moving {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if s.decideOn(i) {
				moved = append(moved, i)
			}
			if round == 0 {
				tell(n+1, len(moving))
			}
		}
		moving = moved
	}
	for _, i := range moving {
		s.Outcomes[i].Restless = true
	}
	return s, nil
}

// identified gives what no API server has seen an identity, by which it is remembered.
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

// decideOn returns whether the decision is another one than before.
func (s *Settlement) decideOn(i int) bool {
	f, o := s.facts(i), &s.Outcomes[i]
	p := decide(f)
	o.Scheduled = p.scheduled
	switch {
	case p.spec == nil:
		return false
	case p.remove:
		o.Binding = nil
	case f.binding == nil:
		o.Binding = hubv1.NewBinding(f.id.BindingKey())
		o.Binding.SetGeneration(1)
		*o.Binding.BindingSpec() = *p.spec
	default:
		keepGeneration(f.spec(), p.spec)
		if equality.Semantic.DeepEqual(f.spec(), p.spec) {
			return false
		}
		o.Binding = f.binding.DeepCopyObject().(hubv1.BindingObject)
		o.Binding.SetGeneration(f.binding.GetGeneration() + 1)
		*o.Binding.BindingSpec() = *p.spec
	}
	s.memory.count(f.id.BindingKey(), o.Binding)
	return true
}

// facts about an object whose last decision the clusters have carried out.
func (s *Settlement) facts(i int) facts {
	o := s.fleet.Objects[i]
	f := facts{
		id: o.Identity(), template: o.Object, memory: &s.memory, scalePath: o.ScalePath, refused: o.Refused, now: s.fleet.Now,
		world: s.world(o.Object.GetNamespace()),
	}
	if b := s.Outcomes[i].Binding; b != nil {
		f.binding = f.world.obey(b, o.Object.GetGeneration())
	}
	return f
}

func (s *Settlement) world(namespace string) world {
	if w, ok := s.worlds[namespace]; ok {
		return w
	}
	w := world{clusters: s.fleet.Clusters, namespaceLabels: s.fleet.NamespaceLabels[namespace], namespaceRead: true}
	for _, p := range s.fleet.Placements {
		if ns := p.GetNamespace(); ns == "" || ns == namespace {
			w.placements = append(w.placements, p)
		}
	}
	for _, p := range s.fleet.Overrides {
		if ns := p.GetNamespace(); (ns == "" || ns == namespace) && overrides.Excludes(p) {
			w.overrides = append(w.overrides, p)
		}
	}
	s.worlds[namespace] = w
	return w
}

// obey returns the binding with the rows that its clusters report once they have done what it asks for. Those that do not answer report nothing.
func (w world) obey(b hubv1.BindingObject, generation int64) hubv1.BindingObject {
	out := b.DeepCopyObject().(hubv1.BindingObject)
	status := out.BindingStatus()
	status.ObservedGeneration = out.GetGeneration()
	status.Clusters = nil
	for _, e := range out.BindingSpec().Clusters {
		c := w.cluster(e.Name)
		switch {
		case c == nil || away(c):
			if row := b.BindingStatus().Row(e.Name); row != nil {
				status.Clusters = append(status.Clusters, *row)
			}
		case e.State == hubv1.TargetAbsent:
			status.Clusters = append(status.Clusters, hubv1.ClusterRow{Name: e.Name, Applied: metav1.ConditionFalse, Reason: hubv1.ReasonWithdrawn})
		default:
			status.Clusters = append(status.Clusters, hubv1.ClusterRow{
				Name: e.Name, Generation: generation, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy,
				Digest: fmt.Sprintf("simulated-%d", out.GetGeneration()), // what was newly decided was newly sent
			})
		}
	}
	return out
}

// Replay tells the last decision on one object in full.
func (s *Settlement) Replay(i int) Replayed { return s.facts(i).replay() }

// Object returns one object of the fleet.
func (s *Settlement) Object(i int) FleetObject { return s.fleet.Objects[i] }

// Clusters of the fleet.
func (s *Settlement) Clusters() []*hubv1.MemberCluster { return s.fleet.Clusters }

// IsAway is true for a cluster that does not answer.
func IsAway(c *hubv1.MemberCluster) bool { return away(c) }

// Without returns the fleet as the hub sees it when clusters have not answered for longer than anything waits for them.
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

// inGrace is the fleet when its lost clusters have just ceased to answer.
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
		Type: hubv1.ConditionReady, Status: metav1.ConditionFalse, Reason: hubv1.ReasonUnreachable, Message: "it does not answer",
		LastTransitionTime: metav1.NewTime(f.Now),
	})
	since := metav1.NewTime(f.Now.Add(-f.patience()))
	out.Status.Taints = slices.DeleteFunc(out.Status.Taints, func(t corev1.Taint) bool { return t.Key == hubv1.UnreachableTaint })
	for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule} {
		out.Status.Taints = append(out.Status.Taints, corev1.Taint{Key: hubv1.UnreachableTaint, Effect: effect, TimeAdded: &since})
	}
	return out
}

// patience is longer than any placement waits for a cluster, if it does not wait for ever.
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
