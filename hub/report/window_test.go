package report

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hanse-dev/hanse/hub/pace"
)

// A step is a change of a binding, or a write of its status if write is true. at is the time after the start.
type step struct {
	at    time.Duration
	u     urgency
	write bool
}

// every returns changes at equal intervals up to a time. u says how soon each change must be written.
func every(interval, end time.Duration, u urgency) (steps []step) {
	for at := time.Duration(0); at <= end; at += interval {
		steps = append(steps, step{at: at, u: u})
	}
	return steps
}

// later moves the steps to a later time.
func later(after time.Duration, steps []step) []step {
	for i := range steps {
		steps[i].at += after
	}
	return steps
}

func TestWindow(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const ms = time.Millisecond
	tests := map[string]struct {
		steps []step
		want  time.Duration // when the window ends after the last step
	}{
		"the first result waits 50 ms for others": {
			steps: []step{{at: 0, u: result}}, want: 50 * ms,
		},
		"a further result is waited for 50 ms after each one": {
			steps: []step{{at: 0, u: result}, {at: 40 * ms, u: result}, {at: 80 * ms, u: result}}, want: 130 * ms,
		},
		"results that keep arriving are written a second after the first one": {
			steps: every(40*ms, 2*time.Second, result), want: time.Second,
		},
		"the first result of a decision counts, not the decision": {
			steps: append([]step{{at: 0, u: whenIdle}}, later(900*ms, every(40*ms, 2*time.Second, result))...), want: 1900 * ms,
		},
		"a result waits for others, however late it comes after its decision": {
			steps: []step{{at: 0, u: whenIdle}, {at: 980 * ms, u: result}}, want: 1030 * ms,
		},
		"a result does not move the end of a window that has ended": {
			steps: []step{{at: 0, u: result}, {at: 60 * ms, u: result}}, want: 50 * ms,
		},
		"a result does not delay a failure": {
			steps: []step{{at: 0, u: result}, {at: 30 * ms, u: failure}, {at: 30 * ms, u: result}, {at: 40 * ms, u: result}}, want: 30 * ms,
		},
		"a result does not delay a failure of an object that flaps": {
			steps: []step{
				{at: 0, write: true}, {at: 1, write: true}, {at: 2, write: true}, {at: 3, write: true}, {at: 4, write: true},
				{at: 5, write: true}, {at: 100 * ms, u: result}, {at: 300 * ms, u: failure}, {at: 400 * ms, u: result},
			},
			want: time.Second + 5,
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
	for ; now.Before(end); now = now.Add(20 * time.Millisecond) { // 50 urgent changes a second
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

// TestABindingGetsItsTurnAtTheEndOfItsWindow: a window collects the changes of a binding into one write. The binding is
// queued for the first end of the window. If a later change has moved the end, the binding waits for the new end.
func TestABindingGetsItsTurnAtTheEndOfItsWindow(t *testing.T) {
	clock := testclock.NewFakeClock(time.Now())
	r := &Reporter{
		opts:    Options{Clock: clock, Shard: Shard{Holds: func(string) bool { return true }}, Pacer: pace.New(clock)},
		entries: map[types.NamespacedName]*entry{},
	}
	b := bindingOf(1, present("a"), present("b"), present("c"))
	key := client.ObjectKeyFromObject(b)
	r.bindingChanged(b, pace.FirstResult)
	r.Record(b, "a", appliedAt(1))
	clock.Step(firstWindow - 1)
	r.Record(b, "b", appliedAt(1))
	clock.Step(1)
	if turn, _, left := r.turn(key); turn != nil || left != firstWindow-1 {
		t.Fatalf("at the first end: turn %v, %s left; want none and %s", turn, left, firstWindow-1)
	}
	r.Record(b, "c", appliedAt(1))
	turn, class, left := r.turn(key)
	if turn == nil || class != pace.FirstResult || left != 0 {
		t.Fatalf("after the last result: turn %v, class %d, %s left; want a turn for a first result", turn, class, left)
	}
	turn.Done()
}

// TestABindingThatWaitedForATurnIsWrittenWhenItHasOne: a window collects the changes of a binding into one write. Once
// hub/pace permits the write, no new window delays it.
func TestABindingThatWaitedForATurnIsWrittenWhenItHasOne(t *testing.T) {
	clock := testclock.NewFakeClock(time.Now())
	r := &Reporter{
		opts:    Options{Clock: clock, Shard: Shard{Holds: func(string) bool { return true }}, Pacer: pace.New(clock)},
		entries: map[types.NamespacedName]*entry{},
	}
	b := bindingOf(1, present("a"))
	key := client.ObjectKeyFromObject(b)
	r.bindingChanged(b, pace.FirstResult)
	r.shut(key)
	var others []*pace.Turn
	for n := 0; ; n++ {
		turn := r.opts.Pacer.Try(pace.FirstResult, n, func() {})
		if turn == nil {
			break
		}
		others = append(others, turn)
	}
	if turn := r.try(key, pace.Rows); turn != nil {
		t.Fatal("there is a turn beyond the width")
	}
	if _, _, left := r.turn(key); left == 0 {
		t.Fatal("a binding without a turn asks again at once")
	}
	for _, turn := range others {
		turn.Done()
	}
	turn, class, left := r.turn(key)
	if turn == nil || class != pace.Rows {
		t.Fatalf("after the others: turn %v, class %d, %s left; want a turn for rows", turn, class, left)
	}
	turn.Done()
}
