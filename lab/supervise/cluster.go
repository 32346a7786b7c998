package supervise

import (
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/hanse-dev/hanse/lab/faultproxy"
	"github.com/hanse-dev/hanse/lab/kube"
	"github.com/hanse-dev/hanse/lab/plane"
	"github.com/hanse-dev/hanse/lab/process"
	"github.com/hanse-dev/hanse/lab/topology"
)

const (
	startTimeout = 3 * time.Minute // long enough for a machine that also compiles
	pollEvery    = 100 * time.Millisecond
	logLines     = 20
)

// store is a running etcd.
type store struct {
	*plane.Store
	process *process.Process
	client  *kube.Client
}

func startStore(ctx context.Context, starter *process.Starter, s *plane.Store) (*store, error) {
	client, err := kube.New(s.ClientURL, s.CA, s.Client)
	if err != nil {
		return nil, err
	}
	p, err := starter.Start(s.Spec())
	if err != nil {
		return nil, err
	}
	out := &store{Store: s, process: p, client: client}
	if err := await(ctx, p, client.Healthy); err != nil {
		out.stop()
		return nil, err
	}
	return out, nil
}

// stop ends the etcd with SIGTERM, so that it closes its files. Its data may be used again.
func (s *store) stop() { s.process.Kill(syscall.SIGTERM) }

// cluster is the running processes of one cluster.
type cluster struct {
	plane     *plane.Cluster
	topology  topology.Cluster
	store     *store
	client    *kube.Client
	proxy     *faultproxy.Proxy
	apiServer *process.Process

	// workloads are the processes that start last, in this order, and are stopped first.
	workloads []*process.Process
	node      *node // the real node, or nil
	operators []*operator
	proxyLog  *os.File
}

// starting has the inputs of startCluster.
type starting struct {
	starter *process.Starter
	stages  []string
	ports   plane.Ports
	say     func(format string, args ...any)
}

// startCluster starts a cluster and returns when it is ready. After an error, none of its processes runs.
func startCluster(ctx context.Context, s starting, c *plane.Cluster, t topology.Cluster, etcd *store) (_ *cluster, err error) {
	out := &cluster{plane: c, topology: t, store: etcd}
	defer func() {
		if err != nil {
			out.stop()
		}
	}()
	if out.client, err = kube.New(c.Server, c.CA, c.Admin); err != nil {
		return nil, err
	}
	if network := c.Network(); network != nil {
		if err := network.Open(); err != nil {
			return nil, err
		}
	}
	if out.apiServer, err = s.starter.Start(c.APIServerSpec(etcd.Store, t.Controllers)); err != nil {
		return nil, err
	}
	if err := out.startProxy(); err != nil {
		return nil, err
	}
	if err := await(ctx, out.apiServer, out.client.Ready); err != nil {
		return nil, err
	}
	s.say("%s: API server ready at %s", c.Name, c.Server)
	for _, node := range t.NodeObjects() {
		if t.Nodes == topology.Real {
			break // the kubelet creates the Node object
		}
		if err := out.client.CreateNode(ctx, node, !t.Controllers); err != nil {
			return nil, fmt.Errorf("cluster %q: creating node: %w", c.Name, err)
		}
	}
	if !t.Controllers {
		return out, nil
	}
	return out, out.startWorkloads(ctx, s)
}

func (c *cluster) startProxy() error {
	serving, err := c.plane.Serving.TLS()
	if err != nil {
		return fmt.Errorf("cluster %q: %w", c.plane.Name, err)
	}
	front, err := c.plane.FrontProxy.TLS()
	if err != nil {
		return fmt.Errorf("cluster %q: %w", c.plane.Name, err)
	}
	if c.proxyLog, err = os.OpenFile(c.plane.Log("fault-proxy"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return fmt.Errorf("cluster %q: %w", c.plane.Name, err)
	}
	c.proxy, err = faultproxy.Start(faultproxy.Config{
		Address: c.plane.ProxyAddress, Upstream: c.plane.Server, CA: c.plane.CA.Pool(), Server: serving, FrontProxy: front, Log: c.proxyLog,
	})
	return err
}

func (c *cluster) startWorkloads(ctx context.Context, s starting) error {
	specs, err := c.plane.ControllerSpecs(s.stages, c.topology.DeployedOperators)
	if err != nil {
		return err
	}
	if err := c.startAll(s, specs); err != nil {
		return err
	}
	if c.topology.Nodes == topology.Real {
		if err := c.startNode(ctx, s); err != nil {
			return err
		}
	}
	nodes := c.topology.Nodes.Count()
	ready := func(ctx context.Context) error { return c.client.WorkloadsReady(ctx, nodes) }
	if err := await(ctx, c.workloads[len(c.workloads)-1], ready, c.workloads...); err != nil {
		return err
	}
	s.say("%s: %d nodes ready", c.plane.Name, nodes)
	for range c.topology.Operators { // there is one kind of operator, and the topology has been validated
		spec, err := c.plane.OperatorSpec(s.ports)
		if err != nil {
			return err
		}
		c.operators = append(c.operators, superviseOperator(s.starter, c.client, always(spec)))
	}
	for range c.topology.DeployedOperators {
		prepared, err := c.plane.DeployedOperator(s.ports)
		if err != nil {
			return err
		}
		c.operators = append(c.operators, superviseOperator(s.starter, c.client, newDeployedOperator(prepared, c.client)))
	}
	return nil
}

// startNode starts the cluster's real node.
func (c *cluster) startNode(ctx context.Context, s starting) error {
	var err error
	if c.node, err = newNode(c); err != nil {
		return err
	}
	if err := c.node.start(ctx, s); err != nil {
		return err
	}
	s.say("%s: containerd ready", c.plane.Name)
	specs, err := c.node.Specs()
	if err != nil {
		return err
	}
	return c.startAll(s, specs)
}

// startAll starts workloads of the cluster. After an error, the processes that did start stay in c.workloads, so that
// stop ends them.
func (c *cluster) startAll(s starting, specs []process.Spec) error {
	for _, spec := range specs {
		p, err := s.starter.Start(spec)
		if err != nil {
			return err
		}
		c.workloads = append(c.workloads, p)
	}
	return nil
}

// await polls check until it succeeds. If p or one of the others ends by itself first, await fails at once. The error
// has the end of the log.
func await(ctx context.Context, p *process.Process, check func(context.Context) error, others ...*process.Process) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		for _, q := range append([]*process.Process{p}, others...) {
			if state, reason := q.State(); state == process.Exited {
				return fmt.Errorf("%s ended (%s); the end of its log %s:\n%s", q.Spec.Name, reason, q.Spec.Log, process.Tail(q.Spec.Log, logLines))
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w; the end of its log %s:\n%s", p.Spec.Name, err, p.Spec.Log, process.Tail(p.Spec.Log, logLines))
		case <-tick.C:
		}
	}
}

// stop kills every process of the cluster. None of them has data to save.
func (c *cluster) stop() {
	for _, o := range c.operators {
		o.stop()
	}
	for _, p := range slices.Backward(c.workloads) {
		p.Kill(syscall.SIGKILL)
	}
	if c.node != nil {
		c.node.end()
	}
	if c.proxy != nil {
		_ = c.proxy.Close() // after an error, its connections end with the supervisor
	}
	if c.proxyLog != nil {
		_ = c.proxyLog.Close()
	}
	if c.apiServer != nil {
		c.apiServer.Kill(syscall.SIGKILL)
	}
	if network := c.plane.Network(); network != nil {
		_ = network.Close() // after an error, the namespace ends with the supervisor
	}
}

// processes returns all started processes of the cluster.
func (c *cluster) processes() []*process.Process {
	all := append([]*process.Process{c.apiServer}, c.workloads...)
	if c.node != nil {
		all = append(all, c.node.containerd)
	}
	for _, o := range c.operators {
		if p := o.running(); p != nil {
			all = append(all, p)
		}
	}
	return all
}
