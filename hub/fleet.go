package hub

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/membership"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/connect"
)

// fleet has the members to which this replica is connected. Controllers use the fleet as their member.Fleet.
type fleet struct {
	links member.Links
	maker memberMaker
	// start starts the controllers' work for a member that has connected. It does not wait for the network. The field
	// start is set before the hub connects to members.
	start func(ctx context.Context, cluster string) error

	mu      sync.RWMutex
	members map[string]*memberCluster
}

var _ member.Fleet = &fleet{}

func newFleet(p *process, k *knowledge) *fleet {
	return &fleet{links: p.links, maker: memberMaker{process: p, knowledge: k}, members: map[string]*memberCluster{}}
}

// Get implements member.Fleet.
func (f *fleet) Get(name string) (member.Cluster, error) {
	m, err := f.connected(name)
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (f *fleet) connected(name string) (*memberCluster, error) {
	if s, ok := f.links.State(name); ok && s.Ready == metav1.ConditionTrue {
		if m := f.member(name); m != nil {
			return m, nil
		}
	}
	return nil, fmt.Errorf("cluster %q: %w", name, member.ErrNotConnected)
}

// member returns a connected member, even if its connection is not ready now. The result is nil if this replica has no
// connection to the member.
func (f *fleet) member(name string) *memberCluster {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.members[name]
}

// each calls visit for every connected member. visit must not block.
func (f *fleet) each(visit func(*memberCluster)) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	for _, m := range f.members {
		visit(m)
	}
}

// engage registers a member that has connected, and returns at once, so that a hanging member does not delay other
// members. The member is removed when ctx ends, unless a new connection has replaced this one.
func (f *fleet) engage(ctx context.Context, name string, link *connect.Cluster) error {
	m, err := f.maker.newMember(ctx, name, link)
	if err != nil {
		return fmt.Errorf("engaging cluster %q: %w", name, err)
	}
	f.mu.Lock()
	f.members[name] = m
	f.mu.Unlock()
	context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.members[name] == m {
			delete(f.members, name)
		}
	})
	return f.start(ctx, name)
}

// resume restarts the watches of a member at once, because their retry delays have grown during the outage.
func (f *fleet) resume(name string) {
	if m := f.member(name); m != nil {
		m.Restart()
	}
}

// expect tells every connected member which kinds the hub may send to it.
func (f *fleet) expect(kinds []schema.GroupKind) {
	f.each(func(m *memberCluster) { m.kinds.Expect(kinds) })
}

// reread makes members read an object's copy and judge its status again, after the status settings of the object's
// placement have changed.
func (f *fleet) reread(id hubv1.ObjectIdentity) {
	f.each(func(m *memberCluster) { m.Reread(id) })
}

// claimed makes the targets of a binding read the object's copy in full, if they had it before the binding named them.
func (f *fleet) claimed(_ context.Context, c changes.Binding) {
	if c.After == nil {
		return
	}
	id := hubv1.ObjectOf(c.After)
	for _, t := range c.After.BindingSpec().Clusters {
		if m := f.member(t.Name); m != nil {
			m.Reread(id)
		}
	}
}

// rereadKind makes members evaluate the statuses of a kind's copies again, after the rules for reading these statuses
// have changed.
func (f *fleet) rereadKind(kind schema.GroupKind) {
	f.each(func(m *memberCluster) { m.RereadKind(kind) })
}

// copies returns the watched copies of each member.
func (f *fleet) copies() map[string]membership.WatchedCopies {
	out := map[string]membership.WatchedCopies{}
	f.each(func(m *memberCluster) {
		if !m.isHub {
			out[m.name] = m
		}
	})
	return out
}

// tokensOf returns the part that issues and revokes the hub's tokens on a member.
func (f *fleet) tokensOf(name string) (membership.Tokens, error) {
	m, err := f.connected(name)
	if err != nil {
		return nil, err
	}
	return m.tokens, nil
}
