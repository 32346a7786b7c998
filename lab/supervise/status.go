package supervise

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hanse-dev/hanse/lab/control"
	"github.com/hanse-dev/hanse/lab/plane"
	"github.com/hanse-dev/hanse/lab/process"
)

const readyTimeout = 2 * time.Second

// Status returns the state of the lab. It checks whether every API server is ready.
func (s *Supervisor) Status(ctx context.Context) control.Status {
	busy := !s.turn.TryLock()
	if !busy {
		s.turn.Unlock()
	}
	s.mu.Lock()
	status := control.Status{Dir: s.dir, Bin: s.bin, Supervisor: s.ledger.pid(), Busy: busy}
	clusters := slices.SortedFunc(maps.Values(s.running.clusters), func(a, b *cluster) int {
		if a.topology.Hub != b.topology.Hub {
			return map[bool]int{true: -1, false: 1}[a.topology.Hub]
		}
		return cmp.Compare(a.plane.Name, b.plane.Name)
	})
	for _, name := range slices.Sorted(maps.Keys(s.running.stores)) {
		st := s.running.stores[name]
		status.Etcds = append(status.Etcds, control.Etcd{
			Name: name, ClientURL: st.ClientURL, MetricsURL: st.MetricsURL + "/metrics",
			CAFile: st.CA.File, CertFile: st.Client.CertFile, KeyFile: st.Client.KeyFile,
			Component: describe(plane.Etcd, st.process),
		})
	}
	for _, name := range slices.Sorted(maps.Keys(s.running.extra)) {
		status.Extra = append(status.Extra, describe(name, s.running.extra[name]))
	}
	s.mu.Unlock()

	status.Clusters = make([]control.Cluster, len(clusters))
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	var asking sync.WaitGroup
	for i, c := range clusters {
		asking.Go(func() { status.Clusters[i] = c.status(ctx) })
	}
	asking.Wait()
	return status
}

func (c *cluster) status(ctx context.Context) control.Cluster {
	out := control.Cluster{
		Name: c.plane.Name, Hub: c.topology.Hub, Region: c.topology.Region, Zones: c.topology.Zones, Nodes: c.topology.Nodes.Count(),
		Ready:  c.client.Ready(ctx) == nil,
		Server: c.plane.Server, ProxyServer: c.plane.ProxyServer,
		Kubeconfig: c.plane.Kubeconfig(), ProxyKubeconfig: c.plane.ProxyKubeconfig(),
		CAFile: c.plane.CA.File, AuditLog: c.plane.AuditLog(),
		Etcd: c.store.Name, EtcdPrefix: c.plane.EtcdPrefix(),
		Fault: c.proxy.Fault().String(),
	}
	for _, p := range c.processes() {
		out.Components = append(out.Components, describe(strings.TrimPrefix(p.Spec.Name, c.plane.Name+"/"), p))
	}
	for _, o := range c.operators {
		if o.running() == nil {
			out.Components = append(out.Components, control.Component{Name: plane.PrometheusOperator, State: "waiting", Reason: o.waiting(), Log: c.plane.Log(plane.PrometheusOperator)})
		}
	}
	return out
}

func describe(name string, p *process.Process) control.Component {
	state, reason := p.State()
	return control.Component{Name: name, PID: p.PID(), State: string(state), Reason: reason, Log: p.Spec.Log}
}
