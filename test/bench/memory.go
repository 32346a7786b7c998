package main

import (
	"context"
	"fmt"
	"time"

	"github.com/hanse-dev/hanse/test/fleet"
)

// specBytes are the sizes of objects for which memory is measured. The other profiles use the first size.
var specBytes = []int{0, 50 << 10}

// collections is the number of garbage collections in one measurement.
const collections = 3

// Heap is the memory of the hub process with all objects in place. All members have reported a status of each object.
type Heap struct {
	ObjectBytes int `json:"objectBytes"`
	Objects     int `json:"objects"`
	Members     int `json:"members"`
	// EmptyKiB is the heap in use without objects, and LiveKiB with all objects. RestartedKiB is the heap with all
	// objects after a restart of the process. Each is measured after garbage collections.
	EmptyKiB     float64 `json:"emptyKiB"`
	LiveKiB      float64 `json:"liveKiB"`
	RestartedKiB float64 `json:"restartedKiB"`
	// RSSMiB and RestartedRSSMiB are the resident memory of the process with all objects, before and after the restart.
	RSSMiB          float64 `json:"rssMiB"`
	RestartedRSSMiB float64 `json:"restartedRssMiB"`
	RestartPeakMiB  float64 `json:"restartPeakRssMiB"`
	// TemplatesJSONKiB and TemplatesHeldKiB are the hub's own counts. A template is a hub object in the hub's memory. The
	// counts are the size of all templates as JSON, and their size in memory. They are 0 if the hub has no such metric.
	TemplatesJSONKiB float64 `json:"templatesJsonKiB"`
	TemplatesHeldKiB float64 `json:"templatesHeldKiB"`
}

// memory measures the heap of the hub process for small and for large objects. It measures each size with all members
// and with one. Each measurement runs on a new lab.
func (r *run) memory(ctx context.Context) error {
	for _, bytes := range specBytes {
		for _, members := range []int{r.members, 1} {
			h := Heap{Objects: r.objects, Members: members}
			err := r.onLab(ctx, members, []string{"bench", warmNamespace}, func(ctx context.Context, s *setting) error { return s.heap(ctx, bytes, &h) })
			if err != nil {
				return err
			}
			r.result.Heaps = append(r.result.Heaps, h)
		}
	}
	return nil
}

func (s *setting) heap(ctx context.Context, bytes int, h *Heap) error {
	kind := shape{revision: first.revision, image: first.image, bytes: bytes}
	sample, err := widget("bench", 0, kind).MarshalJSON()
	if err != nil {
		return err
	}
	h.ObjectBytes = len(sample)
	// The members are watched only until the copies exist, because an API server ends a watch that is too slow for the
	// statuses of large objects.
	copies, stop := context.WithCancel(ctx)
	defer stop()
	w, err := watch(copies, s.clients, s.cancel)
	if err != nil {
		return err
	}
	if err := s.join(ctx, false); err != nil {
		return err
	}
	if err := s.startHub(ctx); err != nil {
		return err
	}
	if err := s.awaitReady(ctx, s.names); err != nil {
		return err
	}
	if err := s.warmUp(ctx, w); err != nil {
		return err
	}
	if err := s.place(ctx, "bench"); err != nil {
		return err
	}
	if h.EmptyKiB, err = s.live(ctx); err != nil {
		return err
	}
	s.say("memory: %d objects of %d bytes to %d members", s.objects, h.ObjectBytes, len(s.names))
	if err := s.followed(ctx, w.expect("bench", 0, s.objects, len(s.names), kind.arrived), w, applying(kind)); err != nil {
		return err
	}
	stop()
	if err := s.reportAll(ctx); err != nil {
		return err
	}
	if err := s.look(ctx, h); err != nil {
		return err
	}
	s.say("memory: %.1f MiB live, %.1f MiB before", h.LiveKiB/1024, h.EmptyKiB/1024)
	if _, err := s.restart(ctx); err != nil {
		return err
	}
	if _, err := s.inSync(ctx); err != nil {
		return err
	}
	if h.RestartedKiB, err = s.live(ctx); err != nil {
		return err
	}
	h.RestartPeakMiB, h.RestartedRSSMiB, err = memory(s.meter.pid)
	s.say("memory: %.1f MiB live after a restart", h.RestartedKiB/1024)
	return err
}

// reportAll writes a status of every object on all members, and waits until the hub objects show these statuses.
func (s *setting) reportAll(ctx context.Context) error {
	onHub, stop, err := s.watchHub(ctx)
	if err != nil {
		return err
	}
	defer stop()
	x := onHub.expect("bench", 0, s.objects, 1, readyIs(allReady*int64(len(s.names))))
	if _, err := s.report(ctx, "bench", s.objects, reporting(1, allReady)); err != nil {
		return err
	}
	if err := onHub.await(ctx, x, s.say); err != nil {
		return err
	}
	_, err = s.meter.settle(ctx)
	return err
}

// look measures the memory of the hub process with all objects in place.
func (s *setting) look(ctx context.Context, h *Heap) error {
	var err error
	if h.LiveKiB, err = s.live(ctx); err != nil {
		return err
	}
	if _, h.RSSMiB, err = memory(s.meter.pid); err != nil {
		return err
	}
	page, err := fleet.Page(ctx, s.process.Metrics)
	if err != nil {
		return err
	}
	for form, kib := range map[string]*float64{"json": &h.TemplatesJSONKiB, "held": &h.TemplatesHeldKiB} {
		bytes, err := sum(page, "hanse_templates_bytes", "form", form)
		if err != nil {
			return err
		}
		*kib = round(bytes / 1024)
	}
	return nil
}

// live returns the lowest heap in use after several garbage collections, as counted by the Go runtime. Reading the
// metrics allocates the memory that triggers the next collection. An idle process would collect only every two minutes.
// The measurement starts when no template (a hub object in the hub's memory) is unpacked, because unpacked templates
// are temporary and larger than the rest of the heap.
func (s *setting) live(ctx context.Context) (float64, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxPhase, fmt.Errorf("fewer than %d garbage collections of a hub at rest in %s", collections, maxPhase))
	defer cancel()
	if _, err := s.meter.settle(ctx); err != nil {
		return 0, err
	}
	if err := s.packed(ctx); err != nil {
		return 0, err
	}
	least, last, seen := 0.0, -1.0, -1
	for seen < collections {
		page, err := fleet.Page(ctx, s.process.Metrics)
		if err != nil {
			return 0, err
		}
		cycles, err := only(page, "go_gc_cycles_total_gc_cycles_total")
		if err != nil {
			return 0, err
		}
		bytes, err := only(page, "go_gc_heap_live_bytes")
		if err != nil {
			return 0, err
		}
		if cycles > last {
			last = cycles
			if seen++; seen > 0 && (least == 0 || bytes < least) {
				least = bytes
			}
		}
		if err := rest(ctx, 5*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return round(least / 1024), nil
}

// packed waits until the hub process has packed all templates again. A template is a hub object in the hub's memory,
// which is compressed while it is packed.
func (s *setting) packed(ctx context.Context) error {
	for {
		page, err := fleet.Page(ctx, s.process.Metrics)
		if err != nil {
			return err
		}
		unpacked, err := only(page, "hanse_templates_unpacked")
		if err != nil || unpacked == 0 {
			return err
		}
		if err := rest(ctx, 500*time.Millisecond); err != nil {
			return fmt.Errorf("waiting until no template is kept unpacked, %.0f are: %w", unpacked, err)
		}
	}
}

// Added is the memory for one more member and for one more object, computed from the heaps with objects of one size.
type Added struct {
	ObjectBytes int `json:"objectBytes"`
	// PerMember is the additional heap per object for one more member, in bytes. It is the heap with all members minus
	// the heap with one member, divided by the additional members and by the objects. PerMemberRestarted is the same
	// for restarted processes.
	PerMember          float64 `json:"bytesPerMember"`
	PerMemberRestarted float64 `json:"bytesPerMemberRestarted"`
	// PerMemberNet is PerMember without the memory that one more member needs when the hub has no objects.
	PerMemberNet float64 `json:"bytesPerMemberNet"`
	// PerObject is the memory for an object with one member. It includes the template, which is the hub object in the
	// hub's memory.
	PerObject float64 `json:"bytesPerObject"`
	// TemplateJSON and TemplateHeld are the sizes of one template, as JSON and in memory. A template is a hub object in
	// the hub's memory.
	TemplateJSON float64 `json:"templateJsonBytes"`
	TemplateHeld float64 `json:"templateHeldBytes"`
}

// added compares the heap with many members and the heap with one member, for the same objects.
func added(many, one Heap) Added {
	n := float64(many.Objects)
	pairs := n * float64(many.Members-one.Members) / 1024
	return Added{
		ObjectBytes:        many.ObjectBytes,
		PerMember:          round((many.LiveKiB - one.LiveKiB) / pairs),
		PerMemberRestarted: round((many.RestartedKiB - one.RestartedKiB) / pairs),
		PerMemberNet:       round((many.LiveKiB - many.EmptyKiB - one.LiveKiB + one.EmptyKiB) / pairs),
		PerObject:          round((one.LiveKiB - one.EmptyKiB) * 1024 / n),
		TemplateJSON:       round(one.TemplatesJSONKiB * 1024 / n),
		TemplateHeld:       round(one.TemplatesHeldKiB * 1024 / n),
	}
}
