package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

const (
	probeInterval = 10 * time.Second
	firstPause    = time.Second // after the first failure; then doubled up to probeInterval
)

// member is the state machine of one cluster, in a goroutine of its own.
type member struct {
	name      string
	provider  *Provider
	ctx       context.Context // outlives every reconciliation; ends when the member leaves
	cancel    context.CancelFunc
	changed   chan struct{}
	ended     chan struct{}
	transport *transport
	cluster   cluster.Cluster // guarded by provider.mu; nil until the member has proved its ID

	mu     sync.Mutex
	wanted want

	// The goroutine of run alone uses these.
	engaged  bool
	failures int
	renewal  renewal
	clusters sync.WaitGroup
}

func newMember(ctx context.Context, p *Provider, name string, wanted want) *member {
	ctx, cancel := context.WithCancel(ctx)
	return &member{
		name: name, provider: p, ctx: ctx, cancel: cancel, changed: make(chan struct{}, 1), ended: make(chan struct{}),
		transport: &transport{cluster: name}, wanted: wanted,
	}
}

// isOf reports whether the member is still that of the MemberCluster.
func (m *member) isOf(w want) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wanted.uid == w.uid && m.wanted.clusterID == w.clusterID
}

func (m *member) update(w want) {
	m.mu.Lock()
	m.wanted = w
	m.mu.Unlock()
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

func (m *member) current() want {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wanted
}

// end ends the member without waiting for it. Its requests fail from now on.
func (m *member) end() {
	m.cancel()
	if s := m.transport.session.Swap(nil); s != nil {
		s.close()
	}
}

func (m *member) run() {
	defer close(m.ended)
	defer m.clusters.Wait()
	for {
		wait := m.step(m.current())
		timer := time.NewTimer(wait)
		select {
		case <-m.ctx.Done():
			timer.Stop()
			m.end() // a session that step opened meanwhile
			return
		case <-m.changed:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// step tries to bring the member to what is wanted, and returns when to try again.
func (m *member) step(w want) time.Duration {
	f := m.connect(w)
	if f == nil && !m.engaged {
		f = m.engage()
	}
	if m.ctx.Err() != nil {
		return 0
	}
	if f != nil {
		m.failures++
		m.report(m.engaged, f)
		return min(firstPause<<min(m.failures-1, 4), probeInterval)
	}
	m.failures = 0
	m.report(true, m.renew(w))
	return probeInterval
}

// connect makes sure that the session has the wanted connection and that it works. If a new connection does not work,
// the previous one stays in use.
func (m *member) connect(w want) *faultError {
	now := m.transport.session.Load()
	if now != nil && now.to == w.to {
		f := now.probe(m.ctx, w.clusterID)
		m.transport.broken.Store(f)
		return f
	}
	next, err := newSession(w.to, now)
	if err != nil {
		return faultf(ReasonCredentialsInvalid, "%s", err)
	}
	if f := next.probe(m.ctx, w.clusterID); f != nil {
		if now == nil || next.pool != now.pool {
			next.close()
		}
		if now != nil {
			m.transport.broken.Store(now.probe(m.ctx, w.clusterID))
		}
		return f
	}
	m.transport.session.Store(next)
	m.transport.broken.Store(nil)
	if now != nil && next.pool != now.pool {
		now.close() // watches begin again on the new connections, where they were
	}
	return nil
}

// engage makes the cluster and hands it to the controllers. It does not wait for a list of the member. A failure of one
// controller leaves the others at work, and is tried again.
func (m *member) engage() *faultError {
	p := m.provider
	p.mu.Lock()
	cl := m.cluster
	p.mu.Unlock()
	if cl == nil {
		made, err := m.makeCluster()
		if err != nil {
			return faultf(ReasonNotEngaged, "making the clients of the cluster: %s", err)
		}
		p.mu.Lock()
		for _, i := range p.indexes {
			err = errors.Join(err, made.GetFieldIndexer().IndexField(m.ctx, i.object, i.field, i.extract))
		}
		if err == nil && p.members[m.name] == m {
			m.cluster, cl = made, made
		}
		p.mu.Unlock()
		if cl == nil {
			return faultf(ReasonNotEngaged, "indexing fields of the cluster: %v", err)
		}
		m.clusters.Go(func() {
			if err := made.Start(m.ctx); err != nil {
				p.log.Error(err, "The cache of a member cluster ended", "cluster", m.name)
			}
		})
	}
	if err := p.aware.Engage(m.ctx, multicluster.ClusterName(m.name), cl); err != nil {
		return faultf(ReasonNotEngaged, "a controller does not take the cluster: %s", err)
	}
	m.engaged = true
	return nil
}

func (m *member) makeCluster() (cluster.Cluster, error) {
	httpClient := &http.Client{Transport: m.transport}
	config := &rest.Config{Host: "https://" + host, QPS: -1, UserAgent: "hanse-provider/" + m.provider.options.Consumer}
	var mapper meta.RESTMapper
	options := append(m.provider.options.ClusterOptions[:len(m.provider.options.ClusterOptions):len(m.provider.options.ClusterOptions)], func(o *cluster.Options) {
		o.HTTPClient = httpClient
		o.MapperProvider = func(c *rest.Config, h *http.Client) (_ meta.RESTMapper, err error) {
			mapper, err = apiutil.NewDynamicRESTMapper(c, h)
			return mapper, err
		}
		inner := o.NewCache
		if inner == nil {
			inner = cache.New
		}
		o.NewCache = func(c *rest.Config, co cache.Options) (cache.Cache, error) {
			made, err := inner(c, co)
			if err != nil {
				return nil, err
			}
			scheme := co.Scheme
			if scheme == nil {
				scheme = defaultScheme
			}
			return &memberCache{
				Cache: made, ctx: m.ctx, cluster: m.name, scheme: scheme, mapper: mapper, transport: m.transport, wait: readWait,
				kinds: map[kindKey]*lateInformer{},
			}, nil
		}
	})
	made, err := cluster.New(config, options...)
	if err != nil {
		return nil, fmt.Errorf("making a cluster: %w", err)
	}
	return made, nil
}

// report sets the state of the member. No fault means that it is served.
func (m *member) report(engaged bool, f *faultError) {
	s := State{Cluster: multicluster.ClusterName(m.name), Engaged: engaged, Reason: ReasonServed}
	if f == nil {
		f = m.transport.fault()
	}
	if f != nil {
		s.Reason, s.Message = f.reason, f.message
	}
	if m.ctx.Err() == nil {
		m.provider.setState(s)
	}
}
