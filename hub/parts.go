package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/chart/child"
	"github.com/hanse-dev/hanse/hub/admission/protect"
	"github.com/hanse-dev/hanse/hub/bundles"
	"github.com/hanse-dev/hanse/hub/bundles/fetch"
	"github.com/hanse-dev/hanse/hub/console"
	"github.com/hanse-dev/hanse/hub/dispatch"
	"github.com/hanse-dev/hanse/hub/dispatch/epochs"
	"github.com/hanse-dev/hanse/hub/events"
	"github.com/hanse-dev/hanse/hub/inventory"
	"github.com/hanse-dev/hanse/hub/membership"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/hub/report"
	"github.com/hanse-dev/hanse/hub/report/policies"
	"github.com/hanse-dev/hanse/hub/schedule"
	"github.com/hanse-dev/hanse/hub/store/catalog"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/hub/store/revisions"
	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/hub/store/templates"
	"github.com/hanse-dev/hanse/hub/tunnel"
	"github.com/hanse-dev/hanse/hub/views"
	"github.com/hanse-dev/hanse/member/discovery"
)

// parts has all parts of the hub. Each part is built from the parts above it.
type parts struct {
	process     *process
	knowledge   *knowledge
	fleet       *fleet
	controllers *controllers
}

// knowledge has the parts that read the hub's own objects and kinds.
type knowledge struct {
	changes      *changes.Feed
	store        *templates.Store
	definitions  *catalog.Catalog
	kinds        *discovery.Kinds // kinds that the hub serves
	settings     *report.StatusSettings
	epochs       *epochs.Keeper
	runWorkloads func() bool // whether the hub would itself run the objects that are placed on members
}

// controllers are the parts that decide, write to members, and report statuses.
type controllers struct {
	members    *membership.Reconciler
	unclaimed  *membership.Unclaimed
	scheduler  *schedule.Scheduler
	reporter   *report.Reporter
	copies     *report.Copies
	dispatcher *dispatch.Dispatcher
	revisions  *revisions.Store
	policies   *policies.Controllers
	bundles    *bundles.Controller
	protection *protect.Keeper // nil if no names are protected
	notifier   *events.Notifier
	console    *console.Console     // nil if it is turned off
	decisions  *inventory.Decisions // nil if nothing is published
}

func newParts(ctx context.Context, p *process) (*parts, error) {
	k, err := newKnowledge(ctx, p)
	if err != nil {
		return nil, err
	}
	f := newFleet(p, k)
	c, err := newControllers(p, k, f)
	if err != nil {
		return nil, err
	}
	return &parts{process: p, knowledge: k, fleet: f, controllers: c}, nil
}

func newKnowledge(ctx context.Context, p *process) (*knowledge, error) {
	store, err := templates.New(p.mgr.GetConfig(), p.mgr.GetAPIReader(), p.options.Namespace, p.options.Objects.FederatedNamespaces)
	if err != nil {
		return nil, err
	}
	kinds, err := discovery.NewForConfig(ctx, p.mgr.GetConfig(), p.mgr.GetConfig(), nil, func(schema.GroupKind) {}, func() {})
	if err != nil {
		return nil, err
	}
	runWorkloads, err := scopes.HubRunsWorkloads(ctx, p.mgr.GetAPIReader())
	if err != nil {
		return nil, err
	}
	return &knowledge{
		changes: changes.NewFeed(), store: store, kinds: kinds, settings: report.NewStatusSettings(),
		definitions: catalog.New(p.mgr.GetAPIReader(), p.mgr.GetRESTMapper()),
		epochs: epochs.New(epochs.Options{
			Reader: p.mgr.GetAPIReader(), Client: p.mgr.GetClient(),
			ConfigMap: types.NamespacedName{Namespace: p.options.Namespace, Name: hubv1.EpochsConfigMap},
		}),
		runWorkloads: runWorkloads,
	}, nil
}

func newControllers(p *process, k *knowledge, f *fleet) (*controllers, error) {
	notifier := events.New(events.Options{
		Client: p.mgr.GetClient(), Scheme: p.mgr.GetScheme(), Namespace: p.options.Namespace, Hub: string(p.hub.UID), Replica: p.host, Proxy: p.options.Proxy,
		Events: events.Logged(p.mgr.GetEventRecorder("hanse"), p.mgr.GetScheme(), p.mgr.GetLogger().WithName("events")),
	})
	recorder := notifier.Recorder()
	failover := p.options.Limits.Failover.WithDefaults()
	failover.Confirmed = p.held.Confirmed
	pacer := pace.New(nil)

	c := &controllers{
		copies: report.NewCopies(p.clusters), notifier: notifier,
		members: membership.New(p.mgr.GetClient(), p.mgr.GetAPIReader(), p.clusters, p.held, string(p.hub.UID), failover.Grace),
	}
	c.members.KeepTokens(f.tokensOf, recorder)
	c.unclaimed = c.members.CountUnclaimed(f.copies)
	uncached, err := client.NewWithWatch(p.mgr.GetConfig(), client.Options{
		HTTPClient: p.mgr.GetHTTPClient(), Scheme: p.mgr.GetScheme(), Mapper: p.mgr.GetRESTMapper(),
	})
	if err != nil {
		return nil, fmt.Errorf("making the client that watches the parts of revisions: %w", err)
	}
	stored := revisions.New(revisions.Options{Client: p.mgr.GetClient(), Reader: uncached, Namespace: p.options.Namespace, Key: p.hub.Key})
	c.revisions = stored
	c.scheduler = schedule.New(schedule.Options{
		Client: p.mgr.GetClient(), APIReader: p.mgr.GetAPIReader(), Templates: k.store, Recorder: recorder,
		Kinds: schedule.Kinds{
			HubRunsWorkloads: k.runWorkloads, ScalePath: k.definitions.ScalePath, HubObject: k.definitions.HubObject, Rank: dispatch.Rank,
		},
		Rollouts: schedule.Rollouts{
			Revisions: stored, Sets: stored, Namespace: p.options.Namespace, Key: p.hub.Key, DeniedMetadataPrefixes: p.options.Objects.DeniedMetadataPrefixes,
			SetsBegin: func() bool { return p.coordinator.EveryReplica(hubv1.SetsAnnotation, hubv1.SetsVersion) },
		},
		Failover: failover, Guard: p.options.Limits.Guard, Pacer: pacer, Tracer: p.tracer, Clusters: p.clusters,
	})
	c.reporter, err = report.New(report.Options{
		Client: p.mgr.GetClient(), HubConfig: p.mgr.GetConfig(),
		Sources: report.Sources{
			Definitions: k.definitions, Fleet: f, Links: p.links, Templates: k.store, Decisions: c.scheduler, Conventions: k.definitions.Learn,
		},
		Shard:     report.Shard{Holds: p.coordinator.Holds, IsHub: c.members.IsHub},
		Withdrawn: c.scheduler.Withdrawn, Events: recorder, Pacer: pacer, HubRunsWorkloads: k.runWorkloads,
		Converged: c.copies.Converged, Tracer: p.tracer,
	})
	if err != nil {
		return nil, err
	}
	c.dispatcher = dispatch.New(dispatch.Options{
		Client: p.mgr.GetClient(), APIReader: p.mgr.GetAPIReader(), Fleet: f, Templates: k.store, Recorder: c.reporter,
		HubObject:              k.definitions.HubObject,
		Revisions:              stored,
		Sets:                   stored,
		Namespace:              p.options.Namespace,
		DeniedMetadataPrefixes: p.options.Objects.DeniedMetadataPrefixes,
		Key:                    p.hub.Key,
		// Only the schema of the member decides whether a field exists: an override may set a field that only the newer
		// definition on the member has.
		Misfits: k.kinds.DeclaredMisfits,
		Schema:  k.kinds.Schema,
		Epochs:  k.epochs,
		Tracer:  p.tracer,
	})
	c.policies = policies.New(policies.Options{
		Client: p.mgr.GetClient(), Templates: k.store, HubRunsWorkloads: k.runWorkloads, ScalePath: k.definitions.ScalePath, Events: recorder,
		Removals: c.scheduler, Pacer: pacer, Sets: stored, Namespace: p.options.Namespace, Clusters: p.clusters,
	})
	c.bundles = bundles.New(bundles.Options{
		Client: p.mgr.GetClient(), APIReader: p.mgr.GetAPIReader(), Mapper: p.mgr.GetRESTMapper(), Templates: k.store, Events: recorder,
		Namespace: p.options.Namespace, Revisions: stored, Sets: stored, Key: p.hub.Key, Render: child.Render, PerNamespace: p.options.Limits.ManifestsPerNamespace,
		Charts: fetch.New(fetch.Options{Repositories: p.options.Repositories, Proxy: p.options.Proxy}), CheckVersions: p.options.CheckChartVersions,
	})
	if p.options.Limits.ProtectedCopies >= 0 {
		c.protection = protect.New(protect.Options{
			Client: p.mgr.GetClient(), APIReader: p.mgr.GetAPIReader(), Mapper: p.mgr.GetRESTMapper(), Templates: k.store,
			Namespace: p.options.Namespace, Limit: p.options.Limits.ProtectedCopies, Counted: k.changes.Bindings.Listed,
		})
	}
	if p.options.InventoryNamespace != "" {
		c.decisions = inventory.NewDecisions(p.mgr.GetClient(), p.options.InventoryNamespace)
	}
	if p.options.servesConsole() {
		c.console, err = console.New(console.Options{
			OIDC: p.options.Console.OIDC, Proxy: p.options.Proxy,
			Config: p.mgr.GetConfig(), Mapper: p.mgr.GetRESTMapper(), Key: p.certificate.SessionKey, Logger: p.mgr.GetLogger().WithName("console"),
			Views: p.answersOfViews(), Bindings: p.mgr.GetCache(),
		})
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

// add adds the parts to the manager.
func (p *parts) add(ctx context.Context) error {
	for _, add := range []func() error{
		func() error { return p.controllers.scheduler.SetupWithManager(p.process.mgr) },
		func() error { return p.controllers.reporter.SetupWithManager(p.process.mgr) },
		func() error { return p.controllers.members.SetupWithManager(p.process.mgr) },
		func() error { return p.controllers.policies.SetupWithManager(ctx, p.process.mgr) },
		func() error { return p.controllers.bundles.SetupWithManager(p.process.mgr) },
		p.addProtection,
		func() error { return p.controllers.notifier.SetupWithManager(ctx, p.process.mgr) },
		p.addCertificate,
		func() error { return p.knowledge.changes.Watch(ctx, p.process.mgr.GetCache()) },
		func() error { return p.knowledge.definitions.Watch(ctx, p.process.mgr.GetCache()) },
		func() error { return p.knowledge.epochs.Watch(ctx, p.process.mgr.GetCache()) },
		func() error { return p.process.mgr.Add(p.knowledge.epochs) },
		func() error { return p.process.mgr.Add(p.controllers.unclaimed) },
		func() error { return p.process.mgr.Add(manager.RunnableFunc(p.knowledge.epochs.Lead)) },
		func() error { return p.process.mgr.Add(manager.RunnableFunc(p.keepKey)) },
		func() error { return p.process.mgr.Add(manager.RunnableFunc(lead)) },
		func() error { return p.process.mgr.Add(manager.RunnableFunc(p.countCopies)) },
		func() error {
			return p.process.mgr.Add(manager.RunnableFunc(membership.Readiness{Store: p.process.clusters}.Lead))
		},
		func() error { return p.process.mgr.Add(manager.RunnableFunc(p.sweepRevisions)) },
		func() error {
			return addAdmission(p.process.mgr, p.process.options, p.knowledge.store, p.knowledge.kinds, p.process.certificate)
		},
		p.addViews,
		p.addConsole,
		p.addTunnel,
		p.addInventory,
		func() error { return p.process.mgr.Add(p.knowledge.store) },
		p.addGrants,
		func() error { return p.process.mgr.Add(everywhere(p.work)) },
	} {
		if err := add(); err != nil {
			return err
		}
	}
	return nil
}

// work connects to the members that this replica serves (its shard), until ctx ends.
func (p *parts) work(ctx context.Context) error {
	p.knowledge.changes.Bindings.Await(ctx) // wait for the placements' health settings
	p.knowledge.epochs.Ready(ctx)
	return p.process.coordinator.Run(ctx, func(ctx context.Context) error { return p.process.links.Start(ctx, p.fleet.engage) })
}

// sweepRevisions runs in the leader until ctx ends. It deletes each stored part of a revision (its template or its
// override rules) that no binding names.
func (p *parts) sweepRevisions(ctx context.Context) error {
	p.knowledge.changes.Bindings.Await(ctx)
	return p.controllers.revisions.Lead(ctx)
}

// keepKey runs in the leader until ctx ends. It creates the Secret with the key for digests again, if a user deletes
// it.
func (p *parts) keepKey(ctx context.Context) error {
	return p.process.hub.KeepKey(ctx, p.process.mgr.GetClient(), p.process.options.Namespace)
}

func (p *parts) addCertificate() error {
	if p.process.certificate == nil {
		return nil
	}
	return p.process.certificate.SetupWithManager(p.process.mgr)
}

func (p *parts) addProtection() error {
	if p.controllers.protection == nil {
		return nil
	}
	return p.controllers.protection.SetupWithManager(p.process.mgr)
}

// addConsole serves the pages for browsers in every replica.
func (p *parts) addConsole() error {
	if p.controllers.console == nil {
		return nil
	}
	server := &console.Server{Address: p.process.options.Console.Address, Console: p.controllers.console}
	if p.process.options.Console.Secure {
		server.GetCertificate = p.process.certificate.GetCertificate
	}
	if err := p.process.mgr.Add(server); err != nil {
		return fmt.Errorf("adding the console: %w", err)
	}
	return p.process.mgr.Add(p.controllers.console.Live)
}

// addTunnel accepts agents of members in every replica.
func (p *parts) addTunnel() error {
	if p.process.tunnel == nil {
		return nil
	}
	p.process.tunnel.Apply = p.apply
	return p.process.mgr.Add(p.process.tunnel)
}

// apply passes the request of an agent for its approval on to package membership.
func (p *parts) apply(ctx context.Context, token string, a tunnel.Applicant) error {
	err := p.controllers.members.RecordAgent(ctx, a.Cluster, token, hubv1.AgentRequest{
		Key: a.Key, Address: a.Address, ClusterID: a.ClusterID, Kubernetes: a.Kubernetes, Version: a.Version,
	})
	switch {
	case errors.Is(err, membership.ErrTokenUnknown):
		return tunnel.ErrTokenUnknown
	case errors.Is(err, membership.ErrTokenExpired):
		return tunnel.ErrTokenExpired
	case errors.Is(err, membership.ErrTokenUsed):
		return tunnel.ErrTokenUsed
	}
	return err
}

// addInventory publishes the members as ClusterProfiles, and the decisions of placements.
func (p *parts) addInventory() error {
	if p.process.options.InventoryNamespace == "" {
		return nil
	}
	if err := p.process.mgr.Add(manager.RunnableFunc(p.controllers.decisions.Lead)); err != nil {
		return fmt.Errorf("adding the decisions of placements: %w", err)
	}
	return inventory.New(p.process.mgr.GetClient(), p.process.options.InventoryNamespace).SetupWithManager(p.process.mgr)
}

// answersOfViews returns the handler for the console's requests to view objects on members. The handler passes each
// request to the handler that addViews makes later. The result is nil if views are turned off.
func (p *process) answersOfViews() http.Handler {
	if p.views == nil {
		return nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.views.Handler.ServeHTTP(w, r) })
}

// addViews adds the service through which users view objects on members.
func (p *parts) addViews() error {
	if p.process.views == nil {
		return nil
	}
	p.process.views.Handler = views.New(views.Options{
		Client: p.process.mgr.GetClient(), APIReader: p.process.mgr.GetAPIReader(), Mapper: p.process.mgr.GetRESTMapper(),
		Members: views.MembersOf(p.fleet), Intent: p.controllers.dispatcher.Intent, NextIntent: p.controllers.dispatcher.NextIntent, Adopt: p.controllers.dispatcher.Adopt,
		HubObject: p.knowledge.definitions.HubObject,
		Epochs:    p.knowledge.epochs, Rank: dispatch.Rank,
		Holder: func(cluster string) views.Holder {
			if p.process.coordinator.Holds(cluster) {
				return views.Holder{Here: true}
			}
			return views.HolderOf(p.process.coordinator.Holder(cluster))
		},
		Logger: p.process.mgr.GetLogger().WithName("view"),
	})
	return p.process.mgr.Add(p.process.views)
}

// everywhere is a function that the manager runs in every replica, not only in the leader.
type everywhere func(context.Context) error

// Start implements manager.Runnable.
func (f everywhere) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (everywhere) NeedLeaderElection() bool { return false }
