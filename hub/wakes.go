package hub

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/catalog"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/member"
)

// connect registers which parts of the hub react to which changes. It is called when all parts are made, and before any
// of them starts.
func (p *parts) connect(ctx context.Context) {
	p.followPolicies()
	p.followTemplates(ctx)
	p.followLinks(ctx)
	p.followMembers()
	p.followDecisions()
	p.followPages()

	// The coordinator assigns members to replicas. It calls Wake when this replica has taken or released a member.
	p.process.coordinator.OnChange(p.controllers.members.Wake)
	// After a change of an object's settings for reading the status, members read the object's copy again. After a restore
	// from a backup, the hub leaves a copy alone if a later state of the hub has written it. When a new list of epochs
	// begins (package epochs), the hub tries again to write such copies.
	p.knowledge.settings.OnChange(p.fleet.reread)
	p.knowledge.epochs.OnRestart(func() { go p.controllers.dispatcher.WakeOlder(ctx) })
}

// followPages tells the open pages of the console in which namespace an object has changed.
func (p *parts) followPages() {
	if p.controllers.console == nil {
		return
	}
	live := p.controllers.console.Live
	p.knowledge.changes.Bindings.On(changes.Any, func(_ context.Context, c changes.Binding) { live.Changed(last(c).GetNamespace()) })
	p.knowledge.changes.Placements.On(changes.Any, func(_ context.Context, c changes.Placement) { live.Changed(last(c).GetNamespace()) })
	p.knowledge.changes.Bundles.On(changes.Any, func(_ context.Context, c changes.Bundle) { live.Changed(last(c).GetNamespace()) })
	p.knowledge.changes.Clusters.On(changes.Added|changes.Deleted|changes.Readiness|changes.Facts, func(context.Context, changes.Cluster) { live.ChangedEverywhere() })
}

// last returns the object after a change, or before its deletion.
func last[T client.Object](c changes.Change[T]) T {
	if c.Parts&changes.Deleted != 0 {
		return c.Before
	}
	return c.After
}

// followPolicies makes the parts react to changes of the hub's own bindings, policies, clusters and namespaces: it
// registers a function for each change.
func (p *parts) followPolicies() {
	const lifetime = changes.Added | changes.Deleted

	bindings := p.knowledge.changes.Bindings
	bindings.On(changes.All, p.knowledge.settings.BindingChanged) // registered first, so that later handlers find the settings
	bindings.On(changes.Added|changes.Spec, p.fleet.claimed)
	bindings.On(changes.All, p.controllers.reporter.BindingChanged)
	bindings.On(changes.All, p.controllers.copies.BindingChanged)
	bindings.On(lifetime|changes.Spec, p.controllers.dispatcher.BindingChanged)
	bindings.On(changes.All, p.controllers.scheduler.BindingChanged)
	bindings.On(changes.All, p.controllers.policies.BindingChanged)
	bindings.On(changes.Added|changes.Spec, p.controllers.bundles.BindingChanged)
	bindings.On(changes.Deleted, p.controllers.bundles.BindingDeleted)
	bindings.On(changes.Deleted|changes.Spec, p.controllers.revisions.BindingChanged)
	if p.controllers.protection != nil {
		bindings.On(changes.All, p.controllers.protection.BindingChanged)
	}
	if p.controllers.decisions != nil {
		bindings.On(lifetime|changes.Spec, p.controllers.decisions.BindingChanged)
		p.knowledge.changes.Placements.On(lifetime, p.controllers.decisions.PlacementChanged)
	}
	p.controllers.scheduler.CountWhen(bindings.Await)

	placements := p.knowledge.changes.Placements
	placements.On(changes.Spec, p.controllers.reporter.PlacementChanged)
	placements.On(lifetime, p.controllers.copies.PlacementChanged)
	placements.On(lifetime|changes.Spec, p.controllers.dispatcher.PlacementChanged)
	placements.On(lifetime|changes.Spec|changes.Ending|changes.Verbs, p.controllers.scheduler.PlacementChanged)
	placements.On(changes.All, p.controllers.policies.PlacementChanged)

	bundles := p.knowledge.changes.Bundles
	bundles.On(lifetime|changes.Spec|changes.Ending|changes.Labels|changes.Verbs, p.controllers.bundles.BundleChanged)
	bundles.On(changes.Deleted|changes.Ending|changes.Verbs, p.controllers.scheduler.BundleChanged)
	bundles.On(changes.All, p.controllers.policies.BundleChanged)

	records := p.knowledge.changes.SetRollouts
	records.On(changes.Deleted|changes.Spec, p.controllers.revisions.SetRolloutChanged)
	records.On(changes.Deleted|changes.Spec, p.controllers.bundles.SetRolloutChanged)
	records.On(lifetime|changes.Spec, p.controllers.scheduler.SetRolloutChanged)
	records.On(changes.Spec, p.controllers.dispatcher.SetRolloutChanged)
	records.On(changes.Deleted|changes.Spec, p.controllers.policies.SetRolloutChanged)

	overrides := p.knowledge.changes.OverridePolicies
	overrides.On(lifetime|changes.Spec, p.controllers.dispatcher.OverridePolicyChanged)
	overrides.On(lifetime|changes.Spec|changes.Ending, p.controllers.scheduler.OverridePolicyChanged)
	overrides.On(changes.All, p.controllers.policies.OverridePolicyChanged)

	clusters := p.knowledge.changes.Clusters
	p.process.clusters.Follow(clusters) // registered first, so that later handlers find the change
	clusters.On(lifetime, p.process.coordinator.ClusterChanged)
	clusters.On(changes.Deleted|changes.Readiness, p.controllers.reporter.ClusterChanged)
	clusters.On(changes.Facts|changes.Served|changes.AllowedNamespaces, p.controllers.dispatcher.ClusterChanged)
	clusters.On(changes.All, p.controllers.scheduler.ClusterChanged)
	clusters.On(lifetime|changes.Facts|changes.Region, p.controllers.policies.ClusterChanged)

	namespaces := p.knowledge.changes.Namespaces
	namespaces.On(changes.Labels, p.controllers.dispatcher.NamespaceChanged)
	namespaces.On(lifetime|changes.Labels, p.controllers.scheduler.NamespaceChanged)
	namespaces.On(changes.Labels, p.controllers.policies.NamespaceChanged)
	namespaces.On(changes.Added, p.controllers.bundles.NamespaceAdded)
}

// followTemplates makes the parts react to changes of hub objects and their definitions. The scheduler, the policies,
// the bundles and the protection register with the store themselves.
func (p *parts) followTemplates(ctx context.Context) {
	// listed is false while the watch delivers the first list of the object's kind. The objects of this list have not
	// changed, and thousands of them must not delay later changes.
	listed := func(id hubv1.ObjectIdentity) bool {
		state, _ := p.knowledge.store.StateOf(id)
		return state.Delivered
	}
	p.knowledge.store.OnChange(func(id hubv1.ObjectIdentity) {
		if listed(id) {
			p.controllers.dispatcher.WakeObject(ctx, id)
			p.controllers.reporter.WakeObject(id)
		}
	})
	// If only the status of a hub object changes, no copy is written, because copies do not contain the status. Only the
	// reporter is called.
	p.knowledge.store.OnStatus(func(id hubv1.ObjectIdentity) {
		if listed(id) {
			p.controllers.reporter.WakeObject(id)
		}
	})
	p.knowledge.store.OnState(func(gk schema.GroupKind) {
		go func() {
			p.controllers.dispatcher.WakeKind(ctx, gk)
			for _, id := range p.knowledge.store.List(gk) {
				p.controllers.reporter.WakeObject(id)
			}
		}()
	})
	p.knowledge.definitions.OnChange(func(kind schema.GroupKind, before, after *catalog.Definition) {
		if !after.SameVersions(before) { // copies must be sent at other versions
			p.controllers.scheduler.WakeKind(kind)
			p.controllers.dispatcher.WakeKind(ctx, kind)
		}
		for _, id := range p.knowledge.store.List(kind) {
			p.controllers.reporter.WakeObject(id) // the schema determines the merge of statuses
		}
		if !before.SameConventions(after) {
			p.fleet.rereadKind(kind)
		}
	})
}

// followLinks makes the parts react when the connection to a member becomes ready or fails.
func (p *parts) followLinks(ctx context.Context) {
	p.process.links.LookFor(p.controllers.scheduler.Wanted)
	p.fleet.start = p.controllers.dispatcher.Engage
	seen := &linkLog{links: p.process.links, last: map[string]string{}}
	p.process.links.OnChange(func(cluster string) {
		p.controllers.members.Wake(cluster)
		moved, ready := seen.moved(cluster)
		if !moved {
			return // only facts changed on which no binding depends
		}
		p.controllers.reporter.WakeCluster(cluster)
		if ready {
			p.fleet.resume(cluster)
			p.controllers.dispatcher.Resume(ctx, cluster)
		}
	})
}

// followMembers makes the parts react to changes of copies on members, and of the kinds that members serve.
func (p *parts) followMembers() {
	p.fleet.maker.wanted = p.controllers.scheduler.Wanted
	p.fleet.maker.wakes = memberWakes{
		kind: func(ctx context.Context, cluster string, gk schema.GroupKind) {
			p.controllers.dispatcher.WakeKind(ctx, gk, cluster)
		},
		watch: p.controllers.reporter.WakeKind,
		copied: func(cluster string, o member.Observation, c copyChange) {
			// The hub object is identified by the kind and the name of its copy, because the owner annotation of the copy may
			// have been removed.
			id := hubv1.ObjectIdentity{Group: o.GVK.Group, Kind: o.GVK.Kind, Namespace: o.Namespace, Name: o.Name}
			switch c {
			case copyGone: // before the reporter wakes, so that the row shows the deletion
				p.controllers.dispatcher.Vanished(cluster, id.BindingKey(), o)
			case copyContent:
				p.controllers.dispatcher.Observed(cluster, id.BindingKey(), o)
			case copyStatus:
			}
			p.controllers.dispatcher.HealthSeen(cluster, o)
			p.controllers.reporter.Wake(id.BindingKey(), cluster)
		},
	}
}

// followDecisions makes the parts react to the scheduler's decisions, to changes of the wanted kinds, and to removals
// that the hub holds until a user confirms them.
func (p *parts) followDecisions() {
	p.controllers.scheduler.OnDecision(p.controllers.reporter.WakeDecided)
	p.controllers.revisions.OnLost(p.controllers.scheduler.RevisionsLost)
	p.controllers.revisions.OnSetLost(p.controllers.bundles.SetsLost)
	p.controllers.scheduler.OnRemoval(p.controllers.policies.WakeHolder)
	p.controllers.scheduler.OnWanted(func(kinds []schema.GroupKind) {
		p.knowledge.kinds.Expect(kinds)
		p.fleet.expect(kinds)
		p.process.links.Look()
	})
}

// linkLog remembers the last status and reason of each link, which is the hub's connection to a member. Bindings depend
// only on the status and the reason, so that other changes of a link are ignored.
type linkLog struct {
	links member.Links

	mu   sync.Mutex
	last map[string]string
}

// moved reports whether the link (the hub's connection to the member) has become ready, has gone down, or has another
// reason for being down than at the last call. ready reports whether the link is ready now.
func (l *linkLog) moved(cluster string) (moved, ready bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.links.State(cluster) // read under the lock, so that the last state read is stored last
	now := string(s.Ready) + " " + s.Reason
	if !ok {
		delete(l.last, cluster)
		return true, false
	}
	moved = l.last[cluster] != now
	l.last[cluster] = now
	return moved, s.Ready == metav1.ConditionTrue
}
