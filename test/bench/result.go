package main

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// Systems on which a phase is measured.
const (
	systemRaw   = "raw"   // the client loop, straight to the members
	systemHub   = "hub"   // the user's writes to the hub, nobody watching; rates are of objects
	systemHanse = "hanse" // the user's writes to the hub, Hanse doing the rest
)

// Result is one run.
type Result struct {
	Date        string   `json:"date"`
	Command     string   `json:"command"`
	Profile     string   `json:"profile"`
	Objects     int      `json:"objects"`
	Members     int      `json:"members"`
	ObjectBytes int      `json:"objectBytes"` // JSON of one object as the user writes it
	InFlight    int      `json:"inFlightPerMember"`
	Machine     Machine  `json:"machine"`
	Versions    Versions `json:"versions"`
	Phases      []Phase  `json:"phases,omitempty"`
	Restart     *Restart `json:"restart,omitempty"`
	// Heaps, Isolation, Neighbours, Lost and Pages are of the profiles memory, isolation, tenants, lost and pages.
	Heaps      []Heap      `json:"heaps,omitempty"`
	Added      []Added     `json:"addedPerMember,omitempty"`
	Isolation  []Isolation `json:"isolation,omitempty"`
	Neighbours []Neighbour `json:"neighbours,omitempty"`
	Lost       *Lost       `json:"lost,omitempty"`
	Pages      *Pages      `json:"pages,omitempty"`
	Error      string      `json:"error,omitempty"` // why later phases are missing
}

// Timing is the speed of a phase.
type Timing struct {
	Seconds float64 `json:"seconds"`
	// Rate is object-clusters per second; for the hub alone, objects per second. Single changes have none.
	Rate    float64 `json:"rate"`
	Latency Latency `json:"latency"`
}

// CPU is the use of the machine's CPU from the beginning of a phase until it had settled.
type CPU struct {
	Seconds map[string]float64 `json:"seconds"`
	// Others is the share of all cores used by processes outside the run.
	Others float64 `json:"othersShare"`
	// PerCopyMillis is the CPU time of all processes of the run, including control planes and the benchmark itself, for
	// one object-cluster.
	PerCopyMillis float64 `json:"perCopyMs"`
}

// Phase is one step on one system.
type Phase struct {
	System string `json:"system"`
	Name   string `json:"name"`
	Timing
	// ShareOfRaw is the rate divided by that of the raw loop.
	ShareOfRaw float64 `json:"shareOfRaw,omitempty"`
	// UserSeconds is the time of the response to the last of the user's own writes, SettledSeconds the time of the last
	// write in the hub's etcd.
	UserSeconds    float64 `json:"userSeconds,omitempty"`
	SettledSeconds float64 `json:"settledSeconds,omitempty"`
	CPU            CPU     `json:"cpu"`
	// Cost is left out for the raw loop, which does not touch the hub.
	Cost *Cost `json:"cost,omitempty"`
}

// phase combines the results of a step on a system over all rounds, because servers and machines get slower or faster
// during a run. Rates are combined as times, other figures as means. It returns nil if there are none.
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

// shareOfRaw returns the rate of a phase divided by that of the raw loop, 0 if it has none.
func (r *Result) shareOfRaw(p *Phase) float64 {
	raw := r.phase(systemRaw, p.Name)
	if raw == nil {
		return 0
	}
	return round(p.Rate / raw.Rate)
}

// shares returns the share of raw in each round, by the raw loop's passes before and after it.
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

// derive computes the figures that compare phases, heaps and scenarios.
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

// p99Over returns the 99th percentile divided by that of the same step in another scenario, 0 if there is none.
func (r *Result) p99Over(scenario string, i Isolation) float64 {
	for _, base := range r.Isolation {
		if base.Scenario == scenario && base.Step == i.Step {
			return round(i.Latency.P99 / base.Latency.P99)
		}
	}
	return 0
}

// write writes the result as JSON.
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
