package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRoundsAreJoined(t *testing.T) {
	pass := func(rate float64) Phase { return Phase{System: systemRaw, Name: create, Timing: Timing{Rate: rate}} }
	round := func(rate, p50, cpu float64) Phase {
		return Phase{
			System: systemHanse, Name: create, Timing: Timing{Rate: rate, Seconds: 1200 / rate, Latency: Latency{P50: p50}},
			Cost: &Cost{CPUMillis: cpu, HubWrites: map[string]float64{"bindings": cpu}},
		}
	}
	r := &Result{Phases: []Phase{
		pass(400), {System: systemHub, Name: create, Timing: Timing{Rate: 700}, Cost: &Cost{EtcdBytes: 0}},
		round(300, 10, 1), pass(400), round(600, 30, 2), pass(1200),
	}}
	r.derive()
	want := &Phase{
		System: systemHanse, Name: create, Timing: Timing{Rate: 400, Seconds: 3, Latency: Latency{P50: 20}}, ShareOfRaw: 0.778,
		Cost: &Cost{CPUMillis: 1.5, HubWrites: map[string]float64{"bindings": 1.5}},
	}
	got := r.phase(systemHanse, create)
	got.Cost.ByReason, got.Cost.HubRequests, got.Cost.MemberRequests = nil, nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("two rounds joined, rates as times (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]float64{0.75, 1}, r.shares(create)); diff != "" {
		t.Errorf("shares of each round, by the passes before and after it (-want +got):\n%s", diff)
	}
	if row := "| create | 514 | 400 | 0.78 (0.75 to 1.00) |"; !strings.Contains(r.markdown(), row) {
		t.Errorf("no row %q in:\n%s", row, r.markdown())
	}
}
