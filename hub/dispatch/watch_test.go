package dispatch

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/member"
)

// listed is a client that lists these bindings.
type listed struct {
	client.Client
	bindings []hubv1.ResourceBinding
}

func (l listed) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if all, ok := list.(*hubv1.ResourceBindingList); ok {
		all.Items = l.bindings
	}
	return nil
}

func (l listed) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	*into.(*hubv1.ResourceBinding) = l.bindings[0]
	return nil
}

// bindingFor returns a binding that follows the placement with the given UID. Its only target is the cluster eu.
func bindingFor(name, placement string, state hubv1.TargetState) hubv1.ResourceBinding {
	b := hubv1.ResourceBinding{}
	b.Namespace, b.Name = "ns", name
	b.Spec.PlacementRef = &hubv1.PlacementReference{Kind: "Placement", Name: "p", UID: types.UID(placement)}
	b.Spec.Clusters = []hubv1.BindingTarget{{Name: "eu", State: state}}
	return b
}

// idleQueue returns a queue without workers.
func idleQueue() *queue {
	return &queue{gate: newGate("eu", 8, clock.RealClock{}), copies: newCopies(clock.RealClock{})}
}

// dispatcherOf returns a dispatcher with this queue of the cluster eu.
func dispatcherOf(c client.Client, q *queue) *Dispatcher {
	d := New(Options{Client: c})
	d.queues["eu"] = q
	return d
}

// crowded is a client that counts the lists that run at the same time, until the test ends them.
type crowded struct {
	listed
	running, all *atomic.Int32
	end          chan struct{}
}

func (c crowded) List(_ context.Context, _ client.ObjectList, _ ...client.ListOption) error {
	c.running.Add(1)
	c.all.Add(1)
	<-c.end
	c.running.Add(-1)
	return nil
}

// TestAFewWakesRunAtATime: after a restart, the links of all members come up at once.
func TestAFewWakesRunAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := crowded{running: &atomic.Int32{}, all: &atomic.Int32{}, end: make(chan struct{})}
		d := New(Options{Client: c})
		for range 100 {
			go d.WakeKind(t.Context(), schema.GroupKind{Kind: "Widget"}, "eu")
		}
		synctest.Wait()
		if running := int(c.running.Load()); running != 2*runtime.GOMAXPROCS(0) {
			t.Errorf("%d lists of bindings run at the same time, want %d", running, 2*runtime.GOMAXPROCS(0))
		}
		close(c.end)
		synctest.Wait()
		if all := c.all.Load(); all != 200 { // each wake lists the namespaced bindings and the others
			t.Errorf("%d lists ended, want 200", all)
		}
	})
}

// woken returns the names of the bindings that f queues for the cluster eu. recorded are the bindings that the queue
// has processed before.
func woken(recorded []string, bindings []hubv1.ResourceBinding, f func(*Dispatcher)) []string {
	q := idleQueue()
	defer q.gate.ShutDown()
	for _, name := range recorded {
		q.copies.set(types.NamespacedName{Namespace: "ns", Name: name}, record{})
	}
	f(dispatcherOf(listed{bindings: bindings}, q))
	var names []string
	for key := range q.gate.order.queued {
		names = append(names, key.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestAPlacementWakesItsBindings(t *testing.T) {
	placement := func(uid string, generation int64) hubv1.PlacementObject {
		p := &hubv1.Placement{}
		p.Namespace, p.Name, p.UID, p.Generation = "ns", "p", types.UID(uid), generation
		return p
	}
	bindings := []hubv1.ResourceBinding{
		bindingFor("holds", "one", hubv1.TargetPresent), bindingFor("withdraws", "one", hubv1.TargetAbsent), bindingFor("other", "two", hubv1.TargetAbsent),
	}
	tests := map[string]struct {
		before, after hubv1.PlacementObject
		want          []string
	}{
		"a change of its status wakes none":                       {before: placement("one", 1), after: placement("one", 1)},
		"a change of its spec wakes all that follow it":           {before: placement("one", 1), after: placement("one", 2), want: []string{"holds", "withdraws"}},
		"its end wakes those that withdraw":                       {before: placement("one", 1), want: []string{"withdraws"}},
		"another one of the same name and generation is a change": {before: placement("one", 1), after: placement("two", 1), want: []string{"other", "withdraws"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := woken(nil, bindings, func(d *Dispatcher) {
				feed := changes.NewFeed()
				feed.Placements.On(changes.Deleted|changes.Spec, d.PlacementChanged)
				if tc.after == nil {
					feed.Placements.Handler(t.Context()).OnDelete(tc.before)
				} else {
					feed.Placements.Handler(t.Context()).OnUpdate(tc.before, tc.after)
				}
			})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("woken (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInitialListsWaitBehindChanges(t *testing.T) {
	holds := bindingFor("holds", "one", hubv1.TargetPresent)
	holds.Spec.ObjectRef.Kind = "Widget"
	policy := &hubv1.OverridePolicy{}
	policy.Namespace = "ns"
	policy.Spec.ResourceSelectors = []hubv1.ResourceSelector{{Kind: "Widget"}}
	placement := &hubv1.Placement{}
	placement.UID = "one"
	id := hubv1.ObjectIdentity{Kind: "Widget", Namespace: "ns", Name: "holds"}
	tests := map[string]struct {
		wake func(*Dispatcher)
		want []int
	}{
		"a binding of the first list": {
			func(d *Dispatcher) { d.BindingChanged(t.Context(), changes.Binding{After: &holds, Initial: true}) }, []int{lowPriority},
		},
		"a new binding": {
			func(d *Dispatcher) { d.BindingChanged(t.Context(), changes.Binding{After: &holds}) }, []int{normalPriority},
		},
		"a policy of the first list": {
			func(d *Dispatcher) {
				d.OverridePolicyChanged(t.Context(), changes.OverridePolicy{After: policy, Initial: true})
			}, []int{lowPriority},
		},
		"a placement of the first list": {
			func(d *Dispatcher) {
				d.PlacementChanged(t.Context(), changes.Placement{After: placement, Initial: true})
			}, []int{lowPriority},
		},
		"an object that changed": {
			func(d *Dispatcher) { d.WakeObject(t.Context(), id) }, []int{normalPriority},
		},
		"a copy that changed": {
			func(d *Dispatcher) { d.Observed("eu", id.BindingKey(), member.Observation{}) }, []int{normalPriority},
		},
		"a kind whose copies on a cluster have been read": {
			func(d *Dispatcher) { d.WakeKind(t.Context(), schema.GroupKind{Kind: "Widget"}, "eu") }, []int{lowPriority},
		},
		"a kind that has been read on another cluster": {
			func(d *Dispatcher) { d.WakeKind(t.Context(), schema.GroupKind{Kind: "Widget"}, "us") }, nil,
		},
		"a kind that has been read on the hub": {
			func(d *Dispatcher) { d.WakeKind(t.Context(), schema.GroupKind{Kind: "Widget"}) }, []int{lowPriority},
		},
		"another kind": {
			func(d *Dispatcher) { d.WakeKind(t.Context(), schema.GroupKind{Kind: "Gadget"}) }, nil,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			q := idleQueue()
			defer q.gate.ShutDown()
			tc.wake(dispatcherOf(listed{bindings: []hubv1.ResourceBinding{holds}}, q))
			var got []int
			for _, priority := range q.gate.order.queued {
				got = append(got, priority)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("queued at (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsSeenOfACopyWhileItIsWrittenCountsWhenTheAnswerIsThere(t *testing.T) {
	tests := map[string]struct {
		seen func(written member.Observation) []member.Observation
		want bool
	}{
		"our write alone": {
			seen: func(o member.Observation) []member.Observation { return []member.Observation{o} },
		},
		"somebody's change, which our write takes back": {
			seen: func(o member.Observation) []member.Observation {
				before := o
				before.ResourceVersion, before.Hash = "0", "i"
				return []member.Observation{before, o}
			},
		},
		"our write and somebody's change of it": {
			seen: func(o member.Observation) []member.Observation {
				later := o
				later.ResourceVersion, later.Hash = "9", "i"
				return []member.Observation{o, later}
			}, want: true,
		},
		"our write and its deletion": {
			seen: func(o member.Observation) []member.Observation { return []member.Observation{o, {}} }, want: true,
		},
		"nothing": {
			seen: func(member.Observation) []member.Observation { return nil },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eu := takes("eu")
			w := newWorld(t, eu)
			key := client.ObjectKeyFromObject(w.add(schema.GroupVersionKind{Version: "v1", Kind: "Widget"}, "a"))
			d := w.dispatcher
			q, err := newQueue("eu", d.opts, d.fresh, d.renderings)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(q.gate.ShutDown) // shut down at the end, because no worker takes the keys
			d.queues["eu"] = q
			eu.ahead = func(written member.Observation) {
				for _, seen := range tc.seen(written) {
					d.Observed("eu", key, seen)
				}
				if q.gate.Len() > 0 {
					t.Error("queued before the answer")
				}
			}
			if _, err := q.Reconcile(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			if len(eu.written()) != 1 {
				t.Fatalf("written: %v", eu.written())
			}
			if got := q.gate.Len() == 1; got != tc.want {
				t.Errorf("queued anew: %t, want %t", got, tc.want)
			}
			if tc.want {
				_, _ = q.gate.Get()
				q.gate.Done(key)
			}
			d.Observed("eu", key, member.Observation{})
			if q.gate.Len() != 1 {
				t.Error("what is seen after the answer is not queued")
			}
		})
	}
}

func TestAClusterThatIsBackWakesWhatNamesItAndWhatNamedIt(t *testing.T) {
	got := woken([]string{"dropped"}, []hubv1.ResourceBinding{bindingFor("holds", "one", hubv1.TargetPresent)}, func(d *Dispatcher) {
		d.WakeCluster(t.Context(), "eu")
	})
	if diff := cmp.Diff([]string{"dropped", "holds"}, got); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
}
