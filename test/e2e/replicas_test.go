package e2e

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hanse-dev/hanse/test/fleet"
)

// TestAnotherReplicaTakesOver runs two hub processes. The leader ends on request, is killed, and is paused, and each
// time the other process must take over.
func TestAnotherReplicaTakesOver(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	w := widget(ns, "baton")
	placeWidgets(t, ns)
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error { return allApplied(ctx, ns, 1) })
	uids := memberUIDs(ctx, t, ns)
	t.Cleanup(func() {
		if suite.hub.Ended() {
			startHub(t)
		}
	})
	replicas := int64(3)
	edit := func(t *testing.T) {
		t.Helper()
		replicas++
		must(t, suite.Hub.Patch(ctx, widget(ns, "baton"), client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))))
	}
	arrives := func(t *testing.T, within time.Duration) {
		t.Helper()
		begin := time.Now()
		eventually(t, within, func() error { return replicasOn(ctx, shanghai, w, replicas) })
		t.Logf("an edit came through after %s", time.Since(begin).Round(100*time.Millisecond))
		for _, m := range members {
			// Each replica works on its own members, so the edit reaches the members at different times.
			eventually(t, within, func() error { return replicasOn(ctx, m, w, replicas) })
		}
	}

	t.Run("asked to end, the leader hands over at once", func(t *testing.T) {
		old, next := suite.hub, replica(t, "hub-b")
		suite.hub = next
		must(t, old.Signal(syscall.SIGTERM))
		edit(t)
		arrives(t, 10*time.Second)
		must(t, old.Stop())
	})
	t.Run("killed, the leader is replaced when its Lease runs out", func(t *testing.T) {
		old, next := suite.hub, replica(t, "hub-c")
		suite.hub = next
		must(t, old.Kill())
		edit(t)
		// The leader's Lease lasts 13 s and is checked every 0.75 to 1.65 s. A member's Lease lasts 15 s.
		arrives(t, 25*time.Second)
	})
	t.Run("stopped and resumed, the old leader undoes nothing", func(t *testing.T) {
		old, next := suite.hub, replica(t, "hub-d")
		suite.hub = next
		edit(t) // the leader is paused while it applies this edit
		must(t, old.Signal(syscall.SIGSTOP))
		edit(t)
		arrives(t, 25*time.Second)
		edit(t)
		arrives(t, 25*time.Second) // on a busy machine, the signal may take effect only after the previous edit
		eventually(t, normal, func() error { return allApplied(ctx, ns, 1) })
		before := generations(t, w)
		must(t, old.Signal(syscall.SIGCONT))
		eventually(t, normal, func() error { return ended(old) })
		for member, generation := range generations(t, w) {
			if generation != before[member] {
				t.Errorf("on %s the resumed leader wrote: generation %d is now %d", member, before[member], generation)
			}
		}
		arrives(t, time.Second)
	})

	edit(t)
	arrives(t, 10*time.Second)
	eventually(t, normal, func() error { return rowIs(ctx, w, shanghai, metav1.ConditionTrue, "") })
	sameCopies(t, uids, memberUIDs(ctx, t, ns))
}

// replica starts another hub process. The process ends with the test, unless the test has stored it as the suite's hub.
func replica(t *testing.T, name string) *fleet.HubProcess {
	t.Helper()
	h, err := suite.StartHub(t.Context(), name)
	t.Cleanup(func() {
		if h != nil && h != suite.hub {
			_ = h.Kill()
		}
	})
	must(t, err)
	return h
}

func generations(t *testing.T, w *unstructured.Unstructured) map[string]int64 {
	t.Helper()
	out := map[string]int64{}
	for _, m := range members {
		copied, err := on(t.Context(), m, w)
		must(t, err)
		out[m] = copied.GetGeneration()
	}
	return out
}
