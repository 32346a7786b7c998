// Package connect keeps a link to each member cluster. It implements member.Links for the hub's controllers, and
// provides a client configuration for each connected cluster. It reads the address and credentials of a cluster from
// its kubeconfig into a member.Connection, and uses nothing else to reach the cluster.
//
// Every link is a state machine in its own goroutine. The context of a link ends with the provider, not with the call
// that has created the link. Links share no queue and no connection, and hold no lock during I/O. A cluster that hangs
// therefore does not delay others.
//
//   - A link is ready if a watch on it delivers events. A successful request is not enough.
//   - A single failed probe does not end a link, but two in a row do. One failure suffices if the connection or the
//     credentials are refused, if the certificate is unknown, or if another cluster answers.
//   - A changed kubeconfig is tried beside the current link, which stays in use until the new one delivers events.
//     Existing clients then use the new credentials; a new address makes a new Cluster.
//   - If the address leads to another cluster, the link ends at once, and all requests of existing clients fail.
//
// This package does not write the status of MemberClusters, does not detect clusters that are joined twice, and does
// not choose which kinds to watch. The callers of this package do these tasks.
package connect

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// probeInterval is the default of Options.ProbeInterval.
const probeInterval = 10 * time.Second

// Options of a Provider.
type Options struct {
	// ProbeInterval is the time between two probes of a link that is ready. A link is the connection to one member. A
	// probe checks that the member's watches deliver events. Default 10 s.
	ProbeInterval time.Duration
	// ProbeTimeout is how long a probe of a member waits for an event from its watch. Default 5 s.
	ProbeTimeout time.Duration
	// FactsInterval is the time between two reads of the cluster's version and nodes. Default 60 s.
	FactsInterval time.Duration
	// HubID is the ID of the hub's own cluster. A cluster with that ID is refused, unless its MemberCluster expects the
	// ID. Default: empty, which refuses no cluster.
	HubID string
	// Proxy returns the proxy for connections to members. Default: no proxy, not even from the environment, because a
	// proxy sees the names of members.
	Proxy func(*http.Request) (*url.URL, error)
	// Tunnels keeps the lanes of members whose agents connect to the hub. Default: the hub accepts no agents.
	Tunnels Tunnels
	// Logger gets one line for each change in the state of a link, which is the connection to one member. Default: no log.
	Logger logr.Logger

	kinds func() []schema.GroupKind // the argument of Provider.LookFor
}

// Provider keeps one link, which is a connection, for each member cluster.
type Provider struct {
	options   Options
	listeners []func(cluster string)

	mu     sync.Mutex
	root   context.Context // nil until Start
	engage Engage
	ended  bool
	links  map[string]*link
	// ending has links that were removed, but whose goroutine still runs. A new link of the same name starts after this
	// goroutine has returned.
	ending  map[string]*link
	running sync.WaitGroup
}

var _ member.Links = &Provider{}

// Engage is called with a connected cluster. The cluster may be used until ctx ends. Engage must not wait for the
// network, because the goroutine of the cluster's link calls it and would be blocked.
type Engage func(ctx context.Context, name string, c *Cluster) error

// New returns a provider without links.
func New(options Options) *Provider {
	defaultTo(&options.ProbeInterval, probeInterval)
	defaultTo(&options.ProbeTimeout, 5*time.Second)
	defaultTo(&options.FactsInterval, time.Minute)
	return &Provider{options: options, links: map[string]*link{}, ending: map[string]*link{}}
}

func defaultTo(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

// LookFor sets the function kinds, which returns the kinds to look for in the discovery of each cluster. kinds returns
// nil while these kinds are not known. The caller calls Look when they are known. LookFor must be called before Ensure.
func (p *Provider) LookFor(kinds func() []schema.GroupKind) { p.options.kinds = kinds }

// OnChange registers a function. The provider calls it when a field of a cluster's State other than LastObserved has
// changed, and when the link of a cluster is removed. The provider holds no lock during the call, and the function must
// not block. OnChange must be called before Start.
func (p *Provider) OnChange(f func(cluster string)) { p.listeners = append(p.listeners, f) }

// Start connects all links, including links that are added later, and calls engage with each connected cluster. It
// returns after ctx has ended and all goroutines have finished.
func (p *Provider) Start(ctx context.Context, engage Engage) error {
	p.mu.Lock()
	if p.root != nil {
		p.mu.Unlock()
		return errors.New("the provider of member clusters was started before")
	}
	p.root, p.engage = ctx, engage
	for _, l := range p.links {
		p.launchLocked(l)
	}
	p.mu.Unlock()

	<-ctx.Done()
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.running.Wait()
	return nil
}

// Ensure creates or updates the link of a cluster; see member.Links. It may be called before Start.
func (p *Provider) Ensure(cluster string, route member.Route, expectedID string) {
	p.mu.Lock()
	to, r := p.connectionLocked(cluster, route)
	w := want{to: to, fault: r, expectedID: expectedID}
	l, found := p.links[cluster]
	if !found {
		l = newLink(cluster, p.options, p.changed)
		l.before = p.ending[cluster]
		p.links[cluster] = l
	}
	l.orders.setWant(w)
	if !found && p.root != nil {
		p.launchLocked(l)
	}
	p.mu.Unlock()
}

// connectionLocked returns the connection to a cluster by a route. The caller holds p.mu, so that Remove cannot close
// the lanes meanwhile.
func (p *Provider) connectionLocked(cluster string, route member.Route) (member.Connection, *fault) {
	switch {
	case !route.Tunnel:
		return parseKubeconfig(route.Kubeconfig)
	case p.options.Tunnels == nil:
		return member.Connection{}, &fault{hubv1.ReasonTunnelOff,
			"the connection type is Tunnel, but the hub listens for no agents: set tunnel.enabled of the chart hanse-hub, or join the cluster with the type Direct"}
	}
	lanes := p.options.Tunnels.Open(cluster, route.Keys, func() { p.arrived(cluster) })
	return member.Connection{Server: "http://" + cluster + ".agents.hanse.internal", Lanes: lanes}, nil
}

// arrived lets the link of a cluster probe at once, because an agent has opened a lane.
func (p *Provider) arrived(cluster string) {
	if l := p.link(cluster); l != nil {
		l.orders.askToProbe()
	}
}

// launchLocked starts the goroutine of a link. The caller holds p.mu.
func (p *Provider) launchLocked(l *link) {
	if p.ended {
		return
	}
	ctx, cancel := context.WithCancel(p.root)
	l.cancel = cancel
	engage := p.engage
	p.running.Go(func() {
		defer cancel()
		defer close(l.done)
		if l.before != nil {
			<-l.before.done
			l.before = nil
		}
		l.run(ctx, engage)
		p.forget(l)
	})
}

func (p *Provider) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ending[l.name] == l {
		delete(p.ending, l.name)
	}
}

// Remove ends the link of a cluster; see member.Links. After Remove, every request of the cluster's existing clients
// fails.
func (p *Provider) Remove(cluster string) {
	if p.drop(cluster) {
		p.changed(cluster)
	}
}

// drop removes the link and returns true, or returns false if the cluster has no link.
func (p *Provider) drop(cluster string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.links[cluster]
	if l == nil {
		return false
	}
	delete(p.links, cluster)
	if p.options.Tunnels != nil {
		p.options.Tunnels.Close(cluster)
	}
	l.dropMetrics()
	if l.cancel != nil { // the goroutine of the link runs
		l.cancel()
		p.ending[cluster] = l
	}
	if e := l.currentEngagement(); e != nil {
		e.end()
	}
	return true
}

// State implements member.Links.
func (p *Provider) State(cluster string) (member.LinkState, bool) {
	l := p.link(cluster)
	if l == nil {
		return member.LinkState{}, false
	}
	return l.currentState(), true
}

func (p *Provider) link(cluster string) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.links[cluster]
}

func (p *Provider) changed(cluster string) {
	for _, f := range p.listeners {
		f(cluster)
	}
}
