package main

import (
	"maps"
	"slices"
)

// target compares a measured figure with the limit that it must keep.
type target struct {
	what    string
	is      float64
	limit   float64
	unit    string
	atLeast bool // the limit is a minimum
}

func (t target) holds() bool {
	if t.atLeast {
		return t.is >= t.limit
	}
	return t.is <= t.limit
}

// minShare is the smallest share of the raw loop's throughput that Hanse must reach, by profile and phase.
var minShare = map[string]map[string]float64{
	"small": {create: 0.35, update: 0.50, withdraw: 0.40},
	"wide":  {create: 0.70, withdraw: 0.50},
}

// The limits for the CPU time of the hub process per copy, and for latencies when all objects are written at once. The
// limits are multiples of values of the raw loop. ownCPU multiplies the CPU time that all processes together need for
// one copy. The other constants multiply the time in which the raw loop creates all copies.
//
// On the two cores of the reference machine, the raw loop made 595 copies per second. All processes together needed
// 3.4 ms of CPU time for a copy. The raw loop needed 2.5 s for the 1,500 copies of the profile small. Therefore the
// limits on this machine are 2 ms, 2 s, 4 s and 1.5 s.
const (
	ownCPU    = 0.6
	createP50 = 0.8
	createP99 = 1.6
	statusP50 = 0.6
)

// targets compares the figures of a benchmark run with the targets of its profile. Latencies of single objects have
// targets only for 3 members. With more members, the API servers on the machine slow each other down.
func (r *Result) targets() []target {
	var out []target
	for _, name := range phaseNames {
		p := r.phase(systemHanse, name)
		if p == nil {
			continue
		}
		if least, ok := minShare[r.Profile][name]; ok && r.named() {
			out = append(out, target{what: name + ": share of raw", is: p.ShareOfRaw, limit: least, atLeast: true})
		}
		out = append(out, r.phaseTargets(p)...)
		if raw := r.phase(systemRaw, create); raw != nil {
			out = append(out, r.scaledTargets(p, raw)...)
		}
	}
	if c := r.Restart; c != nil {
		out = append(out, target{what: "restart: hub writes", is: c.Writes}, target{what: "restart: member writes", is: c.MemberWrites})
		if c.NewObject != nil && r.Members == 3 {
			out = append(out, target{what: "restart: new object during the replay", is: c.NewObject.Seconds, limit: 3, unit: " s"})
		}
	}
	out = append(out, r.memoryTargets()...)
	if len(r.Neighbours) > 0 {
		out = append(out, target{what: "tenants: p50 of a single create over raw, beside a noisy tenant over the same without", is: noisiest(r.Neighbours), limit: 1.5})
	}
	if r.Lost != nil {
		out = append(out, target{what: "lost: rows of the lost member after the grace", is: r.Lost.RowsSeconds, limit: 15, unit: " s"},
			target{what: "lost: p50 of a single create, meanwhile over before", is: r.Lost.P50Ratio, limit: 2})
	}
	if p := r.Pages; p != nil {
		for _, path := range slices.Sorted(maps.Keys(p.FirstPaints)) {
			out = append(out, target{what: "pages: p99 of the first paint of " + path, is: p.FirstPaints[path].P99 / 1000, limit: 1, unit: " s"})
		}
		out = append(out, target{what: "pages: memory of open pages", is: p.MiB, limit: 95, unit: " MiB"}, // 100 MB
			target{what: "pages: p50 of a single create over raw, with open pages over the same without", is: p.P50Ratio, limit: 1.1})
	}
	if len(r.Isolation) > 0 {
		out = append(out, target{what: "isolation: p99 of the good members over the same without faults", is: worst(r.Isolation), limit: 1.3})
	}
	return out
}

// memoryTargets compares the heaps with their targets. The memory of templates, which are the hub objects in the hub's
// memory, is the hub's own estimate. The heap that larger objects add is measured. It must be at most half of the JSON
// that they add.
func (r *Result) memoryTargets() []target {
	var out []target
	for i, a := range r.Added {
		out = append(out, target{what: "memory: one more member, per object", is: a.PerMember / 1024, limit: 3, unit: " KiB"})
		if i > 0 {
			small := r.Added[0]
			out = append(out, target{what: "memory: the same with large objects over small ones", is: a.PerMember / small.PerMember, limit: 1.1})
			more := (a.PerObject - small.PerObject) / float64(a.ObjectBytes-small.ObjectBytes)
			out = append(out, target{what: "memory: heap that a larger object adds, over its JSON", is: more, limit: 0.5})
		}
		if a.TemplateHeld > 0 {
			limit := round((a.TemplateJSON/2 + 2048) / 1024)
			out = append(out, target{what: "memory: a template, half its JSON and 2 KiB", is: a.TemplateHeld / 1024, limit: limit, unit: " KiB"})
		}
	}
	return out
}

// named reports whether the run has the size that its profile defines. Some targets are only for runs of this size.
func (r *Result) named() bool {
	p := profiles()[r.Profile]
	return r.Objects == p.objects && r.Members == p.members
}

// isSmall reports whether the run is of the profile small, and has the size that this profile defines. Only such a run
// has targets for the latencies when all objects are written at once.
func (r *Result) isSmall() bool { return r.Profile == "small" && r.named() }

// scaledTargets returns the targets of one phase of Hanse that are multiples of the raw loop's time to create all
// copies.
func (r *Result) scaledTargets(p, raw *Phase) []target {
	var out []target
	add := func(applies bool, what string, is, limit float64) {
		if applies {
			out = append(out, target{what: p.Name + ": " + what, is: round(is), limit: limit})
		}
	}
	all := float64(r.Objects*r.Members) / raw.Rate * 1000
	switch p.Name {
	case create:
		add(true, "CPU per copy over all CPU of a raw copy", p.Cost.CPUMillis/raw.CPU.PerCopyMillis, ownCPU)
		add(r.isSmall(), "p50 over raw's time for all", p.Latency.P50/all, createP50)
		add(r.isSmall(), "p99 over raw's time for all", p.Latency.P99/all, createP99)
	case status:
		add(r.isSmall(), "p50 over raw's time to create all", p.Latency.P50/all, statusP50)
	}
	return out
}

// phaseTargets returns the targets of one phase of Hanse with fixed limits.
func (r *Result) phaseTargets(p *Phase) []target {
	small := r.isSmall()
	var out []target
	add := func(applies bool, what string, is, limit float64, unit string) {
		if applies {
			out = append(out, target{what: p.Name + ": " + what, is: is, limit: limit, unit: unit})
		}
	}
	switch p.Name {
	case create:
		add(true, "hub writes per object", p.Cost.HubWritesBeyond, 4, "")
		add(true, "Events per object", p.Cost.Events, 1, "")
		add(r.Members == 3, "hub etcd bytes per object", p.Cost.EtcdBytesBeyond/1000, 10, " kB")
		add(true, "CPU per copy", p.Cost.CPUMillis, 2, " ms")
		add(small, "p50", p.Latency.P50/1000, 2, " s")
		add(small, "p99", p.Latency.P99/1000, 4, " s")
	case status:
		add(true, "hub writes per object", p.Cost.HubWritesBeyond, 3, "")
		add(small, "p50", p.Latency.P50/1000, 1.5, " s")
	case singleCreate:
		add(r.Members == 3, "p50", p.Latency.P50/1000, 0.1, " s")
		add(r.Members == 3, "p99", p.Latency.P99/1000, 0.3, " s")
	case singleStatus:
		add(true, "p50", p.Latency.P50/1000, 0.3, " s")
	case withdraw:
		add(true, "hub writes per object", p.Cost.HubWritesBeyond, 3.2, "")
		add(true, "member reads per copy", p.Cost.MemberReads, 0.2, "")
		add(true, "uncached reads of the binding per object", p.Cost.HubRequests["GET resourcebindings.hanse.dev"], 1.1, "")
	}
	return out
}
