package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/dynamic"
)

const (
	noisyNamespace = "noisy"
	// flapping is the number of status changes per second that the noisy tenant's operator makes on one member.
	flapping = 50
	// neighbours is the number of objects that the other tenant creates in each scenario, one after the other.
	neighbours = 40
)

// The scenarios of the profile tenants, in the order in which they run.
const (
	undisturbed = "undisturbed" // the noisy tenant has no objects yet
	crowded     = "crowded"     // the noisy tenant has objects, whose statuses do not change
	noisy       = "noisy"       // the statuses of the noisy tenant's objects change all the time on one member
)

// Neighbour is the result of one scenario for the objects of the other tenant.
type Neighbour struct {
	Scenario string `json:"scenario"`
	// Create is the latency from the user's write to the last copy. Raw is the latency without Hanse: one client writes
	// an object to the hub, and then to all members at the same time. Creates and raw writes alternate.
	Create Latency `json:"create"`
	Raw    Latency `json:"raw"`
	// P50OverRaw is the median of Create divided by the median of Raw. P50Ratio is P50OverRaw divided by the P50OverRaw
	// of the first scenario. All processes share one machine, so that the noise also slows the raw client. The ratio
	// shows only the part that Hanse causes.
	P50OverRaw float64 `json:"p50OverRaw"`
	P50Ratio   float64 `json:"p50Ratio"`
	// P50OverUndisturbed is the median of Create divided by the median of Create in the first scenario. It includes the
	// effect of the shared machine.
	P50OverUndisturbed float64 `json:"p50OverUndisturbed"`
	// StatusesPerSecond is the number of statuses per second that the noisy tenant's operator wrote.
	StatusesPerSecond float64 `json:"statusesPerSecond,omitempty"`
}

// tenants measures single creates of one tenant in three scenarios: another tenant has no objects, has objects, and has
// objects whose statuses change all the time.
func (r *run) tenants(ctx context.Context) error {
	return r.onLab(ctx, r.members, []string{warmNamespace, noisyNamespace, besideNamespace}, func(ctx context.Context, s *setting) error {
		w, err := s.running(ctx, false)
		if err != nil {
			return err
		}
		if err := s.neighbour(ctx, w, undisturbed, warm); err != nil {
			return err
		}
		s.say("putting %d objects of another tenant in place", s.objects)
		if err := s.place(ctx, noisyNamespace); err != nil {
			return err
		}
		if err := s.followed(ctx, w.expect(noisyNamespace, 0, s.objects, len(s.names), first.arrived), w, applying(first)); err != nil {
			return err
		}
		if err := s.neighbour(ctx, w, crowded, warm+neighbours); err != nil {
			return err
		}
		return s.besideNoise(ctx, w)
	})
}

// besideNoise measures the last scenario, while the statuses of the noisy tenant's objects change on the first member.
func (s *setting) besideNoise(ctx context.Context, w *watcher) error {
	noise, stop := context.WithCancel(ctx)
	defer stop()
	written := 0
	group, noise := errgroup.WithContext(noise)
	begin := time.Now()
	group.Go(func() error {
		next := func() time.Duration { return time.Until(begin.Add(time.Duration(written) * time.Second / flapping)) }
		for ; rest(noise, next()) == nil; written++ {
			ready := int64(written % (allReady + 1))
			if err := reporting(1, ready)(noise, s.clients[0], noisyNamespace, written%s.objects); err != nil && noise.Err() == nil {
				return fmt.Errorf("changing the status of %s: %w", widgetName(written%s.objects), err)
			}
		}
		return nil // the measurement has ended
	})
	err := s.neighbour(ctx, w, noisy, warm+2*neighbours)
	took := time.Since(begin)
	stop()
	if noise := group.Wait(); err == nil {
		err = noise
	}
	if err != nil {
		return err
	}
	last := &s.result.Neighbours[len(s.result.Neighbours)-1]
	last.StatusesPerSecond = round(float64(written) / took.Seconds())
	s.say("%s: %.0f statuses a second meanwhile", noisy, last.StatusesPerSecond)
	return nil
}

// neighbour measures one scenario. It creates single objects of the tenant whose latency is measured. The first object
// has the index of the argument from. Each create follows the write of one object by the raw client.
func (s *setting) neighbour(ctx context.Context, w *watcher, scenario string, from int) error {
	if scenario != noisy {
		if _, err := s.meter.settle(ctx); err != nil {
			return err
		}
	}
	all, raw, err := s.createInTurn(ctx, w, from, neighbours)
	if err != nil {
		return fmt.Errorf("scenario %s: %w", scenario, err)
	}
	n := Neighbour{Scenario: scenario, Create: latency(all), Raw: latency(raw)}
	s.result.Neighbours = append(s.result.Neighbours, n)
	s.say("%s: %s, raw %s", scenario, quantiles(n.Create), quantiles(n.Raw))
	return nil
}

// createInTurn creates n objects one after the other, starting with the index from. Before each create, it writes one
// object with the raw client.
func (s *setting) createInTurn(ctx context.Context, w *watcher, from, n int) (all, raw []time.Duration, err error) {
	for i := from; i < from+n; i++ {
		if err := rest(ctx, pause); err != nil {
			return nil, nil, err
		}
		took, err := s.createRaw(ctx, i)
		if err != nil {
			return nil, nil, fmt.Errorf("creating %s without Hanse: %w", widgetName(i), err)
		}
		raw = append(raw, took)
		if err := rest(ctx, pause); err != nil {
			return nil, nil, err
		}
		if took, err = s.createOne(ctx, w, s.members, i); err != nil {
			return nil, nil, err
		}
		all = append(all, took)
	}
	return all, raw, nil
}

// createRaw writes an object without a placement to the hub, and then to all members at the same time. The latency ends
// with the last response.
func (s *setting) createRaw(ctx context.Context, i int) (time.Duration, error) {
	begin := time.Now()
	if err := applying(first)(ctx, s.hub, besideNamespace, i); err != nil {
		return 0, err
	}
	_, err := direct(ctx, s.clients, besideNamespace, 1, 1, func(ctx context.Context, c dynamic.Interface, namespace string, _ int) error {
		return applying(first)(ctx, c, namespace, i)
	})
	return time.Since(begin), err
}

// noisiest returns the highest P50Ratio of all scenarios.
func noisiest(all []Neighbour) float64 {
	most := 0.0
	for _, n := range all {
		most = max(most, n.P50Ratio)
	}
	return most
}
