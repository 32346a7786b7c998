package report

import (
	"testing"
	"time"

	"github.com/hanse-dev/hanse/hub/pace"
)

func TestWindow(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const ms = time.Millisecond
	// A step wakes the window at a time after the start, or writes.
	type step struct {
		at    time.Duration
		u     urgency
		write bool
	}
	tests := map[string]struct {
		steps []step
		want  time.Duration // when it is due after the last step
	}{
		"the first result waits 50 ms for others": {
			steps: []step{{at: 0, u: result}}, want: 50 * ms,
		},
		"a second result in the window does not move its end": {
			steps: []step{{at: 0, u: result}, {at: 40 * ms, u: result}}, want: 50 * ms,
		},
		"the last result ends the window": {
			steps: []step{{at: 0, u: result}, {at: 30 * ms, u: lastResult}}, want: 30 * ms,
		},
		"a failure ends the window": {
			steps: []step{{at: 0, u: result}, {at: 30 * ms, u: failure}}, want: 30 * ms,
		},
		"a decision without results waits a second": {
			steps: []step{{at: 0, u: whenIdle}}, want: time.Second,
		},
		"a result draws the end of such a wait nearer": {
			steps: []step{{at: 0, u: whenIdle}, {at: 100 * ms, u: result}}, want: 150 * ms,
		},
		"the window doubles with a write": {
			steps: []step{{at: 0, u: result}, {at: 50 * ms, write: true}, {at: 60 * ms, u: result}},
			want:  160 * ms,
		},
		"the window grows to a second": {
			steps: []step{
				{at: 0, write: true}, {at: 1, write: true}, {at: 2, write: true}, {at: 3, write: true}, {at: 4, write: true},
				{at: 5, write: true}, {at: 6, write: true}, {at: 10 * ms, u: result},
			},
			want: 1010 * ms,
		},
		"an object that flaps is not written at once for ever": {
			steps: []step{
				{at: 0, write: true}, {at: 1, write: true}, {at: 2, write: true}, {at: 3, write: true}, {at: 4, write: true},
				{at: 5, write: true}, {at: 300 * ms, u: failure},
			},
			want: time.Second + 5,
		},
		"a calm binding starts with the short window again": {
			steps: []step{{at: 0, write: true}, {at: 1, write: true}, {at: 3 * time.Second, u: result}},
			want:  3050 * ms,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var w window
			for _, s := range tc.steps {
				now := start.Add(s.at)
				if s.write {
					w.shut(now)
					w.written(now)
					continue
				}
				w.wake(now, s.u, pace.MergedStatus)
			}
			if got := w.due.Sub(start); got != tc.want {
				t.Errorf("due after %s, want %s", got, tc.want)
			}
		})
	}
}

func TestAWindowHasTheClassOfItsMostUrgentChange(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var w window
	for _, step := range []struct {
		what  string
		class pace.Class
		after time.Duration
		woken bool
		want  pace.Class
	}{
		{"the first change", pace.Many, time.Minute, true, pace.Many},
		{"a more urgent one that is due later", pace.Rows, time.Hour, true, pace.Rows},
		{"a less urgent one that is due later", pace.Many, time.Hour, false, pace.Rows},
		{"a less urgent one that is due before", pace.Many, time.Second, true, pace.Rows},
	} {
		if woken := w.wakeAt(now, now.Add(step.after), step.class); woken != step.woken || w.class != step.want {
			t.Errorf("%s: woken %t, class %d; want %t, %d", step.what, woken, w.class, step.woken, step.want)
		}
	}
	if w.due.Sub(now) != time.Second {
		t.Errorf("due after %s, want that of the earliest", w.due.Sub(now))
	}
	w.shut(now)
	if w.wakeAt(now, now, pace.Many); w.class != pace.Many {
		t.Errorf("the next window has class %d", w.class)
	}
}

func TestWindowBoundsTheWritesOfAFlappingObject(t *testing.T) {
	var w window
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	end, writes := now.Add(time.Minute), 0
	for ; now.Before(end); now = now.Add(20 * time.Millisecond) { // 50 changes a second, each of them urgent
		w.wake(now, failure, pace.Failure)
		if !now.Before(w.due) {
			w.shut(now)
			w.written(now)
			writes++
		}
	}
	if writes > 70 {
		t.Errorf("%d writes in a minute, want about one a second", writes)
	}
}
