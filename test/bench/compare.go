package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// recorded is the folder with the recorded runs of the benchmark.
var recorded = filepath.Join("test", "bench", "recorded")

// compare prints runs side by side: either the named files, or the last run beside the last recorded run of the same
// size.
func compare(_ context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("bench "+compareCommand, flag.ContinueOnError)
	last := flags.String("out", filepath.Join(".cache", "bench.json"), "File with the results of the last run.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	paths := flags.Args()
	if len(paths) == 0 {
		before, err := lastRecorded(*last, recorded)
		if err != nil {
			return err
		}
		paths = []string{before, *last}
	}
	runs := make([]*Result, len(paths))
	for i, path := range paths {
		r, err := load(path)
		if err != nil {
			return err
		}
		runs[i] = r
		fmt.Fprintf(out, "%s: %s, %s, Hanse %s, load %.1f before the run\n", label(i), path, r.Date, r.Versions.Hanse, r.Machine.LoadBefore)
		if !r.sameSize(runs[0]) {
			fmt.Fprintf(out, "  it is of profile %s, %d objects to %d members, not of the size of the first\n", r.Profile, r.Objects, r.Members)
		}
	}
	fmt.Fprintln(out)
	return beside(out, runs)
}

// label returns the name of a benchmark run in the table.
func label(i int) string { return fmt.Sprintf("run %d", i+1) }

func load(path string) (*Result, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading a run: %w", err)
	}
	r := &Result{}
	if err := json.Unmarshal(raw, r); err != nil {
		return nil, fmt.Errorf("reading the run in %s: %w", path, err)
	}
	return r, nil
}

func (r *Result) sameSize(other *Result) bool {
	return r.Profile == other.Profile && r.Objects == other.Objects && r.Members == other.Members
}

// lastRecorded returns the latest run in a folder that has the same size as the run in a file.
func lastRecorded(path, folder string) (string, error) {
	now, err := load(path)
	if err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return "", err
	}
	found, date := "", ""
	for _, file := range files {
		r, err := load(file)
		if err != nil {
			return "", err
		}
		if r.sameSize(now) && r.Date > date && r.Date != now.Date {
			found, date = file, r.Date
		}
	}
	if found == "" {
		return "", fmt.Errorf("no run of profile %s with %d objects to %d members is recorded in %s", now.Profile, now.Objects, now.Members, folder)
	}
	return found, nil
}

// figure is one number in the result of a benchmark run that can be compared with other runs.
type figure struct {
	name  string
	value float64
}

// beside prints all figures of the runs as an aligned table. The ratio is the last run's value divided by the first
// run's value. With more than two runs, the spread is the largest value divided by the smallest.
func beside(out io.Writer, runs []*Result) error {
	var names []string
	values := make([]map[string]float64, len(runs))
	for i, r := range runs {
		values[i] = map[string]float64{}
		for _, f := range r.figures() {
			values[i][f.name] = f.value
			if !slices.Contains(names, f.name) {
				names = append(names, f.name)
			}
		}
	}
	if len(names) == 0 {
		return errors.New("the runs hold no figures")
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := []string{"figure"}
	for i := range runs {
		head = append(head, label(i))
	}
	head = append(head, "ratio")
	if len(runs) > 2 {
		head = append(head, "spread")
	}
	fmt.Fprintln(table, strings.Join(head, "\t")+"\t")
	for _, name := range names {
		fmt.Fprintln(table, strings.Join(line(name, values), "\t")+"\t")
	}
	return table.Flush()
}

// line returns the row of one figure. A missing value is shown as "-".
func line(name string, values []map[string]float64) []string {
	cells := []string{name}
	least, most := math.Inf(1), 0.0
	for _, of := range values {
		v, ok := of[name]
		if !ok {
			cells = append(cells, "-")
			continue
		}
		cells = append(cells, fmt.Sprintf("%.2f", v))
		least, most = min(least, v), max(most, v)
	}
	first, ok1 := values[0][name]
	last, ok2 := values[len(values)-1][name]
	cells = append(cells, ratio(last, first, ok1 && ok2))
	if len(values) > 2 {
		cells = append(cells, ratio(most, least, !math.IsInf(least, 1)))
	}
	return cells
}

func ratio(over, under float64, known bool) string {
	if !known || under <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", over/under)
}

// figures returns the numbers of a run in the order of the tables.
func (r *Result) figures() []figure {
	var out []figure
	add := func(name string, value float64) { out = append(out, figure{name, value}) }
	for _, name := range phaseNames {
		raw, hanse := r.phase(systemRaw, name), r.phase(systemHanse, name)
		if raw != nil {
			add(name+": raw /s", raw.Rate)
		}
		if hanse == nil {
			continue
		}
		if hanse.Rate > 0 {
			add(name+": Hanse /s", hanse.Rate)
		}
		if raw != nil {
			add(name+": share of raw", hanse.ShareOfRaw)
		}
		add(name+": p50 ms", hanse.Latency.P50)
		add(name+": p99 ms", hanse.Latency.P99)
		c := hanse.Cost
		add(name+": hub writes beyond", c.HubWritesBeyond)
		add(name+": Events", c.Events)
		add(name+": etcd kB beyond", c.EtcdBytesBeyond/1000)
		add(name+": CPU ms per copy", c.CPUMillis)
		add(name+": all CPU ms per copy", hanse.CPU.PerCopyMillis)
		add(name+": RSS peak MiB", c.PeakRSSMiB)
		add(name+": RSS settled MiB", c.SettledRSSMiB)
		writes, reads := writesAndReads(c.MemberRequests) // older runs do not have the sums
		add(name+": member writes", writes)
		add(name+": member reads", reads)
	}
	if c := r.Restart; c != nil {
		add("restart: in sync s", c.InSyncSeconds)
		add("restart: hub writes", c.Writes)
		add("restart: member writes", c.MemberWrites)
		add("restart: CPU s", c.CPUSeconds)
		add("restart: RSS peak MiB", c.PeakRSSMiB)
		if c.NewObject != nil {
			add("restart: new object s", c.NewObject.Seconds)
		}
	}
	for _, a := range r.Added {
		size := fmt.Sprintf("memory, %d bytes: ", a.ObjectBytes)
		add(size+"one more member B", a.PerMember)
		add(size+"after a restart B", a.PerMemberRestarted)
		add(size+"one object B", a.PerObject)
		add(size+"template held B", a.TemplateHeld)
	}
	for _, i := range r.Isolation {
		add(i.Scenario+", "+i.Step+": p50 ms", i.Latency.P50)
		add(i.Scenario+", "+i.Step+": p99 ms", i.Latency.P99)
		add(i.Scenario+", "+i.Step+": raw p99 ms", i.Raw.P99)
		add(i.Scenario+", "+i.Step+": p99 over the same without faults", i.P99Ratio)
	}
	if r.Lost != nil {
		add("lost: rows after the grace s", r.Lost.RowsSeconds)
		add("lost: p50 of a single create, meanwhile over before", r.Lost.P50Ratio)
	}
	if p := r.Pages; p != nil {
		for _, path := range slices.Sorted(maps.Keys(p.FirstPaints)) {
			add("pages: p50 ms of the first paint of "+path, p.FirstPaints[path].P50)
		}
		add("pages: p50 ms of a single create with open pages", p.Open.Create.P50)
		add("pages: that over raw, over the same without", p.P50Ratio)
		add("pages: memory of open pages MiB", p.MiB)
	}
	return out
}
