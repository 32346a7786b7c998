package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMarkdown(t *testing.T) {
	r := &Result{
		Date: "2026-01-02T03:04:05Z", Command: "bench", Profile: "small", Objects: 500, ObjectBytes: 1024, Members: 3, InFlight: 8,
		Machine:  Machine{CPU: "Some CPU", Cores: 2, MemoryGiB: 23.4, OS: "Linux 6.1", LoadBefore: 0.25},
		Versions: Versions{Hanse: "v0.1", Kubernetes: "v1.36.1", Etcd: "3.6.8", Go: "go1.26"},
		Phases: []Phase{
			{System: systemRaw, Name: create, Timing: Timing{Rate: 1200, Latency: Latency{P50: 10, P99: 30}}, CPU: CPU{Others: 0.02, PerCopyMillis: 3}},
			{System: systemRaw, Name: create, Timing: Timing{Rate: 400, Latency: Latency{P50: 14, P99: 50}}, CPU: CPU{Others: 0.04, PerCopyMillis: 5}},
			{System: systemHub, Name: create, Timing: Timing{Rate: 700}, Cost: &Cost{EtcdBytes: 2000}},
			{
				System: systemHanse, Name: create, Timing: Timing{Seconds: 5, Rate: 300, Latency: Latency{P50: 900, P99: 2400}}, UserSeconds: 1, SettledSeconds: 7.5, CPU: CPU{Others: 0.12, PerCopyMillis: 14.33},
				Cost: &Cost{
					HubWrites:       map[string]float64{"resourcebindings.hanse.dev": 2, "widgets.bench.hanse.dev": 2, "events": 1, "placements.hanse.dev": 0.002},
					HubWritesBeyond: 3, Events: 1, EtcdPuts: 5.1, EtcdBytes: 9500, Leases: 4, CPUMillis: 1.234, PeakRSSMiB: 120, SettledRSSMiB: 100,
					MemberRequests: map[string]float64{"APPLY": 1, "GET": 0.25}, MemberWrites: 1, MemberReads: 0.25,
				},
			},
			{System: systemHanse, Name: singleCreate, Timing: Timing{Latency: Latency{P50: 28, P99: 61}}, CPU: CPU{Others: 0.01, PerCopyMillis: 80}, Cost: &Cost{HubWritesBeyond: 3.5}},
		},
		Restart: &Restart{
			InSyncSeconds: 2.2, Writes: 1, Leases: 9, Events: 2, MemberReads: 3, CPUSeconds: 0.7, PeakRSSMiB: 72,
			NewObject: &NewObject{Seconds: 0.08, SinceStart: 0.4, LookedAtBefore: 0.1, LookedAtAfter: 0.2},
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
| single create | - | - | - | - | 28 / 61 ms | - | - | - | - | - / 80.0 ms | - / 1 % |

| phase | hub writes beyond the user's | by resource, with the user's | Events | etcd puts, all | etcd bytes beyond | Leases in all | CPU per copy | RSS peak / settled | member writes / reads per copy | by verb |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| create | 3.00 | resourcebindings 2.00, widgets 2.00 | 1.00 | 5.10 | 7.5 kB | 4 | 1.23 ms | 120 / 100 MiB | 1.00 / 0.25 | APPLY 1.00, GET 0.25 |
| single create | 3.50 |  | 0.00 | 0.00 | 0.0 kB | 0 | 0.00 ms | 0 / 0 MiB | 0.00 / 0.00 |  |

| cold restart: in sync after | hub writes | Leases | Events | member writes / reads | CPU | RSS peak | new object during the replay | written at | copies looked at by then / by its last copy |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| 2.2 s | 1 | 9 | 2 | 0 / 3 | 0.7 s | 72 MiB | 0.08 s | 0.4 s | 10 / 20 % |

| target | must be | is | holds |
| --- | --- | --- | --- |
| create: share of raw | at least 0.35 | 0.50 | yes |
| create: hub writes per object | at most 4 | 3.00 | yes |
| create: Events per object | at most 1 | 1.00 | yes |
| create: hub etcd bytes per object | at most 10 kB | 7.50 kB | yes |
| create: CPU per copy | at most 2 ms | 1.23 ms | yes |
| create: p50 | at most 2 s | 0.90 s | yes |
| create: p99 | at most 4 s | 2.40 s | yes |
| create: CPU per copy over all CPU of a raw copy | at most 0.6 | 0.31 | yes |
| create: p50 over raw's time for all | at most 0.8 | 0.36 | yes |
| create: p99 over raw's time for all | at most 1.6 | 0.96 | yes |
| single create: p50 | at most 0.1 s | 0.03 s | yes |
| single create: p99 | at most 0.3 s | 0.06 s | yes |
| restart: hub writes | at most 0 | 1.00 | no |
| restart: member writes | at most 0 | 0.00 | yes |
| restart: new object during the replay | at most 3 s | 0.08 s | yes |

The run ended early: the rest failed
`
	if diff := cmp.Diff(want, r.markdown()); diff != "" {
		t.Errorf("a run without some of its phases (-want +got):\n%s", diff)
	}
}

func TestMarkdownOfHeapsAndIsolation(t *testing.T) {
	r := &Result{
		Date: "2026-01-02T03:04:05Z", Command: "bench", Objects: 1024, Members: 3,
		Heaps: []Heap{
			{ObjectBytes: 1024, Objects: 1024, Members: 3, EmptyKiB: 11 * 1024, LiveKiB: 19 * 1024, RestartedKiB: 18 * 1024},
			{ObjectBytes: 1024, Objects: 1024, Members: 1, EmptyKiB: 10 * 1024, LiveKiB: 14 * 1024, RestartedKiB: 14 * 1024, TemplatesJSONKiB: 1024, TemplatesHeldKiB: 3 * 1024},
			{ObjectBytes: 51200, Objects: 1024, Members: 3, EmptyKiB: 11 * 1024, LiveKiB: 35 * 1024, RestartedKiB: 34 * 1024},
			{ObjectBytes: 51200, Objects: 1024, Members: 1, EmptyKiB: 10 * 1024, LiveKiB: 29 * 1024, RestartedKiB: 28 * 1024},
		},
		Isolation: []Isolation{
			{Scenario: calm, Step: create, Latency: Latency{P50: 20, P99: 50}, Raw: Latency{P50: 4, P99: 25}},
			{Scenario: calm, Step: update, Latency: Latency{P50: 20, P99: 40}},
			{Scenario: alone, Step: create, Latency: Latency{P50: 20, P99: 30}},
			{Scenario: restarted, Step: create, Latency: Latency{P50: 20, P99: 75}},
			{Scenario: struck, Step: create, Latency: Latency{P50: 20, P99: 60}},
			{Scenario: struck, Step: update, Latency: Latency{P50: 20, P99: 44}, RecoveredSeconds: 3},
			{Scenario: started, Step: create, Latency: Latency{P50: 20, P99: 90}},
		},
	}
	r.derive()
	_, got, _ := strings.Cut(r.markdown(), "| object |")
	want := ` objects | members | heap empty | with objects | after a restart | RSS | RSS after a restart, its peak | templates: JSON / held |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
| 1.0 KiB | 1024 | 3 | 11.0 MiB | 19.0 MiB | 18.0 MiB | 0 MiB | 0, 0 MiB | 0.0 MiB / 0.0 MiB |
| 1.0 KiB | 1024 | 1 | 10.0 MiB | 14.0 MiB | 14.0 MiB | 0 MiB | 0, 0 MiB | 1.0 MiB / 3.0 MiB |
| 50.0 KiB | 1024 | 3 | 11.0 MiB | 35.0 MiB | 34.0 MiB | 0 MiB | 0, 0 MiB | 0.0 MiB / 0.0 MiB |
| 50.0 KiB | 1024 | 1 | 10.0 MiB | 29.0 MiB | 28.0 MiB | 0 MiB | 0, 0 MiB | 0.0 MiB / 0.0 MiB |

| object | one more member, per object | after a restart | without what a member takes empty | an object with one member | its template: JSON / held |
| --- | --- | --- | --- | --- | --- |
| 1.0 KiB | 2560 B | 2048 B | 2048 B | 4096 B | 1024 / 3072 B |
| 50.0 KiB | 3072 B | 3072 B | 2560 B | 19456 B | 0 / 0 B |

| scenario | step | good members p50 / p99 | raw p50 / p99 | p99 over the same without faults | over the good ones alone | all members complete after the faults' end |
| --- | --- | --- | --- | --- | --- | --- |
| calm | create | 20 / 50 ms | 4 / 25 ms | 1.00 | 1.67 | - |
| calm | update | 20 / 40 ms | 0 / 0 ms | 1.00 | 0.00 | - |
| alone | create | 20 / 30 ms | 0 / 0 ms | 0.60 | 1.00 | - |
| restarted | create | 20 / 75 ms | 0 / 0 ms | 1.50 | 2.50 | - |
| struck | create | 20 / 60 ms | 0 / 0 ms | 1.20 | 2.00 | - |
| struck | update | 20 / 44 ms | 0 / 0 ms | 1.10 | 0.00 | 3.0 s |
| started | create | 20 / 90 ms | 0 / 0 ms | 1.20 | 3.00 | - |

| target | must be | is | holds |
| --- | --- | --- | --- |
| memory: one more member, per object | at most 3 KiB | 2.50 KiB | yes |
| memory: a template, half its JSON and 2 KiB | at most 2.5 KiB | 3.00 KiB | no |
| memory: one more member, per object | at most 3 KiB | 3.00 KiB | yes |
| memory: the same with large objects over small ones | at most 1.1 | 1.20 | no |
| memory: heap that a larger object adds, over its JSON | at most 0.5 | 0.31 | yes |
| isolation: p99 of the good members over the same without faults | at most 1.3 | 1.20 | yes |
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("heaps and isolation (-want +got):\n%s", diff)
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

func TestMarkdownOfNeighbours(t *testing.T) {
	r := &Result{Neighbours: []Neighbour{
		{Scenario: undisturbed, Create: Latency{P50: 40, P99: 90}, Raw: Latency{P50: 20, P99: 30}},
		{Scenario: noisy, Create: Latency{P50: 60, P99: 120}, Raw: Latency{P50: 25, P99: 40}, StatusesPerSecond: 50},
	}}
	r.derive()
	_, got, _ := strings.Cut(r.markdown(), "| scenario |")
	want := ` single create p50 / p99 | raw p50 / p99 | p50 over raw | that over undisturbed | p50 over undisturbed | statuses a second of the noisy tenant |
| --- | --- | --- | --- | --- | --- | --- |
| undisturbed | 40 / 90 ms | 20 / 30 ms | 2.00 | 1.00 | 1.00 | - |
| noisy | 60 / 120 ms | 25 / 40 ms | 2.40 | 1.20 | 1.50 | 50 |

| target | must be | is | holds |
| --- | --- | --- | --- |
| tenants: p50 of a single create over raw, beside a noisy tenant over the same without | at most 1.5 | 1.20 | yes |
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("markdown (-want +got):\n%s", diff)
	}
}

func TestWhatADeletionMustHold(t *testing.T) {
	r := &Result{Profile: "small", Objects: 500, Members: 3, Phases: []Phase{{
		System: systemHanse, Name: withdraw, ShareOfRaw: 0.41,
		Cost: &Cost{HubWritesBeyond: 4.7, MemberReads: 0.1, HubRequests: map[string]float64{"GET resourcebindings.hanse.dev": 1}},
	}}}
	var got []string
	for _, target := range r.targets() {
		got = append(got, fmt.Sprintf("%s: %v", target.what, target.holds()))
	}
	want := []string{
		"delete: share of raw: true", "delete: hub writes per object: false", "delete: member reads per copy: true",
		"delete: uncached reads of the binding per object: true",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("targets (-want +got):\n%s", diff)
	}
}

func TestMarkdownOfALostMember(t *testing.T) {
	r := &Result{Lost: &Lost{RowsSeconds: 16, Before: Latency{P50: 40, P99: 90}, Meanwhile: Latency{P50: 60, P99: 120}, P50Ratio: 1.5}}
	_, got, _ := strings.Cut(r.markdown(), "| all rows after the grace |")
	want := ` single create before p50 / p99 | meanwhile p50 / p99 | p50 meanwhile over before |
| --- | --- | --- | --- |
| 16.0 s | 40 / 90 ms | 60 / 120 ms | 1.50 |

| target | must be | is | holds |
| --- | --- | --- | --- |
| lost: rows of the lost member after the grace | at most 15 s | 16.00 s | no |
| lost: p50 of a single create, meanwhile over before | at most 2 | 1.50 | yes |
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("markdown (-want +got):\n%s", diff)
	}
}

func TestMarkdownOfOpenPages(t *testing.T) {
	r := &Result{Pages: &Pages{
		FirstPaints: map[string]Latency{"/": {P50: 70, P99: 100}, "/objects": {P50: 800, P99: 1200}}, OpenPages: 500, ReadsPerSecond: 20,
		Closed: Beside{Create: Latency{P50: 40, P99: 80}, Raw: Latency{P50: 30, P99: 60}, PeakMiB: 250},
		Open:   Beside{Create: Latency{P50: 60, P99: 90}, Raw: Latency{P50: 30, P99: 60}, PeakMiB: 300}, MiB: 50, P50Ratio: 1.5,
	}}
	_, got, _ := strings.Cut(r.markdown(), "| first paint |")
	want := ` p50 / p99 |
| --- | --- |
| / | 70 / 100 ms |
| /objects | 0.80 / 1.20 s |

| open pages | read again a second | single create p50 / p99 | raw p50 / p99 | peak of the hub's memory |
| --- | --- | --- | --- | --- |
| 0 | 0.0 | 40 / 80 ms | 30 / 60 ms | 250 MiB |
| 500 | 20.0 | 60 / 90 ms | 30 / 60 ms | 300 MiB |

| target | must be | is | holds |
| --- | --- | --- | --- |
| pages: p99 of the first paint of / | at most 1 s | 0.10 s | yes |
| pages: p99 of the first paint of /objects | at most 1 s | 1.20 s | no |
| pages: memory of open pages | at most 95 MiB | 50.00 MiB | yes |
| pages: p50 of a single create over raw, with open pages over the same without | at most 1.1 | 1.50 | no |
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("markdown (-want +got):\n%s", diff)
	}
}
