package report

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestAWindowIsHeldForABacklog(t *testing.T) {
	const many = 10 * smallBacklog
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	// A step wakes the window, or is the end of its wait with a backlog, or the end of the backlog, or of a run.
	type step struct {
		at      time.Duration
		wake    *urgency
		due     bool
		backlog int
		release bool
		end     bool
	}
	by := func(u urgency) *urgency { return &u }
	tests := map[string]struct {
		steps []step
		want  time.Duration // when it is due after the last step; -1: it has ended
	}{
		"it ends as ever without a backlog": {
			steps: []step{{wake: by(soon)}, {at: 50 * time.Millisecond, due: true}}, want: -1,
		},
		"it ends as ever with a small one": {
			steps: []step{{wake: by(soon)}, {at: 50 * time.Millisecond, due: true, backlog: smallBacklog}}, want: -1,
		},
		"it is held for 10 s": {
			steps: []step{{wake: by(soon)}, {at: 50 * time.Millisecond, due: true, backlog: many}}, want: 10050 * time.Millisecond,
		},
		"it ends after 10 s whatever there is to do": {
			steps: []step{
				{wake: by(soon)}, {at: 50 * time.Millisecond, due: true, backlog: many}, {at: 10050 * time.Millisecond, due: true, backlog: many},
			},
			want: -1,
		},
		"it ends with the backlog": {
			steps: []step{{wake: by(soon)}, {at: 50 * time.Millisecond, due: true, backlog: many}, {at: time.Second, release: true}}, want: time.Second,
		},
		"a result does not draw the end nearer": {
			steps: []step{{wake: by(soon)}, {at: 50 * time.Millisecond, due: true, backlog: many}, {at: 60 * time.Millisecond, wake: by(soon)}},
			want:  10050 * time.Millisecond,
		},
		"nor does the last one": {
			steps: []step{{wake: by(soon)}, {at: 50 * time.Millisecond, due: true, backlog: many}, {at: 60 * time.Millisecond, wake: by(lastResult)}},
			want:  10050 * time.Millisecond,
		},
		"a failure does": {
			steps: []step{{wake: by(soon)}, {at: 50 * time.Millisecond, due: true, backlog: many}, {at: 60 * time.Millisecond, wake: by(atOnce)}},
			want:  60 * time.Millisecond,
		},
		"a failure is not held": {
			steps: []step{{wake: by(soon)}, {at: 10 * time.Millisecond, wake: by(atOnce)}, {at: 10 * time.Millisecond, due: true, backlog: many}}, want: -1,
		},
		"what was released is not held again before all was told": {
			steps: []step{
				{wake: by(soon)}, {at: 50 * time.Millisecond, due: true, backlog: many}, {at: time.Second, release: true},
				{at: time.Second, due: true, backlog: many}, {at: time.Second, wake: by(soon)}, {at: 1050 * time.Millisecond, due: true, backlog: many},
			},
			want: -1,
		},
		"what comes after a run has 10 s of its own": {
			steps: []step{
				{wake: by(soon)}, {at: 50 * time.Millisecond, due: true, backlog: many}, {at: time.Second, release: true},
				{at: time.Second, due: true}, {at: time.Second, end: true},
				{at: 10 * time.Second, wake: by(lastResult)}, {at: 10 * time.Second, due: true, backlog: many},
			},
			want: 20 * time.Second,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var w window
			for _, s := range tc.steps {
				now := start.Add(s.at)
				switch {
				case s.wake != nil:
					w.wake(now, *s.wake, load{})
				case s.due:
					if !w.hold(now, load{backlog: s.backlog}) {
						w.shut(now)
					}
				case s.release:
					w.release(now)
				case s.end:
					w.ended()
				}
			}
			got := time.Duration(-1)
			if w.open() {
				got = w.due.Sub(start)
			}
			if got != tc.want {
				t.Errorf("due after %s, want %s", got, tc.want)
			}
		})
	}
}

func TestNoMoreIsReleasedThanTheQueueTakes(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	end() // it does not go on by itself
	queue := priorityqueue.New[types.NamespacedName]("test")
	defer queue.ShutDown()
	r := &Reporter{
		opts: Options{Clock: clock.RealClock{}, Backlog: func() int { return 0 }}, ctx: ctx, queue: queue,
		entries: map[types.NamespacedName]*entry{}, held: map[types.NamespacedName]*entry{},
	}
	for i := range 3 * smallBacklog {
		key, e := types.NamespacedName{Name: fmt.Sprint(i)}, &entry{}
		e.window.wake(time.Now(), soon, load{})
		e.window.hold(time.Now(), load{backlog: 1000})
		r.entries[key], r.held[key] = e, e
	}
	for i, want := range []int{2 * smallBacklog, 2 * smallBacklog, smallBacklog} {
		if r.release(); len(r.held) != want {
			t.Errorf("%d are held after looking %d times, want %d", len(r.held), i+1, want)
		}
		if i == 1 {
			for range queue.Len() {
				key, _ := queue.Get()
				queue.Done(key)
			}
		}
	}
}

func TestRowsWaitForTheCopiesOfOthers(t *testing.T) {
	w := newWorld(t, "Widget")
	var backlog atomic.Int64
	w.backlog = func() int { return int(backlog.Load()) }
	w.start()
	o := w.object("web", present("a"), present("b"))
	bindingWrites := w.writes(&hubv1.ResourceBindingList{})
	backlog.Store(smallBacklog + 1)
	for _, cluster := range []string{"a", "b"} {
		w.applied(o, cluster, hubv1.HealthHealthy, two)
	}
	key := w.id("web").BindingKey()
	w.eventually("the window to be held", func() (bool, string) {
		w.reporter.mu.Lock()
		defer w.reporter.mu.Unlock()
		return w.reporter.entries[key].window.held, ""
	})
	if got := bindingWrites(); got != 0 {
		t.Errorf("%d writes while there is a backlog", got)
	}
	released := time.Now()
	backlog.Store(0)
	w.until("all rows", healthyEverywhere)
	if waited := time.Since(released); waited > heldAtMost {
		t.Errorf("the rows came %s after the backlog was gone", waited)
	}
	w.quiet()
	if got := bindingWrites(); got != 1 {
		t.Errorf("%d writes of the binding, want 1", got)
	}
}

func TestRowsDoNotWaitForEver(t *testing.T) {
	w := newWorld(t, "Widget")
	w.backlog = func() int { return 1000 }
	w.start()
	o := w.object("web", present("a"))
	w.applied(o, "a", hubv1.HealthHealthy, two)
	w.until("all rows", healthyEverywhere)
}

func TestRowsWaitForTheStatusOfOtherObjects(t *testing.T) {
	const objects = 4 * smallBacklog
	w := newWorld(t, "Widget")
	var backlog atomic.Int64
	w.backlog = func() int { return int(backlog.Load()) }
	w.start()
	var all []*unstructured.Unstructured
	for i := range objects {
		o := w.object(fmt.Sprint("web-", i), present("a"))
		w.applied(o, "a", hubv1.HealthProgressing, "")
		all = append(all, o)
	}
	w.quiet()
	objectWrites, rowWrites := w.writes(w.objects()), w.writes(&hubv1.ResourceBindingList{})
	for _, o := range all {
		w.show(o, "a", hubv1.HealthHealthy, two)
	}
	backlog.Store(smallBacklog + 1) // until all are due at the same time, however fast the machine is
	for _, o := range all {
		w.reporter.Wake(w.id(o.GetName()).BindingKey(), "a")
	}
	w.eventually("all windows to be held", func() (bool, string) {
		w.reporter.mu.Lock()
		defer w.reporter.mu.Unlock()
		return len(w.reporter.held) == objects, fmt.Sprint(len(w.reporter.held))
	})
	backlog.Store(0)
	w.eventually("half of the objects to have their status", func() (bool, string) {
		n := objectWrites()
		return n >= objects/2, fmt.Sprint(n)
	})
	if n := rowWrites(); n > objects/4 {
		t.Errorf("%d bindings were written before half of the objects had their status", n)
	}
	w.eventually("all rows", func() (bool, string) {
		n := rowWrites()
		return n >= objects, fmt.Sprint(n)
	})
	w.quiet()
	if o, r := objectWrites(), rowWrites(); o != objects || r != objects {
		t.Errorf("%d writes of objects and %d of bindings, want %d of each", o, r, objects)
	}
}
