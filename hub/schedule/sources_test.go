package schedule

import (
	"context"
	"testing"
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
	"github.com/hanse-dev/hanse/internal/informer"
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
	n int
}

func (q *behinds) AddWithOpts(o priorityqueue.AddOpts, keys ...key) {
	if o.After == 0 && *o.Priority == handler.LowPriority {
		q.n += len(keys)
	}
}

// threeBindings is a client that lists three bindings, and no other objects.
type threeBindings struct{ client.Client }

func (threeBindings) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if list, ok := into.(*hubv1.ResourceBindingList); ok {
		list.Items = make([]hubv1.ResourceBinding, 3)
	}
	return nil
}

func TestObjectsWakeBehindOthersWhenAClusterMovesByItself(t *testing.T) {
	before := &hubv1.MemberCluster{}
	before.Generation, before.Labels = 1, map[string]string{"tier": "gold"}
	before.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: metav1.ConditionTrue}}
	for name, test := range map[string]struct {
		change func(*hubv1.MemberCluster)
		woken  int
		// waits is true if removals wait for the decisions on the objects.
		waits bool
	}{
		"it is lost": {func(c *hubv1.MemberCluster) { c.Status.Conditions[0].Status = metav1.ConditionFalse }, 3, false},
		"it is lost and said to be unreachable": {func(c *hubv1.MemberCluster) {
			c.Status.Conditions[0].Status = metav1.ConditionFalse
			c.Status.Taints = []corev1.Taint{{Key: "gone", Effect: corev1.TaintEffectNoExecute}}
		}, 3, false},
		"it answers and has a taint": {func(c *hubv1.MemberCluster) {
			c.Status.Taints = []corev1.Taint{{Key: "slow", Effect: corev1.TaintEffectNoExecute}}
		}, 3, false},
		"somebody labels it":                {func(c *hubv1.MemberCluster) { c.Labels["tier"] = "silver" }, 3, true},
		"somebody changes its spec":         {func(c *hubv1.MemberCluster) { c.Generation++ }, 3, true},
		"somebody changes it as it is lost": {func(c *hubv1.MemberCluster) { c.Generation++; c.Status.Conditions = nil }, 3, true},
		"another one has its name":          {func(c *hubv1.MemberCluster) { c.UID = "other" }, 3, true},
		"its last contact was later":        {func(c *hubv1.MemberCluster) { c.ResourceVersion = "2" }, 0, false},
	} {
		after, q := before.DeepCopy(), &behinds{}
		test.change(after)
		s := &Scheduler{
			shared: shared{removals: removals{pending: pending{clock: clock.RealClock{}}}}, opts: Options{Client: threeBindings{}},
			lead: lead{ctx: t.Context(), queue: q},
		}
		feed := changes.NewFeed()
		feed.Clusters.On(changes.All, s.ClusterChanged)
		feed.Clusters.Handler(t.Context()).OnUpdate(before, after)
		if q.n != test.woken {
			t.Errorf("%s: %d objects wake, want %d", name, q.n, test.woken)
		}
		if waits := s.shared.removals.pending.until(time.Now()); waits != test.waits {
			t.Errorf("%s: removals wait for these objects: %t, want %t", name, waits, test.waits)
		}
	}
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
