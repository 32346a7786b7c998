package hub

import (
	"context"
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
	"github.com/hanse-dev/hanse/hub/views"
	"github.com/hanse-dev/hanse/member/discovery"
)

// parts has all parts of the hub. Each part is built from the parts above it.
type parts struct {
	*process
	*knowledge
	fleet *fleet
	*controllers
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
	console    *console.Console // nil if it is turned off
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
	store, err := templates.New(p.mgr.GetConfig(), p.mgr.GetAPIReader(), p.options.Namespace, p.options.FederatedNamespaces)
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
	failover := p.options.Failover.WithDefaults()
	failover.Confirmed = p.held.Confirmed
	pacer := pace.New(nil)

	c := &controllers{
		copies: report.NewCopies(p.mgr.GetClient()), notifier: notifier,
		members: membership.New(p.mgr.GetClient(), p.mgr.GetAPIReader(), p.held, string(p.hub.UID), failover.Grace),
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
		Client: p.mgr.GetClient(), APIReader: p.mgr.GetAPIReader(), Templates: k.store, Recorder: recorder, HubRunsWorkloads: k.runWorkloads,
		ScalePath: k.definitions.ScalePath, HubObject: k.definitions.HubObject, Failover: failover, Guard: p.options.Guard, Pacer: pacer,
		Rank:      dispatch.Rank,
		Revisions: stored, Key: p.hub.Key, DeniedMetadataPrefixes: p.options.DeniedMetadataPrefixes, Tracer: p.tracer,
	})
	c.reporter, err = report.New(report.Options{
		Client: p.mgr.GetClient(), Definitions: k.definitions, HubConfig: p.mgr.GetConfig(), Fleet: f, Links: p.links,
		Templates: k.store, Decisions: c.scheduler, Withdrawn: c.scheduler.Withdrawn, Events: recorder, Pacer: pacer,
		Holds: p.coordinator.Holds, IsHub: c.members.IsHub, HubRunsWorkloads: k.runWorkloads,
		Conventions: k.definitions.Learn, Converged: c.copies.Converged, Tracer: p.tracer,
	})
	if err != nil {
		return nil, err
	}
	c.dispatcher = dispatch.New(dispatch.Options{
		Client: p.mgr.GetClient(), APIReader: p.mgr.GetAPIReader(), Fleet: f, Templates: k.store, Recorder: c.reporter,
		HubObject:              k.definitions.HubObject,
		Revisions:              stored,
		DeniedMetadataPrefixes: p.options.DeniedMetadataPrefixes,
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
		Removals: c.scheduler, Pacer: pacer,
	})
	c.bundles = bundles.New(bundles.Options{
		Client: p.mgr.GetClient(), APIReader: p.mgr.GetAPIReader(), Mapper: p.mgr.GetRESTMapper(), Templates: k.store, Events: recorder,
		Namespace: p.options.Namespace, Revisions: stored, Render: child.Render, PerNamespace: p.options.ManifestsPerNamespace,
		Charts: fetch.New(fetch.Options{Repositories: p.options.Repositories, Proxy: p.options.Proxy}),
	})
	if p.options.ProtectedCopies >= 0 {
		c.protection = protect.New(protect.Options{
			Client: p.mgr.GetClient(), APIReader: p.mgr.GetAPIReader(), Mapper: p.mgr.GetRESTMapper(), Templates: k.store,
			Namespace: p.options.Namespace, Limit: p.options.ProtectedCopies, Counted: k.changes.Bindings.Listed,
		})
	}
	if p.options.servesConsole() {
		c.console, err = console.New(console.Options{
			OIDC: p.options.ConsoleOIDC, Proxy: p.options.Proxy,
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
		func() error { return p.scheduler.SetupWithManager(p.mgr) },
		func() error { return p.reporter.SetupWithManager(p.mgr) },
		func() error { return p.members.SetupWithManager(p.mgr) },
		func() error { return p.policies.SetupWithManager(ctx, p.mgr) },
		func() error { return p.bundles.SetupWithManager(p.mgr) },
		p.addProtection,
		func() error { return p.notifier.SetupWithManager(ctx, p.mgr) },
		p.addCertificate,
		func() error { return p.changes.Watch(ctx, p.mgr.GetCache()) },
		func() error { return p.definitions.Watch(ctx, p.mgr.GetCache()) },
		func() error { return p.epochs.Watch(ctx, p.mgr.GetCache()) },
		func() error { return p.mgr.Add(p.epochs) },
		func() error { return p.mgr.Add(p.unclaimed) },
		func() error { return p.mgr.Add(manager.RunnableFunc(p.epochs.Lead)) },
		func() error { return p.mgr.Add(manager.RunnableFunc(p.keepKey)) },
		func() error { return p.mgr.Add(manager.RunnableFunc(lead)) },
		func() error { return p.mgr.Add(manager.RunnableFunc(p.countCopies)) },
		func() error {
			return p.mgr.Add(manager.RunnableFunc(membership.Readiness{Reader: p.mgr.GetClient()}.Lead))
		},
		func() error { return p.mgr.Add(manager.RunnableFunc(p.sweepRevisions)) },
		func() error { return addAdmission(p.mgr, p.options, p.store, p.kinds, p.certificate) },
		p.addViews,
		p.addConsole,
		func() error { return p.mgr.Add(p.store) },
		func() error { return p.mgr.Add(everywhere(p.work)) },
	} {
		if err := add(); err != nil {
			return err
		}
	}
	return nil
}

// work connects to the members that this replica serves (its shard), until ctx ends.
func (p *parts) work(ctx context.Context) error {
	p.changes.Bindings.Await(ctx) // wait for the placements' health settings
	p.epochs.Ready(ctx)
	return p.coordinator.Run(ctx, func(ctx context.Context) error { return p.links.Start(ctx, p.fleet.engage) })
}

// sweepRevisions runs in the leader until ctx ends. It deletes each stored part of a revision (its template or its
// override rules) that no binding names.
func (p *parts) sweepRevisions(ctx context.Context) error {
	p.changes.Bindings.Await(ctx)
	return p.revisions.Lead(ctx)
}

// keepKey runs in the leader until ctx ends. It creates the Secret with the key for digests again, if a user deletes
// it.
func (p *parts) keepKey(ctx context.Context) error {
	return p.hub.KeepKey(ctx, p.mgr.GetClient(), p.options.Namespace)
}

func (p *parts) addCertificate() error {
	if p.certificate == nil {
		return nil
	}
	return p.certificate.SetupWithManager(p.mgr)
}

func (p *parts) addProtection() error {
	if p.protection == nil {
		return nil
	}
	return p.protection.SetupWithManager(p.mgr)
}

// addConsole serves the pages for browsers in every replica.
func (p *parts) addConsole() error {
	if p.console == nil {
		return nil
	}
	server := &console.Server{Address: p.options.ConsoleAddress, Console: p.console}
	if p.options.ConsoleSecure {
		server.GetCertificate = p.certificate.GetCertificate
	}
	if err := p.mgr.Add(server); err != nil {
		return fmt.Errorf("adding the console: %w", err)
	}
	return p.mgr.Add(p.console.Live)
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
	if p.views == nil {
		return nil
	}
	p.views.Handler = views.New(views.Options{
		Client: p.mgr.GetClient(), APIReader: p.mgr.GetAPIReader(), Mapper: p.mgr.GetRESTMapper(),
		Members: views.MembersOf(p.fleet), Intent: p.dispatcher.Intent, Adopt: p.dispatcher.Adopt,
		HubObject: p.definitions.HubObject,
		Epochs:    p.epochs, Rank: dispatch.Rank,
		Holder: func(cluster string) views.Holder {
			if p.coordinator.Holds(cluster) {
				return views.Holder{Here: true}
			}
			return views.HolderOf(p.coordinator.Holder(cluster))
		},
		Logger: p.mgr.GetLogger().WithName("view"),
	})
	return p.mgr.Add(p.views)
}

// everywhere is a function that the manager runs in every replica, not only in the leader.
type everywhere func(context.Context) error

// Start implements manager.Runnable.
func (f everywhere) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (everywhere) NeedLeaderElection() bool { return false }
