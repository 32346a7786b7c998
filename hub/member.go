package hub

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/membership/shard"
	"github.com/hanse-dev/hanse/internal/informer"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/apply"
	"github.com/hanse-dev/hanse/member/cache"
	"github.com/hanse-dev/hanse/member/connect"
	"github.com/hanse-dev/hanse/member/credential"
	"github.com/hanse-dev/hanse/member/discovery"
	"github.com/hanse-dev/hanse/member/health"
	"github.com/hanse-dev/hanse/member/openapi"
	"github.com/hanse-dev/hanse/member/read"
)

// memberCluster implements member.Cluster for one connection to a member. It has all parts that write to the member and
// watch it.
type memberCluster struct {
	*apply.Applier
	*cache.Observer
	*read.Finder
	*read.Lister
	*read.Reader
	kinds  *discovery.Kinds
	tokens *credential.Issuer
	name   string
	isHub  bool
}

var (
	_ member.Cluster = &memberCluster{}
	_ member.Viewer  = &memberCluster{}
	_ member.Reader  = &memberCluster{}
	_ member.Pruner  = &memberCluster{}
)

// Name implements member.Cluster.
func (m *memberCluster) Name() string { return m.name }

// IsHub implements member.Cluster.
func (m *memberCluster) IsHub() bool { return m.isHub }

// Fit implements member.Cluster.
func (m *memberCluster) Fit(ctx context.Context, manifest *unstructured.Unstructured) (*unstructured.Unstructured, []string) {
	return m.kinds.Fit(ctx, manifest)
}

// Schema implements member.Cluster.
func (m *memberCluster) Schema(ctx context.Context, gvk schema.GroupVersionKind) *openapi.Schema {
	return m.kinds.Schema(ctx, gvk)
}

// Misfits implements member.Cluster.
func (m *memberCluster) Misfits(ctx context.Context, manifest *unstructured.Unstructured) []member.Misfit {
	return m.kinds.Misfits(ctx, manifest)
}

// Apply writes one object to the member; see member.Cluster. If the outcome shows that the cached data about the
// member's kinds is wrong, Apply drops this data.
func (m *memberCluster) Apply(ctx context.Context, in member.ApplyIntent) member.Outcome {
	return m.kinds.LearnFrom(in.Manifest.GroupVersionKind(), m.Applier.Apply(ctx, in))
}

// Copies lists the copies on the member; see member.Pruner. It returns no copies for the hub's own cluster.
func (m *memberCluster) Copies(ctx context.Context, limit int, keep func(member.Copy) (bool, error)) (member.Copies, error) {
	if m.isHub {
		return member.Copies{}, nil
	}
	return m.Lister.Copies(ctx, limit, keep)
}

// Restart restarts every watch on the member at once, because the connection to the member is new or ready again.
func (m *memberCluster) Restart() {
	m.Observer.Restart()
	m.kinds.Restart()
}

// memberMaker creates members.
type memberMaker struct {
	process   *process
	knowledge *knowledge
	// wanted returns the kinds that the hub may send to members. wanted and wakes are set before the hub connects to
	// members.
	wanted func() []schema.GroupKind
	wakes  memberWakes
}

// memberWakes are functions that are called after changes on members. They must not block.
type memberWakes struct {
	// kind is called for a kind that a member has started or stopped serving, and for a kind whose watch on a member has
	// failed or works again.
	kind func(ctx context.Context, cluster string, gk schema.GroupKind)
	// watch is called if a watch of a kind on a member has failed or works again. fails is true if the watch fails now.
	watch func(cluster string, gk schema.GroupKind, fails bool)
	// copied is called for a copy that changed on a member.
	copied func(cluster string, o member.Observation, c copyChange)
}

// copyChange is the part of a copy that changed.
type copyChange int

const (
	copyStatus copyChange = iota
	copyContent
	copyGone
)

// newMember creates all parts that write to a member and watch it. It does not wait for the network.
func (maker *memberMaker) newMember(ctx context.Context, name string, c *connect.Cluster) (*memberCluster, error) {
	hold := maker.process.coordinator.Hold(name)
	if hold == nil {
		return nil, fmt.Errorf("joining cluster %q: %w", name, shard.ErrUnsure)
	}
	for _, config := range []*rest.Config{c.Requests, c.Reads, c.Watches} {
		config.Wrap(apply.KeepRetryAfter) // after Retry-After, the queue waits, and not the request
		config.Wrap(hold.Guard)
	}
	writes, err := informer.NewRESTClient(c.Requests)
	if err != nil {
		return nil, fmt.Errorf("making the client for writes: %w", err)
	}
	requests := dynamic.New(writes)
	reads, err := informer.NewRESTClient(c.Reads)
	if err != nil {
		return nil, fmt.Errorf("making the client for reads: %w", err)
	}
	watches, err := informer.NewClient(c.Watches)
	if err != nil {
		return nil, fmt.Errorf("making the client for watches: %w", err)
	}
	m := &memberCluster{
		name: name, isHub: c.ID == string(maker.process.hub.UID), Finder: read.NewFinder(dynamic.New(reads)), Reader: read.New(reads),
		tokens: credential.New(requests, maker.process.hub.UID),
	}
	m.kinds, err = discovery.NewForConfig(ctx, c.Reads, c.Watches, c.Retained, func(gk schema.GroupKind) {
		m.Retry(gk) // Retry the copies; without an observer, no kind is in use
		maker.wakes.kind(ctx, name, gk)
	}, func() { maker.process.links.LookAgain(name) })
	if err != nil {
		return nil, err
	}
	if m.Lister, err = maker.newLister(c, m.kinds); err != nil {
		return nil, err
	}
	m.Observer = maker.newObserver(ctx, m, c, watches)
	m.Applier = apply.New(name, m.isHub, writes, func(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
		r, err := m.kinds.Find(gvk)
		return r.GroupVersionResource, r.Namespaced, err
	}, maker.process.hub.UID, maker.process.hub.Key, m.Observer.Await)
	m.kinds.Expect(maker.wanted())
	return m, nil
}

// newLister creates the part that lists the copies on a member.
func (maker *memberMaker) newLister(c *connect.Cluster, kinds *discovery.Kinds) (*read.Lister, error) {
	client, err := informer.NewClient(discovery.MetadataOnly(c.Reads))
	if err != nil {
		return nil, fmt.Errorf("making the client for lists of copies: %w", err)
	}
	return read.NewLister(read.ListerOptions{
		Client: client, HubUID: maker.process.hub.UID, Groups: kinds.Groups, Kinds: kinds.Listable,
	}), nil
}

// claimedOn returns a function that reports whether a binding names the cluster as a target of an object. The function
// returns true if the binding cannot be read. bindings reads from memory.
func claimedOn(bindings client.Reader, cluster string) func(hubv1.ObjectIdentity) bool {
	return func(id hubv1.ObjectIdentity) bool {
		key := id.BindingKey()
		b := hubv1.NewBinding(key)
		err := bindings.Get(context.Background(), key, b, client.UnsafeDisableDeepCopy)
		return err == nil && b.BindingSpec().Target(cluster) != nil || client.IgnoreNotFound(err) != nil
	}
}

// newObserver creates the part that watches the copies on a member.
func (maker *memberMaker) newObserver(ctx context.Context, m *memberCluster, c *connect.Cluster, watches dynamic.Interface) *cache.Observer {
	return cache.New(ctx, cache.Options{
		Cluster: m.name, Client: watches, HubUID: maker.process.hub.UID, Key: maker.process.hub.Key, OnUse: m.kinds.Use, Settings: maker.knowledge.settings.Of,
		Retained: c.Retained, Claimed: claimedOn(maker.process.mgr.GetClient(), m.name),
		Conventions: func(gvk schema.GroupVersionKind) health.Conventions {
			c := maker.knowledge.definitions.Conventions(gvk)
			c.HasStatus = c.HasStatus || m.kinds.HasStatus(gvk)
			return c
		},
		Resolve: func(gvk schema.GroupVersionKind) (schema.GroupVersionResource, error) {
			m.kinds.Forget(gvk) // forget the cached answer, so that Find asks the member
			r, err := m.kinds.Find(gvk)
			maker.knowledge.definitions.Learn(ctx, gvk)
			return r.GroupVersionResource, err
		},
		Handler: func(cluster string, o member.Observation, content, gone bool) {
			change := copyStatus
			if gone {
				change = copyGone
			} else if state, _ := m.Observer.State(o.GVK); content && state.Delivered { // OnState queues the first list
				change = copyContent
			}
			maker.wakes.copied(cluster, o, change)
		},
		OnState: func(cluster string, gvk schema.GroupVersionKind, state informer.State) {
			go maker.wakes.kind(ctx, cluster, gvk.GroupKind())
			go maker.wakes.watch(cluster, gvk.GroupKind(), state.Reason != "")
		},
	})
}
