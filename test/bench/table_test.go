package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMarkdown(t *testing.T) {
	r := &Result{
		Date: "2026-01-02T03:04:05Z", Command: "bench", Objects: 500, ObjectBytes: 1024, Members: 3, InFlight: 8,
		Machine:  Machine{CPU: "Some CPU", Cores: 2, MemoryGiB: 23.4, OS: "Linux 6.1", LoadBefore: 0.25},
		Versions: Versions{Hanse: "v0.1", Kubernetes: "v1.36.1", Etcd: "3.6.8", Go: "go1.26"},
		Phases: []Phase{
			{System: systemRaw, Name: create, Timing: Timing{Rate: 600, Latency: Latency{P50: 12, P99: 40}}, CPU: CPU{Others: 0.03, PerCopyMillis: 4}},
			{System: systemHub, Name: create, Timing: Timing{Rate: 700}, Cost: &Cost{EtcdBytes: 2000}},
			{
				System: systemHanse, Name: create, Timing: Timing{Seconds: 5, Rate: 300, Latency: Latency{P50: 900, P99: 2400}}, UserSeconds: 1, SettledSeconds: 7.5, CPU: CPU{Others: 0.12, PerCopyMillis: 14.33},
				Cost: &Cost{
					HubWrites:       map[string]float64{"resourcebindings.hanse.dev": 2, "widgets.bench.hanse.dev": 2, "events": 1, "placements.hanse.dev": 0.002},
					HubWritesBeyond: 3, Events: 1, EtcdPuts: 5.1, EtcdBytes: 9500, Leases: 4, CPUMillis: 1.234, PeakRSSMiB: 120, SettledRSSMiB: 100,
					MemberRequests: map[string]float64{"APPLY": 1, "GET": 0.25},
				},
			},
		},
		Error: "the rest failed",
	}
	r.derive()
	want := "2026-01-02T03:04:05Z, `bench`" + `

500 objects of 1024 bytes to 3 members, 8 requests in flight to each. 2 cores (Some CPU), 23 GiB, Linux 6.1, load 0.2 before the run.
Hanse v0.1, Kubernetes v1.36.1, etcd 3.6.8, go1.26.

| phase | raw /s | Hanse /s | share of raw | raw p50 / p99 | Hanse p50 / p99 | user's writes done | last copy | settled | hub alone | all CPU per copy raw / Hanse | others' CPU raw / Hanse |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| create | 600 | 300 | 0.50 | 12 / 40 ms | 0.90 / 2.40 s | 1.0 s | 5.0 s | 7.5 s | 700 objects/s | 4.0 ms / 14.3 ms | 3 % / 12 % |
| update | - | - | - | - | - | - | - | - | - | - / - | - / - |
| delete | - | - | - | - | - | - | - | - | - | - / - | - / - |

| phase | hub writes beyond the user's | by resource, with the user's | Events | etcd puts, all | etcd bytes beyond | Leases in all | CPU per copy | RSS peak / settled | member requests per copy |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| create | 3.00 | resourcebindings 2.00, widgets 2.00 | 1.00 | 5.10 | 7.5 kB | 4 | 1.23 ms | 120 / 100 MiB | APPLY 1.00, GET 0.25 |

The run ended early: the rest failed
`
	if diff := cmp.Diff(want, r.markdown()); diff != "" {
		t.Errorf("a run that ended after its first phase (-want +got):\n%s", diff)
	}
}

func TestResize(t *testing.T) {
	const pattern = `
clusters:
- {name: hub, hub: true}
- {name: member-1, region: region-1, zones: [region-1a], nodes: 1}
- {name: member-2, region: region-2, zones: [region-2a], nodes: 2}
`
	tests := map[string]struct {
		members int
		want    string
	}{
		"more members are made like the first": {members: 3, want: `clusters:
- hub: true
  name: hub
- name: member-1
  nodes: 1
  region: region-1
  zones:
  - region-1a
- name: member-2
  nodes: 1
  region: region-2
  zones:
  - region-2a
- name: member-3
  nodes: 1
  region: region-3
  zones:
  - region-3a
`},
		"fewer members leave the first": {members: 1, want: `clusters:
- hub: true
  name: hub
- name: member-1
  nodes: 1
  region: region-1
  zones:
  - region-1a
`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := resize([]byte(pattern), tt.members)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("topology (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWidget(t *testing.T) {
	raw, err := widget("bench", 7, 1).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) < 900 || len(raw) > 1200 {
		t.Errorf("a widget has %d bytes of JSON, want about 1 KiB", len(raw))
	}
	if i, ok := widgetIndex(widgetName(7)); !ok || i != 7 {
		t.Errorf("the index of %s is %d, %v", widgetName(7), i, ok)
	}
}
