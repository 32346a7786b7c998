package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestQuantile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i+1) * time.Millisecond
	}
	tests := map[string]struct {
		in   []time.Duration
		q    float64
		want float64
	}{
		"the median of a hundred is the fiftieth":              {in: hundred, q: 0.50, want: 50},
		"the 99th percentile of a hundred is the last but one": {in: hundred, q: 0.99, want: 99},
		"the highest quantile is the maximum":                  {in: hundred, q: 1, want: 100},
		"the 99th percentile of few is their maximum":          {in: hundred[:3], q: 0.99, want: 3},
		"nothing measured is 0":                                {q: 0.5, want: 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := quantile(tt.in, tt.q); got != tt.want {
				t.Errorf("quantile is %v ms, want %v", got, tt.want)
			}
		})
	}
}

func TestCost(t *testing.T) {
	before := counters{
		hubWrites: map[string]float64{"widgets.bench.hanse.dev": 5, "leases.coordination.k8s.io": 10},
		etcdPuts:  15, etcdBytes: 1000, end: usage{cpu: map[string]float64{whoHanse: 1}},
	}
	after := counters{
		hubWrites: map[string]float64{
			"widgets.bench.hanse.dev": 25, "resourcebindings.hanse.dev": 30, "leases.coordination.k8s.io": 14,
			"apiServerPeerIPInfo": 2, "events": 5,
		},
		memberRequests: map[string]float64{"APPLY": 60, "DELETE": 3, "GET": 15}, reasons: map[string]float64{"ResourceBinding rows": 10},
		etcdPuts: 75, etcdBytes: 21000, begin: usage{cpu: map[string]float64{whoHanse: 1.03}},
	}
	got := cost(before, after, units{objects: 10, members: 3, own: 1})
	want := Cost{
		HubWrites: map[string]float64{
			"widgets.bench.hanse.dev": 2, "resourcebindings.hanse.dev": 3, "leases.coordination.k8s.io": 0.4, "apiServerPeerIPInfo": 0.2, "events": 0.5,
		},
		HubWritesBeyond: 4, Events: 0.5, Leases: 6, EtcdPuts: 6, EtcdBytes: 2000,
		HubRequests: map[string]float64{}, MemberRequests: map[string]float64{"APPLY": 2, "DELETE": 0.1, "GET": 0.5}, MemberWrites: 2.1, MemberReads: 0.5, CPUMillis: 1,
		ByReason: map[string]float64{"ResourceBinding rows": 1},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("20 user's and 30 other writes for 10 objects (-want +got):\n%s", diff)
	}
}

func TestRequests(t *testing.T) {
	const page = `apiserver_request_total{code="200",group="bench.hanse.dev",resource="widgets",subresource="",verb="APPLY"} 3
apiserver_request_total{code="201",group="bench.hanse.dev",resource="widgets",subresource="",verb="APPLY"} 4
apiserver_request_total{code="200",group="bench.hanse.dev",resource="widgets",subresource="status",verb="PATCH"} 5
apiserver_request_total{code="200",group="",resource="secrets",subresource="",verb="WATCH"} 6
apiserver_request_total{code="200",group="",resource="",subresource="/readyz",verb="GET"} 7
`
	got, err := requests(page)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"APPLY widgets.bench.hanse.dev": 7, "PATCH widgets.bench.hanse.dev/status": 5}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests, codes summed, without watches and pages (-want +got):\n%s", diff)
	}
}

func TestTiming(t *testing.T) {
	begin := time.Now()
	at := func(ms ...int) (out []time.Time) {
		for _, m := range ms {
			out = append(out, begin.Add(time.Duration(m)*time.Millisecond))
		}
		return out
	}
	got := timing(begin, at(0, 10, 1000), at(500, 20, 2000), 4)
	want := Timing{Seconds: 2, Rate: 6, Latency: Latency{P50: 500, P99: 1000, Max: 1000}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("3 objects to 4 members in 2 s (-want +got):\n%s", diff)
	}
}

func TestRoleOf(t *testing.T) {
	tests := map[string]struct {
		cmdline, want string
	}{
		"the hub's API server":     {cmdline: "/x/kube-apiserver\x00--etcd-prefix=/hub\x00--cert=/run/a/hub.crt\x00", want: "hub's kube-apiserver"},
		"a member's API server":    {cmdline: "/x/kube-apiserver\x00--etcd-prefix=/member-1\x00--cert=/run/a/m.crt\x00", want: "members' kube-apiserver"},
		"the members' etcd":        {cmdline: "/x/etcd\x00--name=members\x00--data-dir=/run/a/data\x00", want: "members' etcd"},
		"Hanse's hub":              {cmdline: "/x/hanse-hub\x00--kubeconfig\x00/run/a/hub.kubeconfig\x00", want: whoHanse},
		"a program of another run": {cmdline: "/x/etcd\x00--name=hub\x00--data-dir=/run/b/data\x00"},
		"a kernel thread":          {},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := roleOf(tt.cmdline, "/run/a"); got != tt.want {
				t.Errorf("role is %q, want %q", got, tt.want)
			}
		})
	}
}
