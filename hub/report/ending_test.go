package report

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// ended implements Options.Withdrawn. It records each generation of the binding once, and returns true at the first
// call for a generation.
type ended struct {
	mu       sync.Mutex
	reported []int64
}

func (e *ended) withdrawn(b hubv1.BindingObject) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if slices.Contains(e.reported, b.GetGeneration()) {
		return false
	}
	e.reported = append(e.reported, b.GetGeneration())
	return true
}

func (e *ended) generations() []int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.reported)
}

// deleted makes an object on the clusters a and b, and deletes it. It returns a function that counts the writes of the
// object's binding since then.
func deleted(t *testing.T, w *world) (e *ended, b *hubv1.ResourceBinding, writes func() int) {
	t.Helper()
	e = &ended{}
	w.withdrawn = e.withdrawn
	w.clock = slowClock{time.Now()}
	w.start()
	o := w.object("web", present("a"), present("b"))
	for _, cluster := range []string{"a", "b"} {
		w.applied(o, cluster, hubv1.HealthHealthy, two)
	}
	w.until("all rows", healthyEverywhere)
	writes = w.writes(&hubv1.ResourceBindingList{})
	return e, w.delete(o.GetUID()), writes
}

// delete changes the binding of the object web as the scheduler does for a deleted object.
func (w *world) delete(object types.UID) *hubv1.ResourceBinding {
	w.t.Helper()
	return w.change(func(b *hubv1.ResourceBinding) {
		for i, t := range b.Spec.Clusters {
			b.Spec.Clusters[i] = leaving(t.Name, hubv1.ReasonObjectDeleted, hubv1.RemovalDelete, object)
		}
	})
}

// gone simulates that the cluster deleted the copy: its watch no longer shows the copy.
func (w *world) gone(cluster string) {
	w.t.Helper()
	w.fleet.lose(cluster, types.NamespacedName{Namespace: w.namespace, Name: "web"})
	w.record(cluster, member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonWithdrawn})
}

func (w *world) tellsOf(e *ended, generation int64) {
	w.t.Helper()
	w.eventually("the end of the binding", func() (bool, string) {
		reported := e.generations()
		return slices.Equal(reported, []int64{generation}), "told of the generations " + fmt.Sprint(reported)
	})
}

func TestTheRowsOfADeletedObjectAreNotWritten(t *testing.T) {
	w := newWorld(t, "Widget")
	e, b, writes := deleted(t, w)
	w.gone("a")
	w.gone("b")
	w.tellsOf(e, b.Generation)
	w.eventually("the event", func() (bool, string) {
		reported := w.events.reported()
		return slices.Contains(reported, "Normal Withdrawn web: withdrawn from 2 clusters: a, b"), fmt.Sprint(reported)
	})
	if err := w.client.Delete(t.Context(), b); err != nil { // the scheduler deletes a binding in the same way
		t.Fatal(err)
	}
	w.eventually("the binding to be forgotten", func() (bool, string) {
		w.reporter.mu.Lock()
		defer w.reporter.mu.Unlock()
		return w.reporter.entries[client.ObjectKeyFromObject(b)] == nil, "it is remembered"
	})
	if n := writes(); n != 1 {
		t.Errorf("the binding was written %d times, want once, by the decision", n)
	}
}

func TestTheRowsOfADeletedObjectAreWrittenIf(t *testing.T) {
	tests := map[string]member.Outcome{
		"a copy waits for its finalizers": {Applied: metav1.ConditionFalse, Reason: hubv1.ReasonFinalizersRemain, Message: "finalizers"},
		"a cluster refuses":               {Applied: metav1.ConditionFalse, Reason: hubv1.ReasonForbidden, Message: "it may not"},
	}
	for name, outcome := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "Widget")
			e, b, _ := deleted(t, w)
			w.gone("a")
			w.record("b", outcome)
			w.until("the row to say so", func(s *hubv1.BindingStatus) bool {
				return s.Row("b").Reason == outcome.Reason && s.Row("a").Reason == hubv1.ReasonWithdrawn
			})
			if reported := e.generations(); len(reported) > 0 {
				t.Errorf("told of the end of the generations %v", reported)
			}
			w.gone("b")
			w.tellsOf(e, b.Generation)
		})
	}
	t.Run("a copy was orphaned", func(t *testing.T) {
		w := newWorld(t, "Widget")
		_, _, _ = deleted(t, w)
		w.gone("a")
		w.fleet.lose("b", types.NamespacedName{Namespace: w.namespace, Name: "web"})
		w.record("b", member.Outcome{
			Applied: metav1.ConditionTrue, Reason: hubv1.ReasonWithdrawn, Orphaned: &hubv1.OrphanedCopy{ClusterID: "b", UID: "member"},
		})
		w.until("the list of orphaned copies", func(s *hubv1.BindingStatus) bool { return len(s.Orphaned) == 1 })
	})
	t.Run("this replica does not lead", func(t *testing.T) {
		w := newWorld(t, "Widget")
		w.follows = true
		e, _, _ := deleted(t, w)
		w.gone("a")
		w.gone("b")
		w.until("the rows", func(s *hubv1.BindingStatus) bool {
			a, b := s.Row("a"), s.Row("b")
			return a != nil && b != nil && a.Reason == hubv1.ReasonWithdrawn && b.Reason == hubv1.ReasonWithdrawn
		})
		if reported := e.generations(); len(reported) > 0 {
			t.Errorf("told of the end of the generations %v", reported)
		}
	})
}

func TestTheLeaderWaitsForTheRowsOfOtherReplicas(t *testing.T) {
	w, e := newWorld(t, "Widget"), &ended{}
	w.clock, w.withdrawn = slowClock{time.Now()}, e.withdrawn
	all := replicas(w, "a", "b")
	o := w.object("web", present("a"), present("b"))
	for i, cluster := range []string{"a", "b"} {
		all[i].applied(o, cluster, hubv1.HealthHealthy, two)
	}
	w.until("all rows", healthyEverywhere)
	writes := w.writes(&hubv1.ResourceBindingList{})
	b := w.delete(o.GetUID())
	all[0].gone("a")
	all[1].gone("b")
	w.tellsOf(e, b.Generation)
	if n := writes(); n > 2 {
		t.Errorf("the binding was written %d times, want the decision and the row of the other replica", n)
	}
}
