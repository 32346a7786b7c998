// Package hub is the composition root: it lists every controller of the hub and puts the two sides of each member
// together. It is the one place that sees both the doors and what is behind them.
//
//	member/connect  keeps the links             hub/membership  MemberClusters: facts and conditions
//	member/observe  watches what was sent       hub/templates   the hub's own objects of the selected kinds
//	member/apply    writes and withdraws        hub/schedule    object + policies + clusters -> binding spec
//	                                            hub/dispatch    binding -> one member, a queue for each
//	                                            hub/report      outcomes + observations -> rows, hub object's status
//	                                            hub/policystatus  what placements and override policies come to
//	                                            hub/epochs      how a restored hub tells newer copies
//	member/tokens   makes and revokes the hub's tokens
//	member/children finds what copies made      hub/shard       which replica works on which member
//	                                            hub/memberview  what users may see of members
//	                                            hub/admission   which policies the hub takes
//	                                            hub/certificate by which the API server knows who reviews them
//	                                            hub/protect     what the API server does not delete without being told
package hub

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/catalog"
	"github.com/hanse-dev/hanse/hub/certificate"
	"github.com/hanse-dev/hanse/hub/dispatch"
	"github.com/hanse-dev/hanse/hub/epochs"
	"github.com/hanse-dev/hanse/hub/membership"
	"github.com/hanse-dev/hanse/hub/memberview"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/hub/policystatus"
	"github.com/hanse-dev/hanse/hub/protect"
	"github.com/hanse-dev/hanse/hub/report"
	"github.com/hanse-dev/hanse/hub/schedule"
	"github.com/hanse-dev/hanse/hub/shard"
	"github.com/hanse-dev/hanse/hub/templates"
	"github.com/hanse-dev/hanse/kindwatch"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/apply"
	"github.com/hanse-dev/hanse/member/children"
	"github.com/hanse-dev/hanse/member/connect"
	"github.com/hanse-dev/hanse/member/health"
	"github.com/hanse-dev/hanse/member/observe"
	"github.com/hanse-dev/hanse/member/tokens"
)

// Options of the hub process.
type Options struct {
	// Namespace of the Leases and of the Secrets with member kubeconfigs.
	Namespace string
	// LeaderElection makes the process decide where objects go only while it holds the Lease hanse-hub.
	LeaderElection bool
	// Version of the hub, which the Lease hanse-hub has as the label app.kubernetes.io/version while this process leads;
	// empty: no label.
	Version string
	// Identity tells replicas apart, such as the pod's UID; random if empty. See shard.Options.
	Identity string
	// HealthAddress and MetricsAddress are host:port; "0" turns the page off.
	HealthAddress, MetricsAddress string
	// MetricsSecure serves metrics over TLS to clients that may get the path /metrics, with a certificate for MetricsName
	// under the CA in the Secret WebhookSecret.
	MetricsSecure bool
	// Failover limits what is moved from clusters that are away. Its grace period is also how long a cluster may not
	// answer before it is tainted NoExecute. Confirmed is not to be set.
	Failover schedule.Failover
	// Proxy of connections to members; nil if there is none.
	Proxy func(*http.Request) (*url.URL, error)
	// Guard limits how many copies decisions delete at once.
	Guard schedule.Guard
	// DeniedMetadataPrefixes are label and annotation prefixes that never travel, beside the built-in ones.
	DeniedMetadataPrefixes []string
	// FederatedNamespaces are the namespaces in which objects of a resource are read; a resource that is not named is read
	// in all of them.
	FederatedNamespaces map[schema.GroupResource][]string
	// WebhookAddress is host:port of the webhook that reviews policies; "0" or empty turns it off. WebhookNames are the
	// DNS names by which the API server calls it.
	WebhookAddress string
	WebhookNames   []string
	// ViewAddress is host:port of the views that users have of members; "0" or empty turns them off. ViewHost is where
	// other replicas reach it; empty means there, too.
	ViewAddress, ViewHost string
	// ProtectedCopies is the number of copies above which a namespace or a CustomResourceDefinition is protected from
	// deletion; below zero none is.
	ProtectedCopies int
}

// LeaseName is the name of the Lease that the leading process holds.
const LeaseName = "hanse-hub"

// Run runs the hub until ctx ends, or until it loses the lead or its part in the work: then it has to be called in
// another process, which knows nothing old.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	known, err := awaitHub(ctx, config, o.Namespace, awaitYes)
	if err != nil || known.uid == "" {
		return err
	}
	f := &fence{now: time.Now, lapsed: func() bool { return false }}
	var keeper *certificate.Keeper // of the metrics' certificate; it needs the manager
	mgr, err := newManager(config, o, f, func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return keeper.GetCertificate(hello) })
	if err != nil {
		return err
	}
	if keeper, err = addCertificate(mgr, o); err != nil {
		return err
	}
	views, err := listenForViews(o)
	if err != nil {
		return err
	}
	shards := &shards{}
	if err := shards.coordinate(config, mgr, o, views.Annotations()); err != nil {
		return err
	}
	f.lapsed = shards.coordinator.Lapsed
	if err := addControllers(ctx, mgr, o, known, shards, views, keeper); err != nil {
		return err
	}
	err = mgr.Start(ctx)
	// A process that has lost the lead ends without waiting for anything. Others shall not wait for its Lease to run out.
	if left := shards.coordinator.Leave(context.WithoutCancel(ctx)); err == nil {
		err = left
	}
	if err != nil {
		return fmt.Errorf("running the hub: %w", err)
	}
	return nil
}

func newManager(config *rest.Config, o Options, f *fence, certificateOf func(*tls.ClientHelloInfo) (*tls.Certificate, error)) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, hubv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering kinds: %w", err)
		}
	}
	config = rest.CopyConfig(config)
	config.QPS = -1 // the API server's priority and fairness decides
	lease := rest.CopyConfig(config)
	lease.Wrap(f.renewals)
	config.Wrap(f.guard)
	metrics := metricsserver.Options{BindAddress: o.MetricsAddress}
	if o.securesMetrics() {
		metrics.SecureServing = true
		metrics.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.MinVersion, c.GetCertificate = tls.VersionTLS12, certificateOf }}
		metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	mgr, err := manager.New(config, manager.Options{
		Scheme:                        scheme,
		Metrics:                       metrics,
		Cache:                         cacheOptions(o.Namespace),
		HealthProbeBindAddress:        o.HealthAddress,
		LeaderElection:                o.LeaderElection,
		LeaderElectionID:              LeaseName,
		LeaderElectionNamespace:       o.Namespace,
		LeaderElectionConfig:          lease, // a client of its own: load on the other cannot cost the lead
		LeaderElectionLabels:          versionLabel(o.Version),
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 ptr.To(leaseLasts),
		RenewDeadline:                 ptr.To(renewWithin),
		RetryPeriod:                   ptr.To(retryEvery),
		GracefulShutdownTimeout:       ptr.To(8 * time.Second),
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("adding the liveness probe: %w", err)
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("adding the readiness probe: %w", err)
	}
	return mgr, nil
}

// addControllers makes every part of the hub and tells each whom to wake.
func addControllers(ctx context.Context, mgr manager.Manager, o Options, facts hubFacts, shards *shards, views *memberview.Server, keeper *certificate.Keeper) error {
	hubUID := facts.uid
	store, err := templates.New(mgr.GetConfig(), mgr.GetAPIReader(), o.FederatedNamespaces)
	if err != nil {
		return err
	}
	events := loggedEvents{mgr.GetEventRecorder("hanse"), mgr.GetScheme(), mgr.GetLogger().WithName("events")}

	f := &fleet{members: map[string]member.Cluster{}}
	var scheduler *schedule.Scheduler
	links := connect.New(connect.Options{
		Scheme: mgr.GetScheme(), Logger: mgr.GetLogger().WithName("connect"), Proxy: o.Proxy, HubID: string(hubUID),
		Kinds: func() []schema.GroupKind { return scheduler.Wanted() },
	})
	f.links, shards.Links = links, links

	pacer := pace.New(nil)
	runsWorkloads := hubRunsWorkloads(ctx, mgr.GetAPIReader())
	definitions := catalog.New(mgr.GetAPIReader(), mgr.GetRESTMapper())
	scale := scalePath(definitions)
	failover := o.Failover.WithDefaults()
	failover.Confirmed = confirmed(shards)
	scheduler = schedule.New(schedule.Options{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Templates: store, Recorder: events, HubRunsWorkloads: runsWorkloads,
		ScalePath: scale, Failover: failover, Guard: o.Guard, Pacer: pacer,
	})
	policies := policystatus.New(policystatus.Options{
		Client: mgr.GetClient(), Templates: store, HubRunsWorkloads: runsWorkloads, ScalePath: scale, Events: events,
		Removals: scheduler, Pacer: pacer,
	})
	scheduler.OnRemoval(policies.WakePlacement)
	conventions := conventions{definitions}
	wishes := newWishes(f.reread)
	hubKinds, err := newHubKinds(ctx, mgr.GetConfig())
	if err != nil {
		return err
	}
	known := epochs.New(epochs.Options{
		Reader: mgr.GetAPIReader(), Client: mgr.GetClient(), ConfigMap: types.NamespacedName{Namespace: o.Namespace, Name: hubv1.EpochsConfigMap},
	})
	reporter, err := report.New(report.Options{
		Client: mgr.GetClient(), Definitions: definitions, HubConfig: mgr.GetConfig(), Fleet: f, Links: links,
		Templates: store, Decisions: scheduler, Events: events, Pacer: pacer,
		Holds: shards.Holds, IsHub: isHub(mgr.GetClient(), string(hubUID)), HubRunsWorkloads: runsWorkloads,
		Conventions: conventions.learn, Wishes: wishesOf,
	})
	if err != nil {
		return err
	}
	dispatcher := dispatch.New(dispatch.Options{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Fleet: f, Templates: store, Recorder: reporter,
		DeniedMetadataPrefixes: o.DeniedMetadataPrefixes,
		Key:                    facts.key,
		Misfits:                hubMisfits(hubKinds),
		Epochs:                 known,
	})
	known.OnRestart(func() { go dispatcher.WakeOlder(ctx) })
	members, lost := newMembers(mgr, shards, hubUID, failover.Grace, f)
	members.KeepTokens(f.tokens, events)

	followTemplates(ctx, store, dispatcher, reporter)
	followDefinitions(definitions, store, reporter, f)
	scheduler.OnDecision(reporter.WakeDecided)
	scheduler.OnWanted(func(kinds []schema.GroupKind) {
		hubKinds.Expect(groupsOf(kinds))
		f.expect(groupsOf(kinds))
		links.Look()
	})
	followLinks(ctx, links, members, reporter, f, dispatcher)
	f.join, f.start = joiner(facts, dispatcher, reporter, shards.coordinator, links, scheduler.Wanted, conventions, wishes), dispatcher.Engage

	for _, add := range []func() error{
		func() error { return scheduler.SetupWithManager(mgr) },
		func() error { return reporter.SetupWithManager(mgr) },
		func() error { return members.SetupWithManager(mgr) },
		func() error { return policies.SetupWithManager(ctx, mgr) },
		func() error { return addProtection(mgr, o, store) },
		func() error { return dispatcher.Watch(ctx, mgr.GetCache()) },
		func() error { return definitions.Watch(ctx, mgr.GetCache()) },
		func() error { return wishes.watch(ctx, mgr.GetCache()) },
		func() error { return known.Watch(ctx, mgr.GetCache()) },
		func() error { return mgr.Add(known) },
		func() error { return mgr.Add(everywhere(lost.run)) },
		func() error { return mgr.Add(manager.RunnableFunc(known.Lead)) },
		func() error { return addAdmission(mgr, o, store, hubKinds, keeper) },
		func() error { return addViews(mgr, views, f, dispatcher, known, shards) },
		func() error { return mgr.Add(store) },
		func() error {
			return mgr.Add(everywhere(func(ctx context.Context) error {
				wishes.ready(ctx)
				known.Ready(ctx)
				return shards.coordinator.Run(ctx, func(ctx context.Context) error { return links.Start(ctx, f) })
			}))
		},
	} {
		if err := add(); err != nil {
			return fmt.Errorf("adding the parts of the hub: %w", err)
		}
	}
	return nil
}

// newMembers makes what keeps MemberClusters, and what counts the copies on them that no binding claims.
func newMembers(mgr manager.Manager, shards *shards, hubUID types.UID, grace time.Duration, f *fleet) (*membership.Reconciler, *unclaimed) {
	members := membership.New(mgr.GetClient(), mgr.GetAPIReader(), shards, string(hubUID), grace)
	shards.changed = members.Wake
	lost := &unclaimed{bindings: mgr.GetClient(), members: f.copies, changed: members.Wake}
	members.CountUnclaimed(lost.of)
	return members, lost
}

// addProtection adds the keeper of the names that are protected from deletion.
func addProtection(mgr manager.Manager, o Options, store *templates.Store) error {
	if o.ProtectedCopies < 0 {
		return nil
	}
	return protect.New(protect.Options{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Mapper: mgr.GetRESTMapper(), Templates: store, Namespace: o.Namespace,
		Limit: o.ProtectedCopies,
	}).SetupWithManager(mgr)
}

// followLinks wakes what depends on a link that has changed.
func followLinks(ctx context.Context, links *connect.Provider, members *membership.Reconciler, reporter *report.Reporter, f *fleet, dispatcher *dispatch.Dispatcher) {
	seen := &linkLog{links: links, last: map[string]string{}}
	links.OnChange(func(cluster string) {
		members.Wake(cluster)
		moved, ready := seen.moved(cluster)
		if !moved {
			return // other facts, which no binding depends on
		}
		reporter.WakeCluster(cluster)
		if ready {
			f.resume(cluster)
			dispatcher.Resume(ctx, cluster)
		}
	})
}

// followTemplates wakes what follows a hub object that has changed.
func followTemplates(ctx context.Context, store *templates.Store, dispatcher *dispatch.Dispatcher, reporter *report.Reporter) {
	// A list of thousands must not hold up the changes that follow it.
	listed := func(id hubv1.ObjectIdentity) bool {
		state, _ := store.State(id.GroupKind())
		return state.Told
	}
	store.OnChange(func(id hubv1.ObjectIdentity) {
		if listed(id) {
			dispatcher.WakeObject(ctx, id)
			reporter.WakeObject(id)
		}
	})
	// No copy depends on the status, which is written for each of them.
	store.OnStatus(func(id hubv1.ObjectIdentity) {
		if listed(id) {
			reporter.WakeObject(id)
		}
	})
	store.OnState(func(gk schema.GroupKind) {
		go func() {
			dispatcher.WakeKind(ctx, gk)
			for _, id := range store.List(gk) {
				reporter.WakeObject(id)
			}
		}()
	})
}

// joiner makes the two sides of a member and starts its work.
func joiner(known hubFacts, dispatcher *dispatch.Dispatcher, reporter *report.Reporter, shards *shard.Coordinator,
	links *connect.Provider, wanted func() []schema.GroupKind, conventions conventions, wishes *wishes,
) func(context.Context, string, *connect.Cluster) (member.Cluster, error) {
	return func(ctx context.Context, name string, c *connect.Cluster) (member.Cluster, error) {
		hold := shards.Hold(name)
		if hold == nil {
			return nil, fmt.Errorf("joining cluster %q: %w", name, errFenced)
		}
		for _, config := range []*rest.Config{c.Requests, c.Watches} {
			config.Wrap(apply.KeepRetryAfter) // the queue waits, not the request inside of its deadline
			config.Wrap(func(next http.RoundTripper) http.RoundTripper { return guarded(next, hold.Valid) })
		}
		requests, err := kindwatch.NewClient(c.Requests)
		if err != nil {
			return nil, fmt.Errorf("making the client for writes: %w", err)
		}
		watches, err := kindwatch.NewClient(c.Watches)
		if err != nil {
			return nil, fmt.Errorf("making the client for watches: %w", err)
		}
		m := &memberCluster{name: name, isHub: c.ID == string(known.uid)}
		m.kinds, err = newKinds(ctx, c, func(gk schema.GroupKind) {
			m.Retry(gk)
			dispatcher.WakeKind(ctx, gk, name)
		}, func() { links.LookAgain(name) })
		if err != nil {
			return nil, err
		}
		m.kinds.Expect(groupsOf(wanted()))
		if m.Lister, err = newLister(c, m.kinds, known.uid); err != nil {
			return nil, err
		}
		m.Observer = observe.New(ctx, observe.Options{
			Cluster: name, Client: watches, HubUID: known.uid, Key: known.key, OnUse: m.kinds.Use,
			Conventions: func(gvk schema.GroupVersionKind) health.Conventions {
				c := conventions.of(gvk)
				c.HasStatus = c.HasStatus || m.kinds.HasStatus(gvk)
				return c
			},
			Wishes: wishes.of,
			Resolve: func(gvk schema.GroupVersionKind) (schema.GroupVersionResource, error) {
				m.kinds.Forget(gvk) // asked anew only at the start and after the member said that it does not serve the kind
				r, err := m.kinds.Find(gvk)
				conventions.learn(ctx, gvk)
				return r.GroupVersionResource, err
			},
			Handler: func(cluster string, o member.Observation, content, gone bool) {
				// By place and name, not by its owner annotation: that may have been removed by hand.
				id := hubv1.ObjectIdentity{Group: o.GVK.Group, Kind: o.GVK.Kind, Namespace: o.Namespace, Name: o.Name}
				switch {
				case gone: // first, so that it is known by the time the row is made
					dispatcher.Vanished(cluster, id.BindingKey(), o)
				case content:
					if state, _ := m.Observer.State(o.GVK); state.Told { // OnState wakes all of the first list
						dispatcher.Observed(cluster, id.BindingKey(), o)
					}
				}
				reporter.Wake(id.BindingKey(), cluster)
			},
			OnState: func(cluster string, gvk schema.GroupVersionKind, _ kindwatch.State) {
				go dispatcher.WakeKind(ctx, gvk.GroupKind(), cluster)
			},
		})
		m.Applier = apply.New(name, m.isHub, requests, func(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
			r, err := m.kinds.Find(gvk)
			return r.GroupVersionResource, r.Namespaced, err
		}, known.uid, known.key, m.Observer.Await)
		m.Finder = children.New(requests)
		m.tokens = tokens.New(requests, known.uid)
		return m, nil
	}
}

// everywhere runs a function in every replica.
type everywhere func(context.Context) error

// Start implements manager.Runnable.
func (f everywhere) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (everywhere) NeedLeaderElection() bool { return false }

// isHub says of a MemberCluster whether it is the hub's own cluster, also if another replica works on it.
func isHub(r client.Reader, hubID string) func(cluster string) bool {
	return func(cluster string) bool {
		var c hubv1.MemberCluster
		return r.Get(context.Background(), types.NamespacedName{Name: cluster}, &c) == nil && c.Spec.Hub && c.Status.ClusterID == hubID
	}
}

// versionLabel is the label of the Lease that says which version leads. A version that is no label value is left out.
func versionLabel(version string) map[string]string {
	if version == "" || len(validation.IsValidLabelValue(version)) > 0 {
		return nil
	}
	return map[string]string{hubv1.VersionLabel: version}
}
