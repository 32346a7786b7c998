package report

import (
	"testing"
	"time"
)

func TestWindow(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	// A step wakes the window at a time after the start, or writes.
	type step struct {
		at    time.Duration
		u     urgency
		load  load
		write bool
	}
	tests := map[string]struct {
		steps []step
		want  time.Duration // when it is due after the last step
	}{
		"the first result waits 50 ms for others": {
			steps: []step{{at: 0, u: soon}}, want: 50 * time.Millisecond,
		},
		"a second result in the window does not move its end": {
			steps: []step{{at: 0, u: soon}, {at: 40 * time.Millisecond, u: soon}}, want: 50 * time.Millisecond,
		},
		"the last result ends the window": {
			steps: []step{{at: 0, u: soon}, {at: 30 * time.Millisecond, u: atOnce}}, want: 30 * time.Millisecond,
		},
		"a decision without results waits a second": {
			steps: []step{{at: 0, u: whenIdle}}, want: time.Second,
		},
		"a result draws the end of such a wait nearer": {
			steps: []step{{at: 0, u: whenIdle}, {at: 100 * time.Millisecond, u: soon}}, want: 150 * time.Millisecond,
		},
		"the window doubles with a write": {
			steps: []step{{at: 0, u: soon}, {at: 50 * time.Millisecond, write: true}, {at: 60 * time.Millisecond, u: soon}},
			want:  160 * time.Millisecond,
		},
		"the window grows to a second": {
			steps: []step{
				{at: 0, write: true}, {at: 1, write: true}, {at: 2, write: true}, {at: 3, write: true}, {at: 4, write: true},
				{at: 5, write: true}, {at: 6, write: true}, {at: 10 * time.Millisecond, u: soon},
			},
			want: 1010 * time.Millisecond,
		},
		"an object that flaps is not written at once for ever": {
			steps: []step{
				{at: 0, write: true}, {at: 1, write: true}, {at: 2, write: true}, {at: 3, write: true}, {at: 4, write: true},
				{at: 5, write: true}, {at: 300 * time.Millisecond, u: atOnce},
			},
			want: time.Second + 5,
		},
		"a calm binding starts with the short window again": {
			steps: []step{{at: 0, write: true}, {at: 1, write: true}, {at: 3 * time.Second, u: soon}},
			want:  3050 * time.Millisecond,
		},
		"500 waiting bindings share longer windows": {
			steps: []step{{at: 0, u: soon, load: load{waiting: 500, clusters: 3}}}, want: time.Second,
		},
		"20 waiting bindings make one of thirty clusters wait longer than one of three": {
			steps: []step{{at: 0, u: soon, load: load{waiting: 20, clusters: 30}}}, want: 600 * time.Millisecond,
		},
		"20 waiting bindings hardly make one of three clusters wait": {
			steps: []step{{at: 0, u: soon, load: load{waiting: 20, clusters: 3}}}, want: 60 * time.Millisecond,
		},
		"500 waiting bindings do not hold up one that is complete": {
			steps: []step{{at: 0, u: atOnce, load: load{waiting: 500}}}, want: 0,
		},
		"one more of several results puts off the end": {
			steps: []step{{at: 0, u: soon}, {at: 40 * time.Millisecond, u: following}}, want: 240 * time.Millisecond,
		},
		"results that keep coming put it off for a second": {
			steps: []step{
				{at: 0, u: soon}, {at: 40 * time.Millisecond, u: following}, {at: 600 * time.Millisecond, u: following}, {at: 950 * time.Millisecond, u: following},
			},
			want: time.Second,
		},
		"those of thirty clusters put it off for longer": {
			steps: []step{
				{at: 0, u: soon}, {at: 40 * time.Millisecond, u: following}, {at: 2200 * time.Millisecond, u: following, load: load{clusters: 30}},
				{at: 3900 * time.Millisecond, u: following, load: load{clusters: 30}},
			},
			want: 4 * time.Second,
		},
		"those of a hundred for no longer than five seconds": {
			steps: []step{
				{at: 0, u: soon}, {at: 40 * time.Millisecond, u: following}, {at: 4900 * time.Millisecond, u: following, load: load{clusters: 100}},
			},
			want: 5 * time.Second,
		},
		"under load they wait longer for each other": {
			steps: []step{{at: 0, u: soon}, {at: 40 * time.Millisecond, u: following, load: load{waiting: 20, clusters: 30}}},
			want:  640 * time.Millisecond,
		},
		"the last one ends it": {
			steps: []step{{at: 0, u: soon}, {at: 40 * time.Millisecond, u: following}, {at: 90 * time.Millisecond, u: lastResult}, {at: 95 * time.Millisecond, u: following}},
			want:  90 * time.Millisecond,
		},
		"a failure ends it": {
			steps: []step{{at: 0, u: soon}, {at: 40 * time.Millisecond, u: following}, {at: 90 * time.Millisecond, u: atOnce}, {at: 95 * time.Millisecond, u: following}},
			want:  90 * time.Millisecond,
		},
		"a throttling hub gets 5 s even from what is complete": {
			steps: []step{{at: 0, u: atOnce, load: load{throttled: true}}}, want: 5 * time.Second,
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
				w.wake(now, s.u, s.load)
			}
			if got := w.due.Sub(start); got != tc.want {
				t.Errorf("due after %s, want %s", got, tc.want)
			}
		})
	}
}

func TestManyBindingsWakeOneAfterTheOther(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		wake  func(w *window)
		want  time.Duration
		waits bool
	}{
		"it waits for its turn": {func(w *window) { w.wakeAfter(now, 2*time.Second) }, 2 * time.Second, false},
		"a second such event does not put it off": {func(w *window) {
			w.wakeAfter(now, 2*time.Second)
			w.wakeAfter(now, 9*time.Second)
		}, 2 * time.Second, false},
		"a result draws it nearer": {func(w *window) {
			w.wakeAfter(now, 9*time.Second)
			w.wake(now, soon, load{})
		}, firstWindow, true},
		"what waits for more results goes on to": {func(w *window) {
			w.wake(now, whenIdle, load{})
			w.wakeAfter(now, perTurn)
		}, perTurn, true},
		"rows that are held stay so": {func(w *window) {
			w.wake(now, soon, load{})
			w.hold(now, load{backlog: 1000})
			w.wakeAfter(now, 0)
		}, heldAtMost, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var w window
			tc.wake(&w)
			if got := w.due.Sub(now); got != tc.want || w.waits() != tc.waits {
				t.Errorf("due after %s, waits %t; want %s, %t", got, w.waits(), tc.want, tc.waits)
			}
		})
	}
}

func TestTurns(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	given := turns{per: perTurn, longest: longestTurns}
	at := make([]time.Duration, 0, 4000)
	for range cap(at) {
		given.last = given.after(now)
		at = append(at, given.last.Sub(now))
	}
	round := int(longestTurns/perTurn) + 1
	for i, want := range map[int]time.Duration{
		0: 0, 10: 10 * perTurn, round - 1: longestTurns, round: 0, round + 10: 10 * perTurn,
	} {
		if at[i] != want {
			t.Errorf("turn %d is after %s, want %s", i+1, at[i], want)
		}
	}
	if next := given.after(now.Add(time.Hour)); !next.Equal(now.Add(time.Hour)) {
		t.Errorf("the first turn after an hour is %s from then", next.Sub(now.Add(time.Hour)))
	}
}

func TestWindowBoundsTheWritesOfAFlappingObject(t *testing.T) {
	var w window
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	end, writes := now.Add(time.Minute), 0
	for ; now.Before(end); now = now.Add(20 * time.Millisecond) { // 50 changes a second, each of them urgent
		w.wake(now, atOnce, load{})
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
