package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// bad is the number of misbehaving members. The bad members are the last ones by name, and each misbehaves in another
// way.
const bad = 3

var faults = [bad][]string{{"blackhole"}, {"hang-list"}, {"status", "429", "--retry-after", "1s"}}

// interval is the time between two writes of the user. It is long enough to keep the machine idle most of the time,
// because the benchmark measures waiting, not work.
const interval = 200 * time.Millisecond

// inPlace is the number of existing objects divided by the number of objects that a scenario writes. The existing
// objects are necessary, because a lost member also affects objects that nobody writes at that time.
const inPlace = 3

const (
	inPlaceNamespace = "in-place"
	besideNamespace  = "beside"
)

// The scenarios. Each scenario with faults is compared with two others: its scenario without faults, and the scenario
// "alone". In "alone", only the good members get objects. In "calm", all members get objects and none has a fault. The
// good members may be faster in "alone" than in "calm", because the bad members do not use the machine.
const (
	calm      = "calm"
	alone     = "alone"
	restarted = "restarted"
	struck    = "struck"
	started   = "started"
)

// scenarios has the scenarios in the order in which they run.
var scenarios = []string{calm, alone, restarted, struck, started}

// withoutFaults returns the scenario without faults with which a scenario is compared.
func withoutFaults(scenario string) string {
	if scenario == started {
		return restarted
	}
	return calm
}

// Isolation is the result of one scenario for the good members.
type Isolation struct {
	Scenario string `json:"scenario"`
	Step     string `json:"step"`
	// Latency is the time from the user's write to the copy on one good member, over all objects and all good members.
	Latency Latency `json:"latency"`
	// Raw is the latency of direct writes to a good member, one for each of the user's writes. It shows the effect of
	// the machine itself on latencies.
	Raw Latency `json:"raw"`
	// P99Ratio is the 99th percentile of Latency divided by that of the scenario without faults. P99OverAlone is the 99th
	// percentile of Latency divided by that of the scenario "alone", in which only the good members get objects.
	P99Ratio     float64 `json:"p99Ratio"`
	P99OverAlone float64 `json:"p99OverAlone"`
	// RecoveredSeconds is the time from the end of the members' faults until every member had every object of the
	// scenario.
	RecoveredSeconds float64 `json:"recoveredSeconds,omitempty"`
}

// isolation measures the latencies on good members in five scenarios. The scenarios are: no faults; only good members;
// a new hub process; faults that begin just before the load; a hub process that starts during the faults.
func (r *run) isolation(ctx context.Context) error {
	return r.onLab(ctx, r.members, append([]string{warmNamespace, inPlaceNamespace, besideNamespace}, scenarios...), func(ctx context.Context, s *setting) error {
		w, err := s.running(ctx, true)
		if err != nil {
			return err
		}
		if err := s.putInPlace(ctx, w, inPlace*s.objects); err != nil {
			return err
		}
		for _, scenario := range scenarios {
			if err := s.scenario(ctx, w, scenario); err != nil {
				return fmt.Errorf("scenario %s: %w", scenario, err)
			}
		}
		return nil
	})
}

// putInPlace creates objects on all members that exist during all scenarios.
func (s *setting) putInPlace(ctx context.Context, w *watcher, objects int) error {
	s.say("putting %d objects in place", objects)
	if err := s.place(ctx, inPlaceNamespace); err != nil {
		return err
	}
	return s.followed(ctx, w.expect(inPlaceNamespace, 0, objects, len(s.names), first.arrived), w, applying(first))
}

func (s *setting) scenario(ctx context.Context, w *watcher, name string) error {
	clusters, members := hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{}}, len(s.names)
	if name == alone {
		clusters, members = hubv1.ClusterSelection{Names: s.names[:s.good()]}, s.good()
	}
	if err := s.placeOn(ctx, name, clusters); err != nil {
		return err
	}
	if _, err := s.meter.settle(ctx); err != nil {
		return err
	}
	if err := s.collectGarbage(ctx); err != nil {
		return err
	}
	switch name {
	case restarted, started:
		if err := s.process.Stop(); err != nil {
			return err
		}
		if name == started {
			if err := s.misbehave(ctx); err != nil {
				return err
			}
		}
		if err := s.startHub(ctx); err != nil {
			return err
		}
		// Each scenario needs an object with a new name, because the watcher would never report the arrival of an
		// existing one.
		if _, err := s.createOne(ctx, w, s.good(), warm+slices.Index(scenarios, name)); err != nil {
			return err
		}
	case struck:
		if err := s.misbehave(ctx); err != nil {
			return err
		}
	}
	s.say("%s: a new object every %s, then a change", name, interval)
	for _, p := range steps[:2] {
		measured, raw, err := s.pace(ctx, w, name, p)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		s.result.Isolation = append(s.result.Isolation, Isolation{Scenario: name, Step: p.name, Latency: latency(measured), Raw: latency(raw)})
		s.say("%s, %s: %s, raw %s", name, p.name, quantiles(latency(measured)), quantiles(latency(raw)))
	}
	begin := time.Now()
	if err := s.behave(ctx); err != nil {
		return err
	}
	if err := s.converge(ctx, name, members); err != nil {
		return err
	}
	if name == struck || name == started {
		last := &s.result.Isolation[len(s.result.Isolation)-1]
		last.RecoveredSeconds = round(time.Since(begin).Seconds())
		s.say("%s: all members have everything %.1f s after the end of the faults", name, last.RecoveredSeconds)
	}
	// The objects of this scenario are deleted, so that each scenario begins with the same objects.
	if err := each(ctx, s.objects, perMember, func(ctx context.Context, i int) error { return remove(ctx, s.beside(i), besideNamespace, i) }); err != nil {
		return err
	}
	return s.followed(ctx, w.expect(name, 0, s.objects, members, removed), w, remove)
}

func (s *setting) good() int { return len(s.names) - bad }

// beside returns the good member that gets the direct write beside the user's write of object i. The good members take
// turns.
func (s *setting) beside(i int) dynamic.Interface { return s.clients[i%s.good()] }

func (s *setting) misbehave(ctx context.Context) error {
	for i, mode := range faults {
		name := s.names[s.good()+i]
		s.say("%s: %s", name, strings.Join(mode, " "))
		if err := s.Fault(ctx, name, mode...); err != nil {
			return err
		}
	}
	return nil
}

func (s *setting) behave(ctx context.Context) error {
	for _, name := range s.names[s.good():] {
		if err := s.Fault(ctx, name, "none"); err != nil {
			return err
		}
	}
	return nil
}

// pace writes the objects of a namespace at a fixed interval, without waiting for earlier objects. all has the latency
// of each object on each good member. Between two objects it writes one object directly to a good member. raw has the
// latencies of these direct writes.
func (s *setting) pace(ctx context.Context, w *watcher, namespace string, p step) (all, raw []time.Duration, err error) {
	x := w.expect(namespace, 0, s.objects, s.good(), p.after.arrived)
	var mu sync.Mutex
	sent := make([]time.Time, s.objects)
	raw = make([]time.Duration, s.objects)
	group, writes := errgroup.WithContext(ctx)
	for i := range sent {
		if err := rest(ctx, interval/2); err != nil {
			return nil, nil, err
		}
		group.Go(func() error {
			begin := time.Now()
			defer func() { raw[i] = time.Since(begin) }()
			return p.raw(writes, s.beside(i), besideNamespace, i)
		})
		if err := rest(ctx, interval/2); err != nil {
			return nil, nil, err
		}
		group.Go(func() error {
			mu.Lock()
			sent[i] = time.Now()
			mu.Unlock()
			return p.user(writes, s.hub, namespace, i)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	if err := w.await(ctx, x, s.say); err != nil {
		return nil, nil, err
	}
	all = make([]time.Duration, 0, s.objects*s.good())
	for i, times := range x.seen {
		for _, t := range times {
			all = append(all, t.Sub(sent[i]))
		}
	}
	return all, raw, nil
}

// converge waits until the first `members` members have all objects of a namespace in the same state as the hub.
func (s *setting) converge(ctx context.Context, namespace string, members int) error {
	deadline := time.Now().Add(maxPhase)
	for {
		err := s.verifyCopies(ctx, namespace, members, s.objects, second)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		if err := rest(ctx, pause); err != nil {
			return err
		}
	}
}

// worst returns the highest P99Ratio of the scenarios with faults.
func worst(all []Isolation) float64 {
	most := 0.0
	for _, i := range all {
		if i.Scenario == struck || i.Scenario == started {
			most = max(most, i.P99Ratio)
		}
	}
	return most
}
