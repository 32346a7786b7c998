package membership

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestLastObservedTimeAloneIsWrittenEveryThirtySeconds(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-d)} }
	for name, tc := range map[string]struct {
		reported   *metav1.Time
		observed   time.Duration // how long ago
		dueAt      time.Duration // how long ago
		moves, due bool
	}{
		"the first one":                            {nil, 0, 31 * time.Second, true, true},
		"30 s after the last write":                {ago(40 * time.Second), 5 * time.Second, 0, true, true},
		"29 s after it":                            {ago(40 * time.Second), 5 * time.Second, -time.Second, true, false},
		"a cluster that was not heard since":       {ago(40 * time.Second), 40 * time.Second, time.Minute, false, false},
		"one that another replica has heard later": {ago(10 * time.Second), 20 * time.Second, time.Minute, false, false},
		"parts of a second are no news":            {ago(2 * time.Second), 2*time.Second - time.Millisecond, time.Minute, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			at, due := observedTime(tc.reported, now.Add(-tc.observed), now.Add(-tc.dueAt), now)
			if (at != nil) != tc.moves || due != tc.due {
				t.Errorf("it moves to %v, due %t", at, due)
			}
		})
	}
}

func TestAClusterSaysWhenItWasLastObserved(t *testing.T) {
	s := newScene(t, "sights")
	s.ready("sights-id")
	first := s.get().Status.LastObservedTime
	if first == nil || time.Since(first.Time) > 15*time.Second {
		t.Fatalf("a cluster that has just connected was observed at %v", first)
	}
	later := connected("sights-id")
	later.LastObserved = first.Add(10 * time.Second)
	s.unchanged("an observation within 30 s of the last write", func() { links.become(s.name, later) })

	last := away(later)
	last.LastObserved = first.Add(12 * time.Second)
	links.become(s.name, last)
	s.is(hubv1.ConditionReady, metav1.ConditionFalse, hubv1.ReasonUnreachable, "refuses")
	if got := s.get().Status.LastObservedTime; !got.Time.Equal(first.Add(12 * time.Second)) {
		t.Errorf("a cluster that was lost was observed at %v, want %v", got, first.Add(12*time.Second))
	}
	s.unchanged("a cluster that is away", func() { links.become(s.name, last) })
}

// After a restart, the reconciler uses the time in the status, which an earlier process or another replica has written.
// It writes a new time only if this time is at least 30 s old.
func TestANewReplicaWritesADueLastObservedTime(t *testing.T) {
	s := newScene(t, "sights-taken")
	s.ready("sights-taken-id")
	old := time.Now().Add(-40 * time.Second).UTC().Format(time.RFC3339)
	links.become(s.name, connecting)
	s.must(hub.Status().Patch(t.Context(), s.get(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"lastObservedTime":"`+old+`"}}`))))
	reconciler.forget(s.name) // last, because the end of a running write would make a new record
	links.become(s.name, connected("sights-taken-id"))
	s.eventually("a new time", func() string {
		if at := s.get().Status.LastObservedTime; time.Since(at.Time) > 20*time.Second {
			return at.String()
		}
		return ""
	})
}
