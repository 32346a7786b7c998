package main

import (
	"context"
	"fmt"
	"time"

	"github.com/hanse-dev/hanse/test/fleet"
)

// specBytes are the sizes of objects for which memory is measured. The first is the size in the other profiles.
var specBytes = []int{0, 50 << 10}

// collections is the number of garbage collections in a measurement.
const collections = 3

// Heap is the hub process with all objects in place, each with a status that all members reported.
type Heap struct {
	ObjectBytes int `json:"objectBytes"`
	Objects     int `json:"objects"`
	Members     int `json:"members"`
	// EmptyKiB is the heap in use after a garbage collection before there are objects, LiveKiB with all objects, and
	// RestartedKiB with all objects after a restart of the process.
	EmptyKiB     float64 `json:"emptyKiB"`
	LiveKiB      float64 `json:"liveKiB"`
	RestartedKiB float64 `json:"restartedKiB"`
	// RSS of the process, with all objects in place and after the restart.
	RSSMiB          float64 `json:"rssMiB"`
	RestartedRSSMiB float64 `json:"restartedRssMiB"`
	RestartPeakMiB  float64 `json:"restartPeakRssMiB"`
	// Templates by the hub's own count: their JSON, and what is held of it in memory. 0 if it does not count.
	TemplatesJSONKiB float64 `json:"templatesJsonKiB"`
	TemplatesHeldKiB float64 `json:"templatesHeldKiB"`
}

// memory measures the heap of the hub process for small and large objects, with all members and with one. Each
// measurement has a separate lab.
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
	// The members are watched only until the copies exist: an API server ends a watch that cannot keep up with the
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

// reportAll makes all members report a status of every object, and waits until the hub objects show it.
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

// look measures the process with all objects in place.
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

// live returns the lowest heap in use after several garbage collections, by the runtime's own count of marked bytes.
// Reading the metrics causes the garbage for the next collection; an idle process has one every two minutes. The
// measurement starts when no template is unpacked, because unpacked templates are temporary and larger than the
// measured heap.
func (s *setting) live(ctx context.Context) (float64, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, phaseAtMost, fmt.Errorf("fewer than %d garbage collections of a hub at rest in %s", collections, phaseAtMost))
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

// packed waits until the hub process keeps no template unpacked.
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

// Added is the memory for one more member and one more object, from the heaps for one size of objects.
type Added struct {
	ObjectBytes int `json:"objectBytes"`
	// PerMember is the additional heap for each object with one more member. It is the difference of the heaps with all
	// members and with one, divided by members and objects. PerMemberRestarted is the same for restarted processes.
	PerMember          float64 `json:"bytesPerMember"`
	PerMemberRestarted float64 `json:"bytesPerMemberRestarted"`
	// PerMemberNet excludes the memory for one more member without objects.
	PerMemberNet float64 `json:"bytesPerMemberNet"`
	// PerObject is the memory of an object with one member, including templates.
	PerObject float64 `json:"bytesPerObject"`
	// TemplateJSON and TemplateHeld are of one template.
	TemplateJSON float64 `json:"templateJsonBytes"`
	TemplateHeld float64 `json:"templateHeldBytes"`
}

// added compares heaps of the same objects with many members and with one.
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
