package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Options of a Provider.
type Options struct {
	// Consumer is the name of the entry in the list consumers of the chart hanse-member. Required.
	Consumer string
	// Namespace is the namespace on the hub that has the consumer's Secrets of type SecretType. Required.
	Namespace string
	// ClusterOptions set the scheme, the cache and the client of each cluster. HTTPClient and MapperProvider are set by
	// the provider.
	ClusterOptions []cluster.Option
	// Logger logs each change of a cluster's state. Default: controller-runtime's logger.
	Logger logr.Logger
}

// State says whether a cluster is served, and why not.
type State struct {
	Cluster multicluster.ClusterName
	// Engaged is true if controllers work on the cluster.
	Engaged bool
	// Reason is Served if all is well. Message says what is wrong and what to do.
	Reason, Message string
}

// Provider implements multicluster.Provider and multicluster.ProviderRunnable.
type Provider struct {
	options Options
	hub     *hub
	now     func() time.Time

	aware multicluster.Aware
	log   logr.Logger

	mu      sync.Mutex
	members map[string]*member
	states  map[string]State
	indexes []index
}

type index struct {
	object  client.Object
	field   string
	extract client.IndexerFunc
}

var (
	_ multicluster.Provider         = &Provider{}
	_ multicluster.ProviderRunnable = &Provider{}
)

// New returns a Provider that reads the hub with a config of the consumer. It needs get, list and watch on
// memberclusters, and get, list, watch and patch on secrets in the namespace of the options.
func New(config *rest.Config, o Options) (*Provider, error) {
	if o.Consumer == "" || o.Namespace == "" {
		return nil, errors.New("the provider needs the name of a consumer, and the namespace of its Secrets")
	}
	h, err := newHub(config, o.Namespace)
	if err != nil {
		return nil, err
	}
	if o.Logger.GetSink() == nil {
		o.Logger = log.Log.WithName("hanse-provider")
	}
	return &Provider{
		options: o, hub: h, now: time.Now, log: o.Logger, members: map[string]*member{}, states: map[string]State{},
	}, nil
}

// Start implements multicluster.ProviderRunnable. It ends with ctx, after all members have ended.
func (p *Provider) Start(ctx context.Context, aware multicluster.Aware) error {
	if err := p.hub.mayRead(ctx); err != nil {
		return err
	}
	p.aware = aware
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	stop := context.AfterFunc(ctx, queue.ShutDown)
	defer stop()
	defer p.endAll()
	if err := p.hub.start(ctx, queue.Add); err != nil {
		return err
	}
	for {
		name, ended := queue.Get()
		if ended {
			return nil
		}
		if err := p.reconcile(ctx, name); err != nil {
			p.log.Error(err, "Failed to read a member cluster", "cluster", name)
			queue.AddRateLimited(name)
		} else {
			queue.Forget(name)
		}
		queue.Done(name)
	}
}

// reconcile brings a member to what the hub says of it. It does not wait for the member.
func (p *Provider) reconcile(ctx context.Context, name string) error {
	mcl, secret, err := p.hub.read(ctx, name)
	if err != nil {
		return err
	}
	wanted, refused := decide(mcl, secret, p.options.Namespace)
	p.mu.Lock()
	m := p.members[name]
	p.mu.Unlock()
	switch {
	case refused != nil && refused.reason == ReasonCredentialsInvalid && m != nil:
		m.report(true, refused) // the last good credentials stay in use
		return nil
	case refused != nil:
		p.end(name)
		p.setState(State{Cluster: multicluster.ClusterName(name), Reason: refused.reason, Message: refused.message})
		if mcl == nil {
			p.forget(name)
		}
		return nil
	case m != nil && m.isOf(wanted):
		m.update(wanted)
		return nil
	}
	p.end(name)
	p.begin(ctx, name, wanted)
	return nil
}

func (p *Provider) begin(ctx context.Context, name string, wanted want) {
	m := newMember(ctx, p, name, wanted)
	p.mu.Lock()
	p.members[name] = m
	p.mu.Unlock()
	go m.run()
}

// end disengages a member. Its requests fail from now on.
func (p *Provider) end(name string) {
	p.mu.Lock()
	m := p.members[name]
	delete(p.members, name)
	p.mu.Unlock()
	if m != nil {
		m.end()
	}
}

func (p *Provider) endAll() {
	p.mu.Lock()
	members := slices.Collect(maps.Values(p.members))
	clear(p.members)
	p.mu.Unlock()
	for _, m := range members {
		m.end()
	}
	for _, m := range members {
		<-m.ended
	}
}

// Get implements multicluster.Provider. Its error says why the cluster is not there, and wraps ErrClusterNotFound.
func (p *Provider) Get(_ context.Context, name multicluster.ClusterName) (cluster.Cluster, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.members[name.String()]; m != nil && m.cluster != nil {
		return m.cluster, nil
	}
	why := "the hub has no MemberCluster of this name"
	if s, ok := p.states[name.String()]; ok {
		why = s.Message
	}
	return nil, fmt.Errorf("cluster %s: %w: %s", name, multicluster.ErrClusterNotFound, why)
}

// IndexField implements multicluster.Provider. Clusters that come later get the index, too.
func (p *Provider) IndexField(ctx context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.indexes = append(p.indexes, index{object: obj, field: field, extract: extract})
	for _, m := range p.members {
		if m.cluster == nil {
			continue
		}
		if err := m.cluster.GetFieldIndexer().IndexField(ctx, obj, field, extract); err != nil {
			return fmt.Errorf("indexing %s on cluster %s: %w", field, m.name, err)
		}
	}
	return nil
}

// States returns the state of each MemberCluster, by name.
func (p *Provider) States() []State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.SortedFunc(maps.Values(p.states), func(a, b State) int { return cmp.Compare(a.Cluster, b.Cluster) })
}

func (p *Provider) setState(s State) {
	p.mu.Lock()
	before, known := p.states[s.Cluster.String()]
	p.states[s.Cluster.String()] = s
	p.mu.Unlock()
	if !known || before.Engaged != s.Engaged || before.Reason != s.Reason {
		p.log.Info("The state of a member cluster changed", "cluster", s.Cluster, "engaged", s.Engaged, "reason", s.Reason, "message", s.Message)
	}
}

func (p *Provider) forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.states, name)
}

func hubScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := errors.Join(hubv1.AddToScheme(s), corev1.AddToScheme(s)); err != nil {
		return nil, fmt.Errorf("making the scheme of the hub: %w", err)
	}
	return s, nil
}

// defaultScheme is the scheme of clusters whose options set none.
var defaultScheme = clientgoscheme.Scheme
