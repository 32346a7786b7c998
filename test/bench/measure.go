package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/hanse-dev/hanse/test/fleet"
)

// counters has the values of all counters at one time. Reading the counters itself uses CPU time, so begin and end have
// the CPU time before and after the reading.
type counters struct {
	begin, end     usage
	hubWrites      map[string]float64 // writes to the hub's etcd by resource, as counted by the API server of the hub
	hubRequests    map[string]float64 // requests of all clients to the API server of the hub, by verb and resource
	memberRequests map[string]float64 // requests about widgets to the API servers of the members, by verb
	etcdPuts       float64            // puts as counted by etcd, including its own housekeeping
	etcdBytes      float64            // bytes of these puts, as counted by etcd
	reasons        map[string]float64 // writes by kind and reason, as counted by the hub process
}

// usage has the CPU time in seconds that each process had used at one time. The field at has this time.
type usage struct {
	at  time.Time
	cpu map[string]float64
}

func (m *meter) usage() (usage, error) {
	cpu, err := cpuByRole(m.Dir)
	return usage{at: time.Now(), cpu: cpu}, err
}

// meter reads the counters. pid is the process ID of the hub process, and page is its metrics page. They are 0 and ""
// if no hub process runs.
type meter struct {
	*fleet.Fleet
	pid  int
	page string
}

func (m *meter) read(ctx context.Context) (counters, error) {
	c := counters{memberRequests: map[string]float64{}}
	var err error
	if c.begin, err = m.usage(); err != nil {
		return c, err
	}
	page, err := m.Hub.MetricsPage(ctx)
	if err != nil {
		return c, err
	}
	if c.hubWrites, err = fleet.EtcdWrites(page); err != nil {
		return c, err
	}
	if c.hubRequests, err = requests(page); err != nil {
		return c, err
	}
	for _, member := range m.Members {
		page, err := member.MetricsPage(ctx)
		if err != nil {
			return c, err
		}
		all, err := requests(page)
		if err != nil {
			return c, err
		}
		for what, n := range all {
			if verb, ok := strings.CutSuffix(what, " "+widgets.GroupResource().String()); ok {
				c.memberRequests[verb] += n
			}
		}
	}
	if page, err = fleet.Page(ctx, m.HubEtcdMetrics); err != nil {
		return c, err
	}
	if c.etcdPuts, err = only(page, "etcd_mvcc_put_total"); err != nil {
		return c, err
	}
	if c.etcdBytes, err = only(page, "etcd_debugging_mvcc_total_put_size_in_bytes"); err != nil {
		return c, err
	}
	if c.reasons, err = m.reasons(ctx); err != nil {
		return c, err
	}
	c.end, err = m.usage()
	return c, err
}

// reasons returns the numbers of writes by "kind reason", from the metrics of the hub process.
func (m *meter) reasons(ctx context.Context) (map[string]float64, error) {
	out := map[string]float64{}
	if m.page == "" {
		return out, nil
	}
	page, err := fleet.Page(ctx, m.page)
	if err != nil {
		return nil, err
	}
	samples, err := fleet.Samples(page, "hanse_hub_writes_total")
	for _, s := range samples {
		out[s.Labels["kind"]+" "+s.Labels["reason"]] += s.Value
	}
	return out, err
}

// only returns the value of a metric that has exactly one sample.
func only(page, name string) (float64, error) {
	samples, err := fleet.Samples(page, name)
	if err != nil {
		return 0, err
	}
	if len(samples) != 1 {
		return 0, fmt.Errorf("metric %s: %d samples, want 1", name, len(samples))
	}
	return samples[0].Value, nil
}

// requests returns the numbers of requests to an API server by "VERB resource.group/subresource". It does not count
// watches, because an API server counts a watch only when it ends.
func requests(page string) (map[string]float64, error) {
	samples, err := fleet.Samples(page, "apiserver_request_total")
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for _, s := range samples {
		l := s.Labels
		if l["resource"] == "" || l["verb"] == "WATCH" {
			continue
		}
		what := l["verb"] + " " + l["resource"]
		if l["group"] != "" {
			what += "." + l["group"]
		}
		if l["subresource"] != "" {
			what += "/" + l["subresource"]
		}
		out[what] += s.Value
	}
	return out, nil
}

// settle waits until nothing except Leases and MemberClusters has been written to the hub's etcd for the time
// fleet.Quiet. It returns the time of the last other write, to the second.
func (m *meter) settle(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxPhase, fmt.Errorf("the hub's etcd is not quiet after %s", maxPhase))
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var before map[string]float64
	last := time.Now()
	for {
		page, err := m.Hub.MetricsPage(ctx)
		if err != nil {
			return last, err
		}
		now, err := fleet.EtcdWrites(page)
		if err != nil {
			return last, err
		}
		maps.DeleteFunc(now, func(resource string, _ float64) bool { return isLease(resource) || isMemberHeartbeat(resource) })
		if before == nil || !maps.Equal(before, now) {
			before, last = now, time.Now()
		} else if time.Since(last) >= fleet.Quiet {
			return last, nil
		}
		select {
		case <-ctx.Done():
			return last, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// isLease reports whether writes of the resource are only the heartbeat of a process. Heartbeats are Leases and the API
// server's record of its own address.
func isLease(resource string) bool {
	return resource == "leases.coordination.k8s.io" || resource == "apiServerPeerIPInfo"
}

// isMemberHeartbeat reports whether the resource is the one in which replicas record when they last observed a member.
// A replica writes each of its MemberClusters every 30 s.
func isMemberHeartbeat(resource string) bool { return resource == "memberclusters.hanse.dev" }

func isEvent(resource string) bool {
	return resource == "events" || resource == "events.events.k8s.io"
}

// Latency has quantiles in milliseconds.
type Latency struct {
	P50 float64 `json:"p50Ms"`
	P99 float64 `json:"p99Ms"`
	Max float64 `json:"maxMs"`
}

func latency(all []time.Duration) Latency {
	slices.Sort(all)
	return Latency{P50: quantile(all, 0.50), P99: quantile(all, 0.99), Max: quantile(all, 1)}
}

// quantile returns the nearest-rank quantile of sorted durations, in milliseconds.
func quantile(sorted []time.Duration, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(q*float64(len(sorted)) + 0.999999)
	return float64(sorted[max(rank, 1)-1].Microseconds()) / 1000
}

// Cost has the costs of a phase other than time. Figures of the hub are per object, and figures of the members per
// object-cluster. An object-cluster is one object on one member.
type Cost struct {
	// HubWrites has the writes to the hub's etcd by resource, including the user's own writes.
	HubWrites map[string]float64 `json:"hubWrites"`
	// HubWritesBeyond is the number of writes to the hub's etcd per object. It excludes the user's own write of the
	// object, and writes of Leases, Events and MemberClusters.
	HubWritesBeyond float64 `json:"hubWritesBeyond"`
	Events          float64 `json:"events"`
	// Leases has the heartbeat writes of the hub process and its API server in the whole phase, see isLease.
	Leases float64 `json:"leasesInAll"`
	// EtcdPuts is the number of writes to the hub's etcd, and EtcdBytes is the number of bytes in these writes, as etcd
	// counts them. Both include the user's own write, Leases and Events.
	EtcdPuts  float64 `json:"etcdPuts"`
	EtcdBytes float64 `json:"etcdBytes"`
	// EtcdBytesBeyond is EtcdBytes minus the bytes that the same writes of the user cause while no hub process runs.
	EtcdBytesBeyond float64 `json:"etcdBytesBeyond"`
	// ByReason has the numbers of the hub process's writes by their reason, as the process itself counts them.
	ByReason       map[string]float64 `json:"hubWritesByReason"`
	HubRequests    map[string]float64 `json:"hubRequests"`
	MemberRequests map[string]float64 `json:"memberRequests"`
	// MemberWrites is the sum of those MemberRequests that change data, MemberReads the sum of the others.
	MemberWrites float64 `json:"memberWrites"`
	MemberReads  float64 `json:"memberReads"`
	// CPUMillis is the CPU time of the hub process per copy, from the start of a phase until the hub's etcd was quiet.
	CPUMillis     float64 `json:"cpuMs"`
	PeakRSSMiB    float64 `json:"peakRssMiB"`
	SettledRSSMiB float64 `json:"settledRssMiB"`
}

// meanCost returns the mean of each figure.
func meanCost(all []Cost) *Cost {
	figure := func(of func(*Cost) float64) float64 { return mean(all, of) }
	figures := func(of func(*Cost) map[string]float64) map[string]float64 {
		out := map[string]float64{}
		for i := range all {
			for name, v := range of(&all[i]) {
				out[name] += v / float64(len(all))
			}
		}
		return out
	}
	return &Cost{
		HubWrites:       figures(func(c *Cost) map[string]float64 { return c.HubWrites }),
		HubWritesBeyond: figure(func(c *Cost) float64 { return c.HubWritesBeyond }),
		Events:          figure(func(c *Cost) float64 { return c.Events }),
		Leases:          figure(func(c *Cost) float64 { return c.Leases }),
		EtcdPuts:        figure(func(c *Cost) float64 { return c.EtcdPuts }),
		EtcdBytes:       figure(func(c *Cost) float64 { return c.EtcdBytes }),
		EtcdBytesBeyond: figure(func(c *Cost) float64 { return c.EtcdBytesBeyond }),
		ByReason:        figures(func(c *Cost) map[string]float64 { return c.ByReason }),
		HubRequests:     figures(func(c *Cost) map[string]float64 { return c.HubRequests }),
		MemberRequests:  figures(func(c *Cost) map[string]float64 { return c.MemberRequests }),
		MemberWrites:    figure(func(c *Cost) float64 { return c.MemberWrites }),
		MemberReads:     figure(func(c *Cost) float64 { return c.MemberReads }),
		CPUMillis:       figure(func(c *Cost) float64 { return c.CPUMillis }),
		PeakRSSMiB:      figure(func(c *Cost) float64 { return c.PeakRSSMiB }),
		SettledRSSMiB:   figure(func(c *Cost) float64 { return c.SettledRSSMiB }),
	}
}

// mean returns the rounded mean of one figure over all values. all must not be empty.
func mean[T any](all []T, of func(*T) float64) float64 {
	var sum float64
	for i := range all {
		sum += of(&all[i])
	}
	return round(sum / float64(len(all)))
}

// units has the divisors for the costs of a phase. own is how often the user writes each object on the hub.
type units struct{ objects, members, own int }

// cost returns the costs between two readings of the counters, divided by the units.
func cost(before, after counters, u units) Cost {
	n := float64(u.objects)
	pairs := n * float64(u.members)
	c := Cost{
		ByReason:       perUnit(before.reasons, after.reasons, n),
		HubWrites:      perUnit(before.hubWrites, after.hubWrites, n),
		HubRequests:    perUnit(before.hubRequests, after.hubRequests, n),
		MemberRequests: perUnit(before.memberRequests, after.memberRequests, pairs),
		EtcdPuts:       round((after.etcdPuts - before.etcdPuts) / n),
		EtcdBytes:      round((after.etcdBytes - before.etcdBytes) / n),
		CPUMillis:      round((after.begin.cpu[whoHanse] - before.end.cpu[whoHanse]) * 1000 / pairs),
	}
	for resource, writes := range c.HubWrites {
		switch {
		case isLease(resource):
			c.Leases += writes * n
		case isMemberHeartbeat(resource): // the number of these writes depends on time and members, not on objects
		case isEvent(resource):
			c.Events += writes
		default:
			c.HubWritesBeyond += writes
		}
	}
	c.MemberWrites, c.MemberReads = writesAndReads(c.MemberRequests)
	c.Leases, c.Events, c.HubWritesBeyond = math.Round(c.Leases), round(c.Events), round(c.HubWritesBeyond-float64(u.own))
	return c
}

// writesAndReads adds up the requests whose verb changes data, and the other requests.
func writesAndReads(byVerb map[string]float64) (writes, reads float64) {
	for verb, n := range byVerb {
		if verb == "GET" || verb == "LIST" {
			reads += n
		} else {
			writes += n
		}
	}
	return round(writes), round(reads)
}

// use returns the CPU time of each process between two readings, and the CPU time per copy. pairs is the number of
// copies.
func use(before, after counters, pairs int) CPU {
	u := CPU{Seconds: perUnit(before.end.cpu, after.begin.cpu, 1)}
	own := -u.Seconds[whoOthers]
	for _, s := range u.Seconds {
		own += s
	}
	u.PerCopyMillis = round(own * 1000 / float64(pairs))
	u.Others = round(u.Seconds[whoOthers] / after.begin.at.Sub(before.end.at).Seconds() / float64(runtime.NumCPU()))
	return u
}

// round rounds a figure to three decimals.
func round(x float64) float64 { return math.Round(x*1000) / 1000 }

// perUnit returns by how much each counter has increased between two readings, divided by units. It leaves out counters
// that have not changed.
func perUnit(before, after map[string]float64, units float64) map[string]float64 {
	out := map[string]float64{}
	for k, v := range after {
		if d := v - before[k]; d != 0 {
			out[k] = round(d / units)
		}
	}
	return out
}
