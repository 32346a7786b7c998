package hub

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/catalog"
	"github.com/hanse-dev/hanse/member"
)

// connect says who wakes whom. All parts are made by then, and none has started.
func (p *parts) connect(ctx context.Context) {
	p.followReplicas()
	p.followLinks(ctx)
	p.followMembers()
	p.followHub(ctx)
	p.followDecisions()
}

// followReplicas: this replica took a member or let it go.
func (p *parts) followReplicas() { p.coordinator.OnChange(p.members.Wake) }

// followLinks wakes the parts that depend on a link.
func (p *parts) followLinks(ctx context.Context) {
	p.links.LookFor(p.scheduler.Wanted)
	p.fleet.start = p.dispatcher.Engage
	seen := &linkLog{links: p.links, last: map[string]string{}}
	p.links.OnChange(func(cluster string) {
		p.members.Wake(cluster)
		moved, ready := seen.moved(cluster)
		if !moved {
			return // other facts, which no binding depends on
		}
		p.reporter.WakeCluster(cluster)
		if ready {
			p.fleet.resume(cluster)
			p.dispatcher.Resume(ctx, cluster)
		}
	})
}

// followMembers wakes the parts that depend on copies, and on the kinds that members serve.
func (p *parts) followMembers() {
	p.fleet.maker.wanted = p.scheduler.Wanted
	p.fleet.maker.wakes = memberWakes{
		kind: func(ctx context.Context, cluster string, gk schema.GroupKind) {
			p.dispatcher.WakeKind(ctx, gk, cluster)
		},
		copied: func(cluster string, o member.Observation, c copyChange) {
			// By place and name, not by its owner annotation: that may have been removed by hand.
			id := hubv1.ObjectIdentity{Group: o.GVK.Group, Kind: o.GVK.Kind, Namespace: o.Namespace, Name: o.Name}
			switch c {
			case copyGone: // first, so that it is known by the time the row is made
				p.dispatcher.Vanished(cluster, id.BindingKey(), o)
			case copyContent:
				p.dispatcher.Observed(cluster, id.BindingKey(), o)
			case copyStatus:
			}
			p.reporter.Wake(id.BindingKey(), cluster)
		},
	}
}

// followHub wakes the parts that depend on the hub's own objects, their definitions and the settings for their statuses.
func (p *parts) followHub(ctx context.Context) {
	// A list of thousands must not hold up the changes that follow it.
	listed := func(id hubv1.ObjectIdentity) bool {
		state, _ := p.store.State(id.GroupKind())
		return state.Told
	}
	p.store.OnChange(func(id hubv1.ObjectIdentity) {
		if listed(id) {
			p.dispatcher.WakeObject(ctx, id)
			p.reporter.WakeObject(id)
		}
	})
	p.store.OnStatus(func(id hubv1.ObjectIdentity) { // no copy depends on the status, which is written for each of them
		if listed(id) {
			p.reporter.WakeObject(id)
		}
	})
	p.store.OnState(func(gk schema.GroupKind) {
		go func() {
			p.dispatcher.WakeKind(ctx, gk)
			for _, id := range p.store.List(gk) {
				p.reporter.WakeObject(id)
			}
		}()
	})
	p.definitions.OnChange(func(kind schema.GroupKind, before, after *catalog.Definition) {
		for _, id := range p.store.List(kind) {
			p.reporter.WakeObject(id) // statuses are merged by the schema
		}
		if !before.SameConventions(after) {
			p.fleet.readAnew(kind)
		}
	})
	p.settings.OnChange(p.fleet.reread)
	p.epochs.OnRestart(func() { go p.dispatcher.WakeOlder(ctx) })
}

// followDecisions wakes the parts that depend on what scheduling decides and holds back.
func (p *parts) followDecisions() {
	p.scheduler.OnDecision(p.reporter.WakeDecided)
	p.scheduler.OnRemoval(p.policies.WakePlacement)
	p.scheduler.OnWanted(func(kinds []schema.GroupKind) {
		p.kinds.Expect(kinds)
		p.fleet.expect(kinds)
		p.links.Look()
	})
}

// linkLog filters link changes: bindings depend on the state Ready and its reason alone.
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
