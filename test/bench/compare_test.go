package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCompareTable(t *testing.T) {
	run := func(raw, hanse float64) *Result {
		return &Result{Phases: []Phase{
			{System: systemRaw, Name: override, Timing: Timing{Rate: raw}},
			{System: systemHanse, Name: override, Timing: Timing{Rate: hanse, Latency: Latency{P50: 10, P99: 20}}, ShareOfRaw: hanse / raw, Cost: &Cost{}},
		}}
	}
	withRestart := run(200, 150)
	withRestart.Restart = &Restart{InSyncSeconds: 3}
	tests := map[string]struct {
		runs []*Result
		want []string // lines that the table must have
	}{
		"the ratio of two runs is the second over the first": {
			runs: []*Result{run(100, 50), run(200, 150)},
			want: []string{
				"figure run 1 run 2 ratio", "override: raw /s 100.00 200.00 2.00", "override: share of raw 0.50 0.75 1.50",
				"override: hub writes beyond 0.00 0.00 -",
			},
		},
		"three runs have a spread": {
			runs: []*Result{run(100, 50), run(400, 50), run(200, 50)},
			want: []string{"figure run 1 run 2 run 3 ratio spread", "override: raw /s 100.00 400.00 200.00 2.00 4.00"},
		},
		"a figure that a run does not have is a dash": {
			runs: []*Result{run(100, 50), withRestart}, want: []string{"restart: in sync s - 3.00 -"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			if err := beside(&b, tt.runs); err != nil {
				t.Fatal(err)
			}
			got := map[string]bool{}
			for line := range strings.Lines(b.String()) {
				got[strings.Join(strings.Fields(line), " ")] = true
			}
			for _, line := range tt.want {
				if !got[line] {
					t.Errorf("no line %q in:\n%s", line, b.String())
				}
			}
		})
	}
}

func TestLastRecorded(t *testing.T) {
	dir := t.TempDir()
	write := func(name, date, profile string, objects int) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := (&Result{Date: date, Profile: profile, Objects: objects, Members: 3}).write(path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("recorded/a.json", "2026-01-01T00:00:00Z", "small", 500)
	latest := write("recorded/b.json", "2026-01-03T00:00:00Z", "small", 500)
	write("recorded/c.json", "2026-01-02T00:00:00Z", "small", 500)
	write("recorded/d.json", "2026-01-04T00:00:00Z", "small", 40)
	write("recorded/e.json", "2026-01-05T00:00:00Z", "wide", 500)
	tests := map[string]struct {
		now  string
		want string
	}{
		"the latest of the same size":                {now: write("now.json", "2026-01-09T00:00:00Z", "small", 500), want: latest},
		"none of another size":                       {now: write("other.json", "2026-01-09T00:00:00Z", "deep", 5000)},
		"not the run itself, if it is recorded, too": {now: write("same.json", "2026-01-04T00:00:00Z", "small", 40)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := lastRecorded(tt.now, filepath.Join(dir, "recorded"))
			if diff := cmp.Diff(tt.want, got); diff != "" || (err == nil) != (tt.want != "") {
				t.Errorf("last recorded run (-want +got):\n%s%v", diff, err)
			}
		})
	}
}
