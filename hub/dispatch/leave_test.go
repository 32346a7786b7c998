package dispatch

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// TestAMemberThatIsAddedAndRemovedLeavesNothingBehind connects a member 300 times, ends the connection while the
// workers run, and counts the goroutines and the memory that are left. Some calls fail, so that the queue holds back
// writes when the connection ends.
func TestAMemberThatIsAddedAndRemovedLeavesNothingBehind(t *testing.T) {
	const rounds, warmUp, objects = 300, 30, 40
	ctrl.SetLogger(logr.Discard()) // without a logger, controller-runtime keeps all derived loggers
	calls := 0
	m := &fakeMember{name: "eu"}
	m.answer = func(context.Context, string) member.Outcome {
		m.mu.Lock()
		defer m.mu.Unlock()
		if calls++; calls%100 < 20 {
			return member.Outcome{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonServerError, Retry: member.RetrySoon}
		}
		m.copies, m.order = nil, nil // the member of the next round has no copies
		return member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied}
	}
	w := newWorld(t, m)
	var keys []types.NamespacedName
	for i := range objects {
		keys = append(keys, client.ObjectKeyFromObject(w.add(kind, fmt.Sprint("w", i))))
	}
	var goroutines int
	var heap uint64
	for round := range rounds {
		if round == warmUp {
			goroutines, heap = w.settled()
		}
		ctx, cancel := context.WithCancel(t.Context())
		if err := w.dispatcher.Engage(ctx, "eu"); err != nil {
			t.Fatal(err)
		}
		q := w.dispatcher.queue("eu")
		for _, key := range keys {
			w.dispatcher.Observed("eu", key, member.Observation{})
		}
		if round%2 == 0 { // in the other rounds, the link ends before the first call
			w.eventually(10*time.Second, func() string {
				m.mu.Lock()
				defer m.mu.Unlock()
				if m.served < 5 {
					return fmt.Sprintf("%d calls", m.served)
				}
				m.served = 0
				return ""
			})
		}
		cancel()
		<-q.ended
	}
	after, heapAfter := w.settled()
	t.Logf("goroutines %d and %d, heap %d KiB and %d KiB", goroutines, after, heap>>10, heapAfter>>10)
	if after > goroutines+2 {
		t.Errorf("goroutines have grown from %d to %d", goroutines, after)
	}
	if heapAfter > heap+1<<20 {
		t.Errorf("the heap has grown from %d to %d KiB", heap>>10, heapAfter>>10)
	}
}

// settled waits until the number of goroutines no longer falls. It returns this number and the used memory.
func (w *world) settled() (goroutines int, heap uint64) {
	w.Helper()
	goroutines, same := runtime.NumGoroutine(), 0
	w.eventually(30*time.Second, func() string {
		runtime.GC()
		if now := runtime.NumGoroutine(); now < goroutines {
			goroutines, same = now, 0
		}
		if same++; same < 50 {
			return "goroutines still end"
		}
		return ""
	})
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return goroutines, stats.HeapAlloc
}
