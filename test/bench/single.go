package main

import (
	"context"
	"fmt"
	"time"
)

// singles is the number of single changes that are measured.
const singles = 20

// pause is the time between two single changes.
const pause = 500 * time.Millisecond

// singleCreates creates one object at a time on an idle hub. The latency ends when the last copy of the object exists.
// The objects are in the namespace of the warm-up objects, with higher indices.
func (s *setting) singleCreates(ctx context.Context, w *watcher) (Phase, error) {
	if _, err := s.meter.settle(ctx); err != nil {
		return Phase{}, err
	}
	return s.phase(ctx, singleCreate, units{objects: singles, members: s.members, own: 1}, func(ctx context.Context) (done, error) {
		return oneByOne(ctx, singles, func(ctx context.Context, i int) (time.Duration, error) {
			return s.createOne(ctx, w, s.members, warm+i)
		})
	})
}

// createOne creates an object in the namespace of the warm-up objects, and waits for its copies on the first `members`
// members.
func (s *setting) createOne(ctx context.Context, w *watcher, members, i int) (time.Duration, error) {
	x := w.expect(warmNamespace, i, 1, members, first.arrived)
	sent := time.Now()
	if err := applying(first)(ctx, s.hub, warmNamespace, i); err != nil {
		return 0, fmt.Errorf("creating %s: %w", widgetName(i), err)
	}
	err := w.await(ctx, x, s.say)
	return x.last()[0].Sub(sent), err
}

// singleStatuses changes the status of one copy at a time, each time of another object. The latency ends when the hub
// object shows the status.
func (s *setting) singleStatuses(ctx context.Context, _ *watcher) (Phase, error) {
	onHub, stop, err := s.watchHub(ctx)
	if err != nil {
		return Phase{}, err
	}
	defer stop()
	if _, err := s.meter.settle(ctx); err != nil {
		return Phase{}, err
	}
	n := min(singles, s.objects)
	return s.phase(ctx, singleStatus, units{objects: n, members: s.members}, func(ctx context.Context) (done, error) {
		return oneByOne(ctx, n, func(ctx context.Context, i int) (time.Duration, error) {
			x := onHub.expect("bench", i, 1, 1, readyIs(allReady*int64(s.members)-1))
			sent := time.Now()
			if err := reporting(specsSeen, allReady-1)(ctx, s.clients[i%len(s.clients)], "bench", i); err != nil {
				return 0, fmt.Errorf("changing the status of %s: %w", widgetName(i), err)
			}
			err := onHub.await(ctx, x, s.say)
			return x.last()[0].Sub(sent), err
		})
	})
}

// oneByOne measures n changes, with a pause before each of them. The returned timing has no rate.
func oneByOne(ctx context.Context, n int, change func(ctx context.Context, i int) (time.Duration, error)) (done, error) {
	d := done{begin: time.Now()}
	all := make([]time.Duration, n)
	for i := range all {
		if err := rest(ctx, pause); err != nil {
			return d, err
		}
		var err error
		if all[i], err = change(ctx, i); err != nil {
			return d, err
		}
	}
	d.user = time.Now()
	d.Timing = Timing{Seconds: round(d.user.Sub(d.begin).Seconds()), Latency: latency(all)}
	return d, nil
}

// rest waits for a duration, or until ctx ends.
func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
