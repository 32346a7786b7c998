package hub

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/membership"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/apply"
	"github.com/hanse-dev/hanse/member/children"
	"github.com/hanse-dev/hanse/member/connect"
	"github.com/hanse-dev/hanse/member/copies"
	"github.com/hanse-dev/hanse/member/observe"
	"github.com/hanse-dev/hanse/member/served"
	"github.com/hanse-dev/hanse/member/tokens"
)

// fleet puts the two sides of a member together: the link from member/connect, and what writes and watches through it.
// It is the member.Fleet of every controller and multicluster-runtime's Aware of the provider.
type fleet struct {
	links member.Links
	// join makes the two sides of a member; start starts its work. Neither waits for the network.
	join  func(ctx context.Context, name string, c *connect.Cluster) (member.Cluster, error)
	start func(ctx context.Context, name string) error

	mu      sync.RWMutex
	members map[string]member.Cluster
}

var (
	_ member.Fleet       = &fleet{}
	_ multicluster.Aware = &fleet{}
)

// Get implements member.Fleet.
func (f *fleet) Get(name string) (member.Cluster, error) {
	f.mu.RLock()
	c := f.members[name]
	f.mu.RUnlock()
	if c == nil {
		return nil, fmt.Errorf("cluster %q: %w", name, member.ErrNotConnected)
	}
	if s, ok := f.links.State(name); !ok || s.Ready != metav1.ConditionTrue {
		return nil, fmt.Errorf("cluster %q: %w", name, member.ErrNotConnected)
	}
	return c, nil
}

// Engage implements multicluster.Aware. It registers the member and returns at once: a member that hangs must not hold
// up another. The member is forgotten when ctx ends, unless a new link has taken its place by then.
func (f *fleet) Engage(ctx context.Context, name multicluster.ClusterName, c cluster.Cluster) error {
	link, ok := c.(*connect.Cluster)
	if !ok {
		return fmt.Errorf("engaging cluster %q: it does not come from member/connect but is a %T", name, c)
	}
	m, err := f.join(ctx, name.String(), link)
	if err != nil {
		return fmt.Errorf("engaging cluster %q: %w", name, err)
	}
	f.mu.Lock()
	f.members[name.String()] = m
	f.mu.Unlock()
	context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.members[name.String()] == m {
			delete(f.members, name.String())
		}
	})
	return f.start(ctx, name.String())
}

// resume makes the watches of a member open again at once: while it was away, the pauses between their tries have
// grown.
func (f *fleet) resume(name string) {
	f.mu.RLock()
	c := f.members[name]
	f.mu.RUnlock()
	if w, ok := c.(interface{ Restart() }); ok {
		w.Restart()
	}
}

// expect tells every member which groups of kinds may be sent there.
func (f *fleet) expect(groups sets.Set[string]) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for _, c := range f.members {
		if m, ok := c.(*memberCluster); ok {
			m.kinds.Expect(groups)
		}
	}
}

// copies are those of each member that this replica is connected to.
func (f *fleet) copies() map[string]watchedCopies {
	f.mu.RLock()
	defer f.mu.RUnlock()
	out := map[string]watchedCopies{}
	for name, c := range f.members {
		if m, ok := c.(*memberCluster); ok && !m.isHub {
			out[name] = m
		}
	}
	return out
}

// tokens are how the hub's own tokens on a member are made and revoked.
func (f *fleet) tokens(name string) (membership.Tokens, error) {
	c, err := f.Get(name)
	if err != nil {
		return nil, err
	}
	m, ok := c.(*memberCluster)
	if !ok {
		return nil, fmt.Errorf("cluster %q: %w", name, member.ErrNotConnected)
	}
	return m.tokens, nil
}

// reread makes members look once more at an object, of whose status something else is wished now.
func (f *fleet) reread(id hubv1.ObjectIdentity) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for _, c := range f.members {
		if m, ok := c.(*memberCluster); ok {
			m.Reread(id)
		}
	}
}

// readAnew makes members read their copies of a kind once more: the hub's definition says otherwise how their statuses
// are read.
func (f *fleet) readAnew(kind schema.GroupKind) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for _, c := range f.members {
		if m, ok := c.(*memberCluster); ok {
			m.ReadAnew(kind)
		}
	}
}

// memberCluster is the member.Cluster of one link.
type memberCluster struct {
	*apply.Applier
	*observe.Observer
	*children.Finder
	*copies.Lister
	kinds  *served.Kinds
	tokens *tokens.Issuer
	name   string
	isHub  bool
}

var (
	_ member.Cluster = &memberCluster{}
	_ member.Viewer  = &memberCluster{}
	_ member.Pruner  = &memberCluster{}
)

// Name implements member.Cluster.
func (c *memberCluster) Name() string { return c.name }

// IsHub implements member.Cluster.
func (c *memberCluster) IsHub() bool { return c.isHub }

// linkLog tells the changes of a link that bindings depend on from those that they do not.
type linkLog struct {
	links member.Links

	mu   sync.Mutex
	last map[string]string
}

// moved is true if the link became ready, was lost or is down for another reason than at the last call.
func (l *linkLog) moved(cluster string) (moved, ready bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.links.State(cluster) // with the lock: what is noted last was also read last
	now := string(s.Ready) + " " + s.Reason
	if !ok {
		delete(l.last, cluster)
		return true, false
	}
	moved = l.last[cluster] != now
	l.last[cluster] = now
	return moved, s.Ready == metav1.ConditionTrue
}
