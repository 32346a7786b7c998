package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// warm is the number of objects that each system (Hanse, the raw loop, the hub alone) writes before its first phase,
	// in a separate namespace. warmNamespace is the namespace for Hanse.
	warm          = 10
	warmNamespace = "bench-warm"
	// maxPhase is the maximum duration of a phase.
	maxPhase = 20 * time.Minute
)

// The names of the phases.
const (
	create       = "create"
	update       = "update"
	override     = "override"
	status       = "status"
	singleCreate = "single create"
	singleStatus = "single status"
	withdraw     = "delete"
)

// phaseNames has the names of all phases, in the order in which Hanse runs them.
var phaseNames = []string{create, update, override, status, singleCreate, singleStatus, withdraw}

// step is one operation on every object, such as its creation. Hanse and the systems with which it is compared run the
// steps in the same order.
type step struct {
	name  string
	raw   operation // what the raw loop does on each member
	user  operation // what the user does on the hub; nil: the user does not write every object
	after shape     // shape of all copies after the step
	gone  bool      // no copies exist after the step
	// hanse runs and measures the step on the hub. If it is nil, the benchmark writes every object on the hub by user, and
	// the step ends when all copies have the shape in after.
	hanse func(*setting, context.Context, *watcher) (Phase, error)
}

// specsSeen is the generation of a copy after the steps create, update and override. Each of them changes the spec
// once.
const specsSeen = 3

var steps = []step{
	{name: create, raw: applying(first), user: applying(first), after: first},
	{name: update, raw: applying(second), user: applying(second), after: second},
	{name: override, raw: applying(overridden), after: overridden, hanse: (*setting).override},
	{name: status, raw: reporting(specsSeen, allReady), after: overridden, hanse: (*setting).status},
	{name: withdraw, raw: remove, user: remove, gone: true},
}

// throughput measures all steps on all systems. Hanse runs in several rounds, and the raw loop runs before and after
// each round. throughput also measures single changes on an idle hub and cold restarts, which only Hanse can do.
// Several rounds are necessary, because the result of a phase of a few seconds can change by a quarter within a minute.
func (r *run) throughput(ctx context.Context) error {
	namespaces := []string{"raw", "raw-warm", "alone", "alone-warm", "bench", warmNamespace}
	return r.onLab(ctx, r.members, namespaces, func(ctx context.Context, s *setting) error {
		w, err := watch(ctx, s.clients, s.cancel)
		if err != nil {
			return err
		}
		s.say("raw: %d objects straight to each member, %d requests in flight to each", s.objects, perMember)
		if err := s.raw(ctx); err != nil {
			return err
		}
		s.say("hub alone: the user's writes, %d in flight, nobody watching", s.userWorkers())
		if err := s.hubAlone(ctx); err != nil {
			return err
		}
		if err := s.join(ctx, false); err != nil {
			return err
		}
		for i := range s.rounds {
			s.say("hanse: the same writes on the hub, placed on every member; round %d of %d", i+1, s.rounds)
			if err := s.round(ctx, w, i == 0, i == s.rounds-1); err != nil {
				return err
			}
			s.say("raw: once more, without the hub process")
			if err := s.raw(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// round starts the hub process, measures all steps with it, and stops it. The last step deletes the objects. Other
// objects that the first round creates stay.
func (s *setting) round(ctx context.Context, w *watcher, isFirst, isLast bool) error {
	if err := s.startHub(ctx); err != nil {
		return err
	}
	if err := s.awaitReady(ctx, s.names); err != nil {
		return err
	}
	if isFirst {
		if err := s.warmUp(ctx, w); err != nil {
			return err
		}
		if err := s.place(ctx, "bench"); err != nil {
			return err
		}
	}
	if err := s.hanse(ctx, w, isLast); err != nil {
		return err
	}
	if err := s.Hub.Delete(ctx, imagePolicy()); err != nil {
		return fmt.Errorf("deleting the override policy: %w", err)
	}
	return s.stopHub()
}

func (s *setting) add(p Phase) {
	s.result.Phases = append(s.result.Phases, p)
	if p.Rate == 0 {
		s.say("%s, %s: %s", p.System, p.Name, quantiles(p.Latency))
		return
	}
	s.say("%s, %s: %.0f per second", p.System, p.Name, p.Rate)
}

// hanse measures all steps with the hub. If once is true, it also measures single changes and restarts while all
// objects are in place.
func (s *setting) hanse(ctx context.Context, w *watcher, once bool) error {
	for _, step := range steps {
		if step.gone && once {
			if err := s.onceThere(ctx, w); err != nil {
				return err
			}
		}
		if _, err := s.meter.settle(ctx); err != nil {
			return err
		}
		var p Phase
		var err error
		if step.hanse != nil {
			p, err = step.hanse(s, ctx, w)
		} else {
			p, err = s.throughHub(ctx, w, step)
		}
		if err == nil {
			err = s.verify(ctx, step)
		}
		if err != nil {
			return fmt.Errorf("hanse, %s: %w", step.name, err)
		}
		s.add(p)
	}
	return nil
}

// onceThere measures single changes and cold restarts, for which all objects must be in place.
func (s *setting) onceThere(ctx context.Context, w *watcher) error {
	for _, single := range []func(context.Context, *watcher) (Phase, error){s.singleCreates, s.singleStatuses} {
		p, err := single(ctx, w)
		if err != nil {
			return err
		}
		s.add(p)
	}
	return s.restarts(ctx, w)
}

// throughHub does the user's operation on every object on the hub, and waits until all copies have the new shape.
func (s *setting) throughHub(ctx context.Context, w *watcher, p step) (Phase, error) {
	reached := p.after.arrived
	if p.gone {
		reached = removed
	}
	return s.phase(ctx, p.name, units{objects: s.objects, members: s.members, own: 1}, func(ctx context.Context) (done, error) {
		x := w.expect("bench", 0, s.objects, s.members, reached)
		d := done{begin: time.Now()}
		sent, err := s.write(ctx, "bench", s.objects, p.user)
		if err != nil {
			return d, err
		}
		d.user = time.Now()
		if err := w.await(ctx, x, s.say); err != nil {
			return d, err
		}
		d.Timing = timing(d.begin, sent, x.last(), s.members)
		return d, nil
	})
}

// done is the result of a phase. user is the time until the response to the last of the user's writes.
type done struct {
	Timing
	begin, user time.Time
}

// phase measures the duration and the costs of one step of the benchmark. It measures from the start of do until
// nothing is written to the hub's etcd any more.
func (s *setting) phase(ctx context.Context, name string, n units, do func(context.Context) (done, error)) (Phase, error) {
	p := Phase{System: systemHanse, Name: name}
	if err := s.collectGarbage(ctx); err != nil {
		return p, err
	}
	if err := resetPeak(s.meter.pid); err != nil {
		return p, err
	}
	before, err := s.meter.read(ctx)
	if err != nil {
		return p, err
	}
	d, err := do(ctx)
	if err != nil {
		return p, err
	}
	p.Timing, p.UserSeconds = d.Timing, round(d.user.Sub(d.begin).Seconds())
	settled, err := s.meter.settle(ctx)
	if err != nil {
		return p, err
	}
	p.SettledSeconds = round(settled.Sub(d.begin).Seconds())
	after, err := s.meter.read(ctx)
	if err != nil {
		return p, err
	}
	c := cost(before, after, n)
	c.PeakRSSMiB, c.SettledRSSMiB, err = memory(s.meter.pid)
	p.Cost, p.CPU = &c, use(before, after, n.objects*n.members)
	return p, err
}

// timing returns the rate of object-clusters from the first write to the last copy. It also returns the latency of each
// object, from the object's write to its last copy.
func timing(begin time.Time, sent, arrived []time.Time, members int) Timing {
	all := make([]time.Duration, len(sent))
	end := begin
	for i := range sent {
		all[i] = arrived[i].Sub(sent[i])
		if arrived[i].After(end) {
			end = arrived[i]
		}
	}
	seconds := end.Sub(begin).Seconds()
	return Timing{Seconds: round(seconds), Rate: round(float64(len(sent)*members) / seconds), Latency: latency(all)}
}

// verify reads all copies and checks that each member has exactly the expected objects in the right shape.
func (s *setting) verify(ctx context.Context, p step) error {
	want := s.objects
	if p.gone {
		want = 0
	}
	return s.verifyCopies(ctx, "bench", len(s.names), want, p.after)
}

// verifyCopies checks the copies of a namespace on the first `members` members.
func (s *setting) verifyCopies(ctx context.Context, namespace string, members, want int, after shape) error {
	for m, c := range s.clients[:members] {
		list, err := c.Resource(widgets).Namespace(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("reading the copies on %s: %w", s.names[m], err)
		}
		if len(list.Items) != want {
			return fmt.Errorf("%s has %d widgets in %s, want %d", s.names[m], len(list.Items), namespace, want)
		}
		for i := range list.Items {
			if err := verifyCopy(&list.Items[i], after); err != nil {
				return fmt.Errorf("on %s: %w", s.names[m], err)
			}
		}
	}
	return nil
}

func verifyCopy(copied *unstructured.Unstructured, after shape) error {
	i, ok := widgetIndex(copied.GetName())
	if !ok {
		return errors.New("nobody wrote widget " + copied.GetName())
	}
	want := widget(copied.GetNamespace(), i, after)
	if diff := cmp.Diff(want.Object["spec"], copied.Object["spec"]); diff != "" {
		return fmt.Errorf("%s is not what the user wants (-want +got):\n%s", copied.GetName(), diff)
	}
	return nil
}
