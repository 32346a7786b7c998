package main

import (
	"context"
	"fmt"
	"time"

	"github.com/hanse-dev/hanse/test/fleet"
)

// Restart is the result of a restart of the hub process with all objects in place. The counts are sums over all
// objects.
type Restart struct {
	// InSyncSeconds is the time from the start of the process until it had compared every copy and its queues were
	// empty.
	InSyncSeconds float64 `json:"inSyncSeconds"`
	// HubWrites has the writes to the hub's etcd by resource. Writes is their sum without Leases, Events and
	// MemberClusters.
	HubWrites    map[string]float64 `json:"hubWrites"`
	Writes       float64            `json:"hubWritesBeyond"`
	Leases       float64            `json:"leases"`
	Events       float64            `json:"events"`
	MemberWrites float64            `json:"memberWrites"`
	MemberReads  float64            `json:"memberReads"`
	CPUSeconds   float64            `json:"cpuSeconds"`
	PeakRSSMiB   float64            `json:"peakRssMiB"`
	// NewObject has the latency of an object that the user creates during a second restart of the hub process.
	NewObject *NewObject `json:"newObject,omitempty"`
}

// NewObject is the result for an object that the user creates while a hub process compares the existing copies.
type NewObject struct {
	// Seconds is the time from the user's request to create the object to the copy on the last member.
	Seconds float64 `json:"seconds"`
	// SinceStart is the age of the hub process when the user's request was sent.
	SinceStart float64 `json:"sinceStartSeconds"`
	// LookedAtBefore is the share of all copies that the process had compared when the request was sent. LookedAtAfter
	// is the share when the last copy arrived. A share of 1 means that the comparison was complete.
	LookedAtBefore float64 `json:"lookedAtBefore"`
	LookedAtAfter  float64 `json:"lookedAtAfter"`
	InSyncSeconds  float64 `json:"inSyncSeconds"`
}

// restarts stops and starts the hub process twice with all objects in place. The first restart is undisturbed, and
// during the second the user creates an object.
func (s *setting) restarts(ctx context.Context, w *watcher) error {
	s.say("hanse: cold restart with %d objects in place", s.objects)
	if _, err := s.meter.settle(ctx); err != nil {
		return err
	}
	before, err := s.meter.read(ctx)
	if err != nil {
		return err
	}
	begin, err := s.restart(ctx)
	if err != nil {
		return err
	}
	inSync, err := s.inSync(ctx)
	if err != nil {
		return err
	}
	if _, err := s.meter.settle(ctx); err != nil {
		return err
	}
	after, err := s.meter.read(ctx)
	if err != nil {
		return err
	}
	before.end.cpu[whoHanse] = 0 // a new process starts its CPU time at zero
	c := cost(before, after, units{objects: 1, members: 1})
	r := &Restart{
		InSyncSeconds: round(inSync.Sub(begin).Seconds()), HubWrites: c.HubWrites, Writes: c.HubWritesBeyond, Leases: c.Leases, Events: c.Events,
		MemberWrites: c.MemberWrites, MemberReads: c.MemberReads, CPUSeconds: round(c.CPUMillis / 1000),
	}
	if r.PeakRSSMiB, _, err = memory(s.meter.pid); err != nil {
		return err
	}
	s.result.Restart = r
	s.say("hanse, restart: in sync after %.1f s, %.0f writes to the hub and %.0f to members", r.InSyncSeconds, r.Writes, r.MemberWrites)
	if r.NewObject, err = s.duringReplay(ctx, w); err != nil {
		return err
	}
	s.say("hanse, restart: a new object is everywhere after %.2f s", r.NewObject.Seconds)
	return nil
}

// restart stops the hub process and starts a new one. It returns the time at which the new process was started.
func (s *setting) restart(ctx context.Context) (time.Time, error) {
	if err := s.process.Stop(); err != nil {
		return time.Time{}, err
	}
	begin := time.Now()
	return begin, s.startHub(ctx)
}

// duringReplay restarts the hub process, and creates an object when the process has begun to compare copies.
func (s *setting) duringReplay(ctx context.Context, w *watcher) (*NewObject, error) {
	begin, err := s.restart(ctx)
	if err != nil {
		return nil, err
	}
	n := &NewObject{}
	for n.LookedAtBefore == 0 {
		if err := rest(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
		if n.LookedAtBefore, err = s.lookedAt(ctx); err != nil {
			return nil, err
		}
	}
	n.SinceStart = round(time.Since(begin).Seconds())
	took, err := s.createOne(ctx, w, s.members, warm+singles)
	if err != nil {
		return nil, fmt.Errorf("creating an object during the replay: %w", err)
	}
	n.Seconds = round(took.Seconds())
	if n.LookedAtAfter, err = s.lookedAt(ctx); err != nil {
		return nil, err
	}
	inSync, err := s.inSync(ctx)
	n.InSyncSeconds = round(inSync.Sub(begin).Seconds())
	return n, err
}

// lookedAt returns the share of all copies in the namespace bench that the hub process has compared. It reads the
// process's count of dispatches.
func (s *setting) lookedAt(ctx context.Context) (float64, error) {
	page, err := fleet.Page(ctx, s.process.Metrics)
	if err != nil {
		return 0, err
	}
	dispatched, err := sum(page, "controller_runtime_reconcile_total", "controller", "dispatch")
	return round(min(1, dispatched/float64(s.objects*len(s.names)))), err
}

// inSync waits until the hub process has compared all copies and its queues have been empty for a while. It returns the
// time at which they became empty.
func (s *setting) inSync(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxPhase, fmt.Errorf("the hub process is not in sync after %s", maxPhase))
	defer cancel()
	last := time.Now()
	for time.Since(last) < fleet.Quiet {
		page, err := fleet.Page(ctx, s.process.Metrics)
		if err != nil {
			return last, err
		}
		dispatched, err := sum(page, "controller_runtime_reconcile_total", "controller", "dispatch")
		if err != nil {
			return last, err
		}
		queued, err := sum(page, "workqueue_depth", "", "")
		if err != nil {
			return last, err
		}
		working, err := sum(page, "controller_runtime_active_workers", "", "")
		if err != nil {
			return last, err
		}
		if dispatched < float64(s.objects*len(s.names)) || queued > 0 || working > 0 {
			last = time.Now()
		}
		if err := rest(ctx, 100*time.Millisecond); err != nil {
			return last, err
		}
	}
	return last, nil
}

// sum adds the samples of a metric whose label has the value. If label is "", it adds all samples.
func sum(page, name, label, value string) (float64, error) {
	samples, err := fleet.Samples(page, name)
	if err != nil {
		return 0, err
	}
	total := 0.0
	for _, sample := range samples {
		if label == "" || sample.Labels[label] == value {
			total += sample.Value
		}
	}
	return total, nil
}
