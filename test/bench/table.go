package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Systems that a phase is measured on.
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
	Phases      []Phase  `json:"phases"`
	Error       string   `json:"error,omitempty"` // why later phases are missing
}

// Timing is how fast a phase was.
type Timing struct {
	Seconds float64 `json:"seconds"`
	// Rate is object-clusters per second; for the hub alone, objects per second.
	Rate    float64 `json:"rate"`
	Latency Latency `json:"latency"`
}

// CPU says who used the machine from the beginning of a phase until it had settled.
type CPU struct {
	Seconds map[string]float64 `json:"seconds"`
	// Others is the share of all cores that went to processes which are no part of the run.
	Others float64 `json:"othersShare"`
	// PerCopyMillis is what all processes of the run took together, control planes and the benchmark itself included, for one
	// object-cluster.
	PerCopyMillis float64 `json:"perCopyMs"`
}

// Phase is one step on one system.
type Phase struct {
	System string `json:"system"`
	Name   string `json:"name"`
	Timing
	// ShareOfRaw is the rate over that of the raw loop.
	ShareOfRaw float64 `json:"shareOfRaw,omitempty"`
	// UserSeconds is when the last of the user's own writes was answered, SettledSeconds when the hub's etcd had its last write.
	UserSeconds    float64 `json:"userSeconds,omitempty"`
	SettledSeconds float64 `json:"settledSeconds,omitempty"`
	CPU            CPU     `json:"cpu"`
	// Cost is left out for the raw loop, which does not touch the hub.
	Cost *Cost `json:"cost,omitempty"`
}

func (r *Result) phase(system, name string) *Phase {
	i := slices.IndexFunc(r.Phases, func(p Phase) bool { return p.System == system && p.Name == name })
	if i < 0 {
		return nil
	}
	return &r.Phases[i]
}

// derive fills in what follows from comparing phases.
func (r *Result) derive() {
	for i := range r.Phases {
		p := &r.Phases[i]
		if p.System != systemHanse {
			continue
		}
		if raw := r.phase(systemRaw, p.Name); raw != nil {
			p.ShareOfRaw = round(p.Rate / raw.Rate)
		}
		if hub := r.phase(systemHub, p.Name); hub != nil {
			p.Cost.EtcdBytesBeyond = round(p.Cost.EtcdBytes - hub.Cost.EtcdBytes)
		}
	}
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

// markdown is the run as docs/benchmarks.md records it.
func (r *Result) markdown() string {
	var b strings.Builder
	m, v := r.Machine, r.Versions
	fmt.Fprintf(&b, "%s, `%s`\n\n", r.Date, r.Command)
	fmt.Fprintf(&b, "%d objects of %d bytes to %d members, %d requests in flight to each. %d cores (%s), %.0f GiB, %s, load %.1f before the run.\n",
		r.Objects, r.ObjectBytes, r.Members, r.InFlight, m.Cores, m.CPU, m.MemoryGiB, m.OS, m.LoadBefore)
	fmt.Fprintf(&b, "Hanse %s, Kubernetes %s, etcd %s, %s.\n\n", v.Hanse, v.Kubernetes, v.Etcd, v.Go)
	r.speed(&b)
	b.WriteByte('\n')
	r.costs(&b)
	if r.Error != "" {
		fmt.Fprintf(&b, "\nThe run ended early: %s\n", r.Error)
	}
	return b.String()
}

// speed is the table of rates and latencies.
func (r *Result) speed(b *strings.Builder) {
	row(b, "phase", "raw /s", "Hanse /s", "share of raw", "raw p50 / p99", "Hanse p50 / p99", "user's writes done", "last copy", "settled", "hub alone", "all CPU per copy raw / Hanse", "others' CPU raw / Hanse")
	row(b, slices.Repeat([]string{"---"}, 12)...)
	for _, step := range steps {
		cells := slices.Repeat([]string{"-"}, 12)
		cells[0] = step.name
		raw, hub, hanse := r.phase(systemRaw, step.name), r.phase(systemHub, step.name), r.phase(systemHanse, step.name)
		if raw != nil {
			cells[1], cells[4] = fmt.Sprintf("%.0f", raw.Rate), quantiles(raw.Latency)
		}
		if hanse != nil {
			cells[2], cells[3], cells[5] = fmt.Sprintf("%.0f", hanse.Rate), fmt.Sprintf("%.2f", hanse.ShareOfRaw), quantiles(hanse.Latency)
			cells[6], cells[7], cells[8] = seconds(hanse.UserSeconds), seconds(hanse.Seconds), seconds(hanse.SettledSeconds)
		}
		if hub != nil {
			cells[9] = fmt.Sprintf("%.0f objects/s", hub.Rate)
		}
		cells[10] = beside(raw, hanse, func(p *Phase) string { return fmt.Sprintf("%.1f ms", p.CPU.PerCopyMillis) })
		cells[11] = beside(raw, hanse, func(p *Phase) string { return fmt.Sprintf("%.0f %%", 100*p.CPU.Others) })
		row(b, cells...)
	}
}

// beside shows the same figure of two phases, of which one or both may be missing.
func beside(raw, hanse *Phase, figure func(*Phase) string) string {
	cells := []string{"-", "-"}
	for i, p := range []*Phase{raw, hanse} {
		if p != nil {
			cells[i] = figure(p)
		}
	}
	return strings.Join(cells, " / ")
}

// costs is the table of what Hanse took.
func (r *Result) costs(b *strings.Builder) {
	row(b, "phase", "hub writes beyond the user's", "by resource, with the user's", "Events", "etcd puts, all", "etcd bytes beyond", "Leases in all", "CPU per copy", "RSS peak / settled", "member requests per copy")
	row(b, slices.Repeat([]string{"---"}, 10)...)
	for _, p := range r.Phases {
		if p.System != systemHanse {
			continue
		}
		c := p.Cost
		row(b, p.Name, fmt.Sprintf("%.2f", c.HubWritesBeyond), largest(c.HubWrites), fmt.Sprintf("%.2f", c.Events), fmt.Sprintf("%.2f", c.EtcdPuts),
			fmt.Sprintf("%.1f kB", c.EtcdBytesBeyond/1000), fmt.Sprintf("%.0f", c.Leases), fmt.Sprintf("%.2f ms", c.CPUMillis),
			fmt.Sprintf("%.0f / %.0f MiB", c.PeakRSSMiB, c.SettledRSSMiB), largest(c.MemberRequests))
	}
}

func row(b *strings.Builder, cells ...string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

func quantiles(l Latency) string {
	if l.P99 < 1000 {
		return fmt.Sprintf("%.0f / %.0f ms", l.P50, l.P99)
	}
	return fmt.Sprintf("%.2f / %.2f s", l.P50/1000, l.P99/1000)
}

func seconds(s float64) string { return fmt.Sprintf("%.1f s", s) }

// largest names the figures of a map that matter, largest first: "bindings 2.00, widgets 1.50". Leases and Events have columns of their own.
func largest(figures map[string]float64) string {
	names := slices.SortedFunc(maps.Keys(figures), func(a, b string) int {
		if figures[a] != figures[b] {
			if figures[a] > figures[b] {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	var out []string
	for _, name := range names {
		if figures[name] >= 0.005 && !isLease(name) && !isEvent(name) {
			short, _, _ := strings.Cut(name, ".")
			out = append(out, fmt.Sprintf("%s %.2f", short, figures[name]))
		}
	}
	return strings.Join(out, ", ")
}
