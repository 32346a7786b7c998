package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// markdown returns the tables of a benchmark's result in the form of docs/benchmarks.md.
func (r *Result) markdown() string {
	var b strings.Builder
	m, v := r.Machine, r.Versions
	fmt.Fprintf(&b, "%s, `%s`\n\n", r.Date, r.Command)
	fmt.Fprintf(&b, "%d objects of %d bytes to %d members, %d requests in flight to each. %d cores (%s), %.0f GiB, %s, load %.1f before the run.\n",
		r.Objects, r.ObjectBytes, r.Members, r.InFlight, m.Cores, m.CPU, m.MemoryGiB, m.OS, m.LoadBefore)
	fmt.Fprintf(&b, "Hanse %s, Kubernetes %s, etcd %s, %s.\n\n", v.Hanse, v.Kubernetes, v.Etcd, v.Go)
	for _, table := range []func(*strings.Builder){r.speed, r.costs, r.restart, r.heaps, r.isolation, r.neighbours, r.lost, r.pageTable, r.targetTable} {
		before := b.Len()
		table(&b)
		if b.Len() > before {
			b.WriteByte('\n')
		}
	}
	if r.Error != "" {
		fmt.Fprintf(&b, "The run ended early: %s\n", r.Error)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// speed writes the table of rates and latencies.
func (r *Result) speed(b *strings.Builder) {
	if len(r.Phases) == 0 {
		return
	}
	row(b, "phase", "raw /s", "Hanse /s", "share of raw", "raw p50 / p99", "Hanse p50 / p99", "user's writes done", "last copy", "settled", "hub alone", "all CPU per copy raw / Hanse", "others' CPU raw / Hanse")
	row(b, slices.Repeat([]string{"---"}, 12)...)
	for _, name := range phaseNames {
		cells := slices.Repeat([]string{"-"}, 12)
		cells[0] = name
		raw, hub, hanse := r.phase(systemRaw, name), r.phase(systemHub, name), r.phase(systemHanse, name)
		if raw == nil && hub == nil && hanse == nil {
			continue
		}
		if raw != nil {
			cells[1], cells[4] = fmt.Sprintf("%.0f", raw.Rate), quantiles(raw.Latency)
		}
		if hanse != nil {
			cells[5] = quantiles(hanse.Latency)
			if hanse.Rate > 0 {
				cells[2], cells[3] = fmt.Sprintf("%.0f", hanse.Rate), fmt.Sprintf("%.2f", hanse.ShareOfRaw)
				if all := r.shares(name); len(all) > 1 {
					cells[3] += fmt.Sprintf(" (%.2f to %.2f)", slices.Min(all), slices.Max(all))
				}
				cells[6], cells[7], cells[8] = seconds(hanse.UserSeconds), seconds(hanse.Seconds), seconds(hanse.SettledSeconds)
			}
		}
		if hub != nil {
			cells[9] = fmt.Sprintf("%.0f objects/s", hub.Rate)
		}
		cells[10] = both(raw, hanse, func(p *Phase) string { return fmt.Sprintf("%.1f ms", p.CPU.PerCopyMillis) })
		cells[11] = both(raw, hanse, func(p *Phase) string { return fmt.Sprintf("%.0f %%", 100*p.CPU.Others) })
		row(b, cells...)
	}
}

// both returns the same figure of two phases. A phase that is nil is shown as "-".
func both(raw, hanse *Phase, figure func(*Phase) string) string {
	cells := []string{"-", "-"}
	for i, p := range []*Phase{raw, hanse} {
		if p != nil {
			cells[i] = figure(p)
		}
	}
	return strings.Join(cells, " / ")
}

// costs writes the table with the costs of Hanse.
func (r *Result) costs(b *strings.Builder) {
	if r.phase(systemHanse, create) == nil {
		return
	}
	row(b, "phase", "hub writes beyond the user's", "by resource, with the user's", "Events", "etcd puts, all", "etcd bytes beyond", "Leases in all", "CPU per copy", "RSS peak / settled", "member writes / reads per copy", "by verb")
	row(b, slices.Repeat([]string{"---"}, 11)...)
	for _, name := range phaseNames {
		p := r.phase(systemHanse, name)
		if p == nil {
			continue
		}
		c := p.Cost
		row(b, name, fmt.Sprintf("%.2f", c.HubWritesBeyond), largest(c.HubWrites), fmt.Sprintf("%.2f", c.Events), fmt.Sprintf("%.2f", c.EtcdPuts),
			fmt.Sprintf("%.1f kB", c.EtcdBytesBeyond/1000), fmt.Sprintf("%.0f", c.Leases), fmt.Sprintf("%.2f ms", c.CPUMillis),
			fmt.Sprintf("%.0f / %.0f MiB", c.PeakRSSMiB, c.SettledRSSMiB), fmt.Sprintf("%.2f / %.2f", c.MemberWrites, c.MemberReads), largest(c.MemberRequests))
	}
}

// restart writes the table of cold restarts.
func (r *Result) restart(b *strings.Builder) {
	if r.Restart == nil {
		return
	}
	c := r.Restart
	row(b, "cold restart: in sync after", "hub writes", "Leases", "Events", "member writes / reads", "CPU", "RSS peak", "new object during the replay", "written at", "copies looked at by then / by its last copy")
	row(b, slices.Repeat([]string{"---"}, 10)...)
	cells := []string{
		seconds(c.InSyncSeconds), fmt.Sprintf("%.0f", c.Writes), fmt.Sprintf("%.0f", c.Leases), fmt.Sprintf("%.0f", c.Events),
		fmt.Sprintf("%.0f / %.0f", c.MemberWrites, c.MemberReads), seconds(c.CPUSeconds), fmt.Sprintf("%.0f MiB", c.PeakRSSMiB), "-", "-", "-",
	}
	if n := c.NewObject; n != nil {
		cells[7], cells[8] = fmt.Sprintf("%.2f s", n.Seconds), seconds(n.SinceStart)
		cells[9] = fmt.Sprintf("%.0f / %.0f %%", 100*n.LookedAtBefore, 100*n.LookedAtAfter)
	}
	row(b, cells...)
}

// heaps writes the tables of the hub's memory.
func (r *Result) heaps(b *strings.Builder) {
	if len(r.Heaps) == 0 {
		return
	}
	row(b, "object", "objects", "members", "heap empty", "with objects", "after a restart", "RSS", "RSS after a restart, its peak", "templates: JSON / held")
	row(b, slices.Repeat([]string{"---"}, 9)...)
	for _, h := range r.Heaps {
		row(b, fmt.Sprintf("%.1f KiB", float64(h.ObjectBytes)/1024), fmt.Sprint(h.Objects), fmt.Sprint(h.Members), mebibytes(h.EmptyKiB), mebibytes(h.LiveKiB), mebibytes(h.RestartedKiB),
			fmt.Sprintf("%.0f MiB", h.RSSMiB), fmt.Sprintf("%.0f, %.0f MiB", h.RestartedRSSMiB, h.RestartPeakMiB), mebibytes(h.TemplatesJSONKiB)+" / "+mebibytes(h.TemplatesHeldKiB))
	}
	b.WriteByte('\n')
	row(b, "object", "one more member, per object", "after a restart", "without what a member takes empty", "an object with one member", "its template: JSON / held")
	row(b, slices.Repeat([]string{"---"}, 6)...)
	for _, a := range r.Added {
		row(b, fmt.Sprintf("%.1f KiB", float64(a.ObjectBytes)/1024), fmt.Sprintf("%.0f B", a.PerMember), fmt.Sprintf("%.0f B", a.PerMemberRestarted), fmt.Sprintf("%.0f B", a.PerMemberNet),
			fmt.Sprintf("%.0f B", a.PerObject), fmt.Sprintf("%.0f / %.0f B", a.TemplateJSON, a.TemplateHeld))
	}
}

func mebibytes(kib float64) string { return fmt.Sprintf("%.1f MiB", kib/1024) }

// isolation writes the table of latencies on good members beside bad members.
func (r *Result) isolation(b *strings.Builder) {
	if len(r.Isolation) == 0 {
		return
	}
	row(b, "scenario", "step", "good members p50 / p99", "raw p50 / p99", "p99 over the same without faults", "over the good ones alone", "all members complete after the faults' end")
	row(b, slices.Repeat([]string{"---"}, 7)...)
	for _, i := range r.Isolation {
		recovered := "-"
		if i.RecoveredSeconds > 0 {
			recovered = seconds(i.RecoveredSeconds)
		}
		row(b, i.Scenario, i.Step, quantiles(i.Latency), quantiles(i.Raw), fmt.Sprintf("%.2f", i.P99Ratio), fmt.Sprintf("%.2f", i.P99OverAlone), recovered)
	}
}

// neighbours writes the table of one tenant's latencies beside a noisy tenant.
func (r *Result) neighbours(b *strings.Builder) {
	if len(r.Neighbours) == 0 {
		return
	}
	row(b, "scenario", "single create p50 / p99", "raw p50 / p99", "p50 over raw", "that over undisturbed", "p50 over undisturbed",
		"statuses a second of the noisy tenant")
	row(b, slices.Repeat([]string{"---"}, 7)...)
	for _, n := range r.Neighbours {
		statuses := "-"
		if n.StatusesPerSecond > 0 {
			statuses = fmt.Sprintf("%.0f", n.StatusesPerSecond)
		}
		row(b, n.Scenario, quantiles(n.Create), quantiles(n.Raw), fmt.Sprintf("%.2f", n.P50OverRaw), fmt.Sprintf("%.2f", n.P50Ratio),
			fmt.Sprintf("%.2f", n.P50OverUndisturbed), statuses)
	}
}

// lost writes the table of a lost member.
func (r *Result) lost(b *strings.Builder) {
	if r.Lost == nil {
		return
	}
	row(b, "all rows after the grace", "single create before p50 / p99", "meanwhile p50 / p99", "p50 meanwhile over before")
	row(b, slices.Repeat([]string{"---"}, 4)...)
	row(b, seconds(r.Lost.RowsSeconds), quantiles(r.Lost.Before), quantiles(r.Lost.Meanwhile), fmt.Sprintf("%.2f", r.Lost.P50Ratio))
}

// pageTable writes the table of open pages of the console.
func (r *Result) pageTable(b *strings.Builder) {
	if r.Pages == nil {
		return
	}
	row(b, "first paint", "p50 / p99")
	row(b, slices.Repeat([]string{"---"}, 2)...)
	for _, path := range slices.Sorted(maps.Keys(r.Pages.FirstPaints)) {
		row(b, path, quantiles(r.Pages.FirstPaints[path]))
	}
	b.WriteByte('\n')
	row(b, "open pages", "read again a second", "single create p50 / p99", "raw p50 / p99", "peak of the hub's memory")
	row(b, slices.Repeat([]string{"---"}, 5)...)
	for _, x := range []struct {
		pages int
		reads float64
		Beside
	}{{0, 0, r.Pages.Closed}, {r.Pages.OpenPages, r.Pages.ReadsPerSecond, r.Pages.Open}} {
		row(b, fmt.Sprint(x.pages), fmt.Sprintf("%.1f", x.reads), quantiles(x.Create), quantiles(x.Raw), fmt.Sprintf("%.0f MiB", x.PeakMiB))
	}
}

// targetTable writes the table that compares the figures with their targets.
func (r *Result) targetTable(b *strings.Builder) {
	all := r.targets()
	if len(all) == 0 {
		return
	}
	row(b, "target", "must be", "is", "holds")
	row(b, slices.Repeat([]string{"---"}, 4)...)
	for _, t := range all {
		bound, holds := "at most", "no"
		if t.atLeast {
			bound = "at least"
		}
		if t.holds() {
			holds = "yes"
		}
		row(b, t.what, fmt.Sprintf("%s %v%s", bound, t.limit, t.unit), fmt.Sprintf("%.2f%s", t.is, t.unit), holds)
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

// largest returns the figures of a map from the largest to the smallest, such as "bindings 2.00, widgets 1.50". It
// leaves out Leases and Events, which have their own columns.
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
