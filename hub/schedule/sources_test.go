package schedule

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/hub/store/clusters"
	"github.com/hanse-dev/hanse/internal/informer"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/placement/decide/decidetest"
)

func TestAnObjectThatChangesGoesBeforeThoseOfAClusterThatDoes(t *testing.T) {
	q := priorityqueue.New[key]("test")
	defer q.ShutDown()
	many := []key{{Kind: "Widget", Name: "a"}, {Kind: "Widget", Name: "b"}}
	s := New(Options{})
	s.lead = lead{ctx: t.Context(), queue: q}
	s.wakeBehind(func() []key { return many })
	changed := key{Kind: "Widget", Name: "c"}
	q.Add(changed)
	for i := range 3 {
		got, _ := q.Get()
		if first := got == changed; first != (i == 0) {
			t.Errorf("%s is number %d", got, i+1)
		}
		q.Done(got)
	}
}

// TestTheObjectsOfAClusterAreDecidedByTheirRank: the scheduler must decide first on objects that other objects need.
// For example, an operator that starts on a cluster before its ClusterRole exists may fail for good.
func TestTheObjectsOfAClusterAreDecidedByTheirRank(t *testing.T) {
	q := priorityqueue.New[key]("test")
	defer q.ShutDown()
	ranks := map[string]int{"Namespace": 4, "ClusterRole": 2, "ValidatingWebhookConfiguration": -1}
	s := New(Options{Kinds: Kinds{Rank: func(gk schema.GroupKind) int { return ranks[gk.Kind] }}})
	s.lead = lead{ctx: t.Context(), queue: q}
	s.wakeBehind(func() []key {
		return []key{{Kind: "ValidatingWebhookConfiguration"}, {Kind: "Deployment"}, {Kind: "ClusterRole"}, {Kind: "Namespace"}}
	})
	q.Add(key{Kind: "Changed"})
	for i, want := range []string{"Changed", "Namespace", "ClusterRole", "Deployment", "ValidatingWebhookConfiguration"} {
		got, _ := q.Get()
		if got.Kind != want {
			t.Errorf("%s is number %d, want %s", got, i+1, want)
		}
		q.Done(got)
	}
}

// behinds counts the objects that are queued with a low priority, behind objects that have changed themselves.
type behinds struct {
	priorityqueue.PriorityQueue[key]
	n atomic.Int64
}

func (q *behinds) AddWithOpts(o priorityqueue.AddOpts, keys ...key) {
	if o.After == 0 && *o.Priority == handler.LowPriority {
		q.n.Add(int64(len(keys)))
	}
}

// aFleet is a cache with three bindings of the placement web, two of them on the cluster eu, and with the clusters of
// the fleet.
type aFleet struct {
	client.Client
	placement *hubv1.Placement
	clusters  []hubv1.MemberCluster
}

func (f aFleet) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	switch list := into.(type) {
	case *hubv1.ResourceBindingList:
		for i, on := range []string{"eu", "eu", "sg"} {
			b := bound(present(on))
			b.Name, b.Spec.ObjectRef.Name = fmt.Sprint("b", i), fmt.Sprint("w", i)
			list.Items = append(list.Items, *b)
		}
	case *hubv1.PlacementList:
		list.Items = []hubv1.Placement{*f.placement}
	case *hubv1.MemberClusterList:
		list.Items = f.clusters
	}
	return nil
}

// TestAChangeOfAClusterWakesTheObjectsThatItConcerns: the placement web selects one cluster with the label tier=gold,
// and each of its objects has one.
func TestAChangeOfAClusterWakesTheObjectsThatItConcerns(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*hubv1.MemberCluster)
		woken  int
		// waits is true if removals wait for the decisions on the objects.
		waits bool
	}{
		"it is lost": {decidetest.Unreachable, 2, false},
		"it is lost and said to be unreachable": {func(c *hubv1.MemberCluster) {
			decidetest.Unreachable(c)
			c.Status.Taints = []corev1.Taint{{Key: "gone", Effect: corev1.TaintEffectNoExecute}}
		}, 2, false},
		"it answers and has a taint": {func(c *hubv1.MemberCluster) {
			c.Status.Taints = []corev1.Taint{{Key: "slow", Effect: corev1.TaintEffectNoExecute}}
		}, 2, false},
		"a user changes the label that the placement reads": {func(c *hubv1.MemberCluster) { c.Labels["tier"] = "silver" }, 3, true},
		"a user changes a label that no policy reads":       {func(c *hubv1.MemberCluster) { c.Labels["team"] = "b" }, 0, false},
		"a user cordons it":                       {func(c *hubv1.MemberCluster) { c.Generation++; c.Spec.Unschedulable = true }, 2, true},
		"a user changes its spec as it is lost":   {func(c *hubv1.MemberCluster) { c.Generation++; c.Spec.Unschedulable = true; decidetest.Unreachable(c) }, 2, true},
		"its nodes change, which no policy reads": {func(c *hubv1.MemberCluster) { c.Status.Nodes.Ready = 7 }, 0, false},
		"its last contact was later":              {func(c *hubv1.MemberCluster) { c.ResourceVersion = "2" }, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				before := cluster("eu", func(c *hubv1.MemberCluster) { c.Generation, c.Labels = 1, map[string]string{"tier": "gold"} })
				after, q := before.DeepCopy(), &behinds{}
				test.change(after)
				s := fleetScheduler(t, q, before, after)
				feed := changes.NewFeed()
				feed.Clusters.On(changes.All, s.ClusterChanged)
				feed.Clusters.Handler(t.Context()).OnUpdate(before, after)
				<-time.After(2 * collectFor)
				synctest.Wait()
				if got := int(q.n.Load()); got != test.woken {
					t.Errorf("%d objects wake, want %d", got, test.woken)
				}
				if waits := s.shared.removals.pending.until(time.Now()); waits != test.waits {
					t.Errorf("removals wait for these objects: %t, want %t", waits, test.waits)
				}
			})
		})
	}
}

// fleetScheduler returns a leading scheduler of an aFleet whose cluster eu has changed, and whose objects are placed.
func fleetScheduler(t *testing.T, q queue, before, after *hubv1.MemberCluster) *Scheduler {
	t.Helper()
	one := int32(1)
	web := policy("web", decidetest.Spreading(hubv1.SpreadPolicy{NumberOfClusters: &one}))
	web.Spec.Clusters.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}
	s := &Scheduler{
		shared: shared{removals: removals{pending: pending{clock: clock.RealClock{}}}}, lead: lead{ctx: t.Context(), queue: q},
	}
	s.opts.Client = aFleet{placement: web, clusters: []hubv1.MemberCluster{*after, *cluster("sg"), *cluster("us")}}
	s.opts.Clusters = clusters.New(s.opts.Client)
	s.clusters.begin([]*hubv1.MemberCluster{before, cluster("sg"), cluster("us")})
	for i := range 3 {
		s.results.placed.end(hubv1.ObjectIdentity{Group: object.Group, Kind: object.Kind, Namespace: object.Namespace, Name: fmt.Sprint("w", i)}, decide.Plan{Placed: true}, true)
	}
	return s
}

// TestAChangedCapacityWakesItsObjectsWhenDecisionsUseIt: a node that disappears for a short time moves no replicas, so
// that it needs no decisions either.
func TestAChangedCapacityWakesItsObjectsWhenDecisionsUseIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := func(n int64) *hubv1.MemberCluster {
			return cluster("eu", cpus(n), func(c *hubv1.MemberCluster) { c.UID = "eu" })
		}
		q, web := &behinds{}, policy("web", dividing(hubv1.DivideByCapacity))
		s := fleetScheduler(t, q, of(30), of(30))
		s.opts.Clock = clock.RealClock{}
		s.inputs.capacities.of(of(30), time.Now())
		<-time.After(2 * capacityHolds)
		s.inputs.capacities.of(of(30), time.Now()) // it is settled
		feed := changes.NewFeed()
		feed.Clusters.On(changes.All, s.ClusterChanged)
		change := func(from, to int64, wait time.Duration, want int) {
			t.Helper()
			s.opts.Client = aFleet{placement: web, clusters: []hubv1.MemberCluster{*of(to), *cluster("sg")}}
			s.opts.Clusters = clusters.New(s.opts.Client)
			q.n.Store(0)
			feed.Clusters.Handler(t.Context()).OnUpdate(of(from), of(to))
			<-time.After(wait)
			synctest.Wait()
			if got := int(q.n.Load()); got != want {
				t.Errorf("%s after a change from %d to %d CPUs, %d objects wake, want %d", wait, from, to, got, want)
			}
		}
		change(30, 31, 2*capacityHolds, 0)
		change(31, 20, capacityHolds/2, 0)
		change(20, 31, 2*capacityHolds, 0)
		change(31, 20, capacityHolds/2, 0)
		q.n.Store(0)
		<-time.After(capacityHolds)
		synctest.Wait()
		if got := int(q.n.Load()); got != 3 {
			t.Errorf("when decisions use the capacity, %d objects wake, want 3", got)
		}
	})
}

// TestClustersThatAreLostTogetherWakeTheirObjectsOnce: with their region, hundreds of clusters are lost within seconds.
func TestClustersThatAreLostTogetherWakeTheirObjectsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &behinds{}
		eu, sg := cluster("eu"), cluster("sg")
		s := fleetScheduler(t, q, eu, eu)
		feed := changes.NewFeed()
		feed.Clusters.On(changes.All, s.ClusterChanged)
		for range 2 {
			for _, c := range []*hubv1.MemberCluster{eu, sg} {
				away := c.DeepCopy()
				decidetest.Unreachable(away)
				feed.Clusters.Handler(t.Context()).OnUpdate(c, away)
				<-time.After(collectFor / 2)
			}
		}
		<-time.After(2 * collectFor)
		synctest.Wait()
		if got := int(q.n.Load()); got != 3 {
			t.Errorf("%d objects wake, want each of the 3 objects once", got)
		}
	})
}

// TestAChangeThatIsTakenBackWakesItsObjects: an object may have been decided between the two changes.
func TestAChangeThatIsTakenBackWakesItsObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, eu := &behinds{}, cluster("eu")
		s := fleetScheduler(t, q, eu, eu)
		feed := changes.NewFeed()
		feed.Clusters.On(changes.All, s.ClusterChanged)
		away := eu.DeepCopy()
		decidetest.Unreachable(away)
		feed.Clusters.Handler(t.Context()).OnUpdate(eu, away)
		feed.Clusters.Handler(t.Context()).OnUpdate(away, eu)
		<-time.After(2 * collectFor)
		synctest.Wait()
		if got := q.n.Load(); got == 0 {
			t.Error("no object wakes")
		}
	})
}

// oneBinding is a synced cache with the binding of one object and no other objects.
type oneBinding struct {
	client.Client
	id key
}

func (b oneBinding) Get(_ context.Context, at client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	if at == b.id.BindingKey() {
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{}, at.Name)
}

// stateOf has the state of a kind's watch, and no objects.
type stateOf struct {
	Templates
	reported bool
}

func (s stateOf) StateOf(key) (informer.State, bool) {
	return informer.State{Synced: true, Delivered: s.reported}, true
}

func (s stateOf) List(schema.GroupKind) []key {
	return []key{{Kind: "Widget", Namespace: "n", Name: "known"}, {Kind: "Widget", Namespace: "n", Name: "new"}}
}

// nothingListed returns empty lists, and has the binding of one object.
type nothingListed struct{ oneBinding }

func (nothingListed) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

func TestTheObjectsOfAFirstListWaitForItsEndAndChangesDoNot(t *testing.T) {
	q := priorityqueue.New[key]("test")
	defer q.ShutDown()
	known, made := key{Kind: "Widget", Namespace: "n", Name: "known"}, key{Kind: "Widget", Namespace: "n", Name: "new"}
	s := &Scheduler{shared: shared{removals: removals{pending: pending{clock: clock.RealClock{}}}}, opts: Options{Client: nothingListed{oneBinding{id: known}}, Templates: stateOf{}}, lead: lead{ctx: t.Context(), queue: q}}
	s.wakeObject(known)
	s.opts.Templates = stateOf{reported: true}
	changed := key{Kind: "Widget", Namespace: "n", Name: "changed"}
	s.wakeObject(changed)
	if got, _ := q.Get(); got != changed {
		t.Errorf("%s was queued before the list was whole", got)
	}
	s.WakeKind(known.GroupKind())
	for i, want := range []key{made, known} {
		got, _ := q.Get()
		if got != want {
			t.Errorf("%s is number %d of the list, want %s", got, i+1, want)
		}
	}
}

func TestAnObjectThatIsNewAtTheStartGoesBeforeThoseThatHaveABinding(t *testing.T) {
	q := priorityqueue.New[key]("test")
	defer q.ShutDown()
	known, made := key{Kind: "Widget", Namespace: "n", Name: "a"}, key{Kind: "Widget", Namespace: "n", Name: "b"}
	s := &Scheduler{shared: shared{removals: removals{pending: pending{clock: clock.RealClock{}}}}, opts: Options{Client: oneBinding{id: known}}}
	s.replay(t.Context(), q, known, made)
	for i, want := range []key{made, known} {
		got, _ := q.Get()
		if got != want {
			t.Errorf("%s is number %d, want %s", got, i+1, want)
		}
		q.Done(got)
	}
}
