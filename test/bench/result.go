package main

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// The systems that the benchmark compares. Each phase is measured on one of them.
const (
	systemRaw   = "raw"   // the raw client loop, directly to the members
	systemHub   = "hub"   // the user's writes to the hub while no hub process runs; the rates count objects, not copies
	systemHanse = "hanse" // the user's writes to the hub, and the copies that Hanse makes
)

// Result is the result of one run of the benchmark.
type Result struct {
	Date        string   `json:"date"`
	Command     string   `json:"command"`
	Profile     string   `json:"profile"`
	Objects     int      `json:"objects"`
	Members     int      `json:"members"`
	ObjectBytes int      `json:"objectBytes"` // size of one object as the user writes it, in JSON
	InFlight    int      `json:"inFlightPerMember"`
	Machine     Machine  `json:"machine"`
	Versions    Versions `json:"versions"`
	Phases      []Phase  `json:"phases,omitempty"`
	Restart     *Restart `json:"restart,omitempty"`
	// Heaps, Isolation, Neighbours, Lost and Pages are the results of the profiles memory, isolation, tenants, lost and
	// pages.
	Heaps      []Heap      `json:"heaps,omitempty"`
	Added      []Added     `json:"addedPerMember,omitempty"`
	Isolation  []Isolation `json:"isolation,omitempty"`
	Neighbours []Neighbour `json:"neighbours,omitempty"`
	Lost       *Lost       `json:"lost,omitempty"`
	Pages      *Pages      `json:"pages,omitempty"`
	Error      string      `json:"error,omitempty"` // the reason why later phases are missing
}

// Timing is the speed of a phase. A phase is one step of the benchmark, such as the creation of all objects.
type Timing struct {
	Seconds float64 `json:"seconds"`
	// Rate is the number of copies per second. For the hub alone, it is the number of objects per second. It is zero for
	// single changes.
	Rate    float64 `json:"rate"`
	Latency Latency `json:"latency"`
}

// CPU is the use of the machine's CPU from the start of a phase until etcd was quiet.
type CPU struct {
	Seconds map[string]float64 `json:"seconds"`
	// Others is the share of the CPU time of all cores that processes outside the benchmark used.
	Others float64 `json:"othersShare"`
	// PerCopyMillis is the CPU time of all processes of the benchmark per copy. It includes the control planes and the
	// process that measures.
	PerCopyMillis float64 `json:"perCopyMs"`
}

// Phase is the result of one step, such as the creation of all objects. The step was done by one system: by Hanse, by
// the raw loop, or on the hub alone.
type Phase struct {
	System string `json:"system"`
	Name   string `json:"name"`
	Timing
	// ShareOfRaw is the rate divided by that of the raw loop.
	ShareOfRaw float64 `json:"shareOfRaw,omitempty"`
	// UserSeconds is the time until the response to the last of the user's writes. SettledSeconds is the time until the
	// last write to the hub's etcd.
	UserSeconds    float64 `json:"userSeconds,omitempty"`
	SettledSeconds float64 `json:"settledSeconds,omitempty"`
	CPU            CPU     `json:"cpu"`
	// Cost is missing for the raw loop, which sends nothing to the hub.
	Cost *Cost `json:"cost,omitempty"`
}

// phase returns the mean result of a step on a system over all rounds, because machines and servers change their speed
// during a run. The rate is computed from the mean of the times per copy. Each other figure is the mean of its values.
// It returns nil if the run has no result for the step.
func (r *Result) phase(system, name string) *Phase {
	var all []Phase
	for _, p := range r.Phases {
		if p.System == system && p.Name == name {
			all = append(all, p)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return &all[0]
	}
	figure := func(of func(*Phase) float64) float64 { return mean(all, of) }
	out := &Phase{System: system, Name: name}
	if all[0].Rate > 0 {
		out.Rate = round(1000 / figure(func(p *Phase) float64 { return 1000 / p.Rate }))
	}
	out.Seconds = round(figure(func(p *Phase) float64 { return p.Seconds }))
	out.Latency.P50 = figure(func(p *Phase) float64 { return p.Latency.P50 })
	out.Latency.P99 = figure(func(p *Phase) float64 { return p.Latency.P99 })
	out.UserSeconds = figure(func(p *Phase) float64 { return p.UserSeconds })
	out.SettledSeconds = figure(func(p *Phase) float64 { return p.SettledSeconds })
	out.CPU.PerCopyMillis = figure(func(p *Phase) float64 { return p.CPU.PerCopyMillis })
	out.CPU.Others = figure(func(p *Phase) float64 { return p.CPU.Others })
	if all[0].Cost != nil {
		costs := make([]Cost, len(all))
		for i := range all {
			costs[i] = *all[i].Cost
		}
		out.Cost = meanCost(costs)
	}
	if system == systemHanse {
		out.ShareOfRaw = r.shareOfRaw(out)
	}
	return out
}

// shareOfRaw returns the rate of a phase divided by the rate of the raw loop. It returns 0 if the raw loop has no rate.
func (r *Result) shareOfRaw(p *Phase) float64 {
	raw := r.phase(systemRaw, p.Name)
	if raw == nil {
		return 0
	}
	return round(p.Rate / raw.Rate)
}

// shares returns, for each round, the rate of Hanse divided by the rate of the raw loop. It compares a round with the
// passes of the raw loop before and after the round.
func (r *Result) shares(name string) []float64 {
	var out []float64
	var before, hanse float64
	for _, p := range r.Phases {
		switch {
		case p.Name != name:
		case p.System == systemHanse:
			hanse = p.Rate
		case p.System == systemRaw:
			if hanse > 0 {
				out = append(out, round(hanse*(1/before+1/p.Rate)/2))
			}
			before, hanse = p.Rate, 0
		}
	}
	return out
}

func (r *Result) empty() bool {
	return len(r.Phases)+len(r.Heaps)+len(r.Isolation)+len(r.Neighbours) == 0 && r.Lost == nil && r.Pages == nil
}

// derive computes the figures that compare phases, heaps or scenarios with each other.
func (r *Result) derive() {
	for i := 0; i+1 < len(r.Heaps); i += 2 {
		r.Added = append(r.Added, added(r.Heaps[i], r.Heaps[i+1]))
	}
	for i := range r.Isolation {
		r.Isolation[i].P99Ratio = r.p99Over(withoutFaults(r.Isolation[i].Scenario), r.Isolation[i])
		r.Isolation[i].P99OverAlone = r.p99Over(alone, r.Isolation[i])
	}
	for i := range r.Neighbours {
		n, calm := &r.Neighbours[i], r.Neighbours[0]
		n.P50OverRaw = round(n.Create.P50 / n.Raw.P50)
		n.P50Ratio = round(n.Create.P50 / n.Raw.P50 / (calm.Create.P50 / calm.Raw.P50))
		n.P50OverUndisturbed = round(n.Create.P50 / calm.Create.P50)
	}
	for i := range r.Phases {
		p := &r.Phases[i]
		if p.System != systemHanse {
			continue
		}
		p.ShareOfRaw = r.shareOfRaw(p)
		p.Cost.EtcdBytesBeyond = p.Cost.EtcdBytes
		if hub := r.phase(systemHub, p.Name); hub != nil {
			p.Cost.EtcdBytesBeyond = round(p.Cost.EtcdBytes - hub.Cost.EtcdBytes)
		}
	}
}

// p99Over returns the 99th percentile of the latency in i divided by that of the same step in another scenario. It
// returns 0 if the run does not have the other scenario.
func (r *Result) p99Over(scenario string, i Isolation) float64 {
	for _, base := range r.Isolation {
		if base.Scenario == scenario && base.Step == i.Step {
			return round(i.Latency.P99 / base.Latency.P99)
		}
	}
	return 0
}

// write writes the result as JSON to a file.
func (r *Result) write(path string) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(raw, '\n'), 0o644)
}
