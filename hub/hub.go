// Package hub is the composition root: it creates every part of the hub and connects the hub's side of each member to
// the member's side. It is the only package that imports both the interfaces of package member and their
// implementations.
//
// Run reads the identity of the hub (identity.go), creates the parts (process.go, parts.go), connects changes with the
// parts that must react to them (wakes.go), and starts the manager.
package hub

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/bundles/fetch"
	"github.com/hanse-dev/hanse/hub/console"
	"github.com/hanse-dev/hanse/hub/schedule"
	"github.com/hanse-dev/hanse/hub/tracing"
)

// Options of the hub process.
type Options struct {
	// Namespace of the Leases and of the Secrets with member kubeconfigs.
	Namespace string
	// Version of the hub. While this process leads, the Lease hanse-hub has the version in the label
	// app.kubernetes.io/version. An empty version sets no label.
	Version string
	// Identity distinguishes replicas, such as the pod's UID. The default is a random identity. See shard.Options.
	Identity string
	Manager  ManagerOptions
	Limits   Limits
	Objects  ObjectOptions
	Webhook  WebhookOptions
	View     ViewOptions
	Console  ConsoleOptions
	// TunnelAddress is host:port at which agents of members connect to the hub. "0" or empty turns it off.
	TunnelAddress string
	// Proxy returns the proxy of connections to members, repositories and the identity provider. If it is nil, there is no
	// proxy.
	Proxy func(*http.Request) (*url.URL, error)
	// Repositories are the repositories from which the hub may fetch the charts of operators.
	Repositories fetch.Repositories
	// CheckChartVersions asks the repositories of operators for the newest versions of their charts.
	CheckChartVersions bool
	// InventoryNamespace is the namespace in which MemberClusters are published as ClusterProfiles, and decisions as
	// PlacementDecisions. Empty turns it off.
	InventoryNamespace string
	// Tracing of changes.
	Tracing tracing.Options
}

// ManagerOptions are the options of the manager of controllers.
type ManagerOptions struct {
	// LeaderElection makes the process decide on objects only while it holds the Lease hanse-hub.
	LeaderElection bool
	// HealthAddress and MetricsAddress are the host:port of the health probes and of the metrics. "0" turns them off.
	HealthAddress, MetricsAddress string
	// MetricsSecure serves metrics over TLS, and only to clients that may get the path /metrics. The TLS certificate is
	// for MetricsName, and its CA is in the Secret WebhookSecret.
	MetricsSecure bool
}

// Limits bound how many objects users may store, and how many copies the hub moves or deletes at once.
type Limits struct {
	// Failover limits how many objects move from unreachable clusters. After its grace period, an unreachable cluster gets
	// a NoExecute taint. Callers must not set the field Confirmed, because this package sets it.
	Failover schedule.Failover
	// Guard limits how many copies decisions delete at once.
	Guard schedule.Guard
	// ProtectedCopies is the number of copies above which a namespace or a CustomResourceDefinition is protected from
	// deletion. A negative number protects none.
	ProtectedCopies int
	// ManifestsPerNamespace is the maximum number of objects that the hub stores for the Bundles of one namespace. 0 means
	// no limit.
	ManifestsPerNamespace int
}

// ObjectOptions tell what members may get.
type ObjectOptions struct {
	// DeniedMetadataPrefixes are prefixes of labels and annotations that are never copied to members, in addition to the
	// built-in prefixes.
	DeniedMetadataPrefixes []string
	// FederatedNamespaces are the namespaces in which objects of a resource are read. Resources without an entry are
	// read in all namespaces.
	FederatedNamespaces map[schema.GroupResource][]string
}

// WebhookOptions are the options of the webhook that reviews policies.
type WebhookOptions struct {
	// Address is host:port of the webhook; "0" or empty turns it off. Names are the DNS names by which the API server
	// calls it.
	Address string
	Names   []string
	// DryRunRendered true lets the webhook send rendered objects to the hub's API server as dry runs, so that its
	// admission reviews what members get. The hub needs create on the kinds of these objects.
	DryRunRendered bool
}

// ViewOptions are the options of the service through which users view members.
type ViewOptions struct {
	// Address is host:port of the service; "0" or empty turns it off. Host is the address at which other replicas reach
	// the service. If Host is empty, they use Address.
	Address, Host string
}

// ConsoleOptions are the options of the pages for browsers.
type ConsoleOptions struct {
	// Address is host:port of the pages. "0" or empty turns the pages off. With Secure, the hub serves the pages over TLS
	// with a certificate for ConsoleName. Without Secure, a proxy must serve TLS, or only this host may reach the address.
	Address string
	Secure  bool
	// OIDC is the OIDC provider at which users of the console sign in.
	OIDC console.OIDC
}

// WebhookName is the name of the ValidatingWebhookConfiguration and of the MutatingWebhookConfiguration that the chart
// creates. WebhookSecret is the name of a Secret of the chart with the certificate of the webhooks and the metrics.
const (
	WebhookName   = "hanse-hub"
	WebhookSecret = "hanse-hub-webhook"
	// LeaseName is the name of the Lease that the leading process holds.
	LeaseName = "hanse-hub"
	// MetricsName is the DNS name in the metrics certificate.
	MetricsName = "hanse-hub-metrics." + hubv1.SystemNamespace + ".svc"
	// ConsoleName is the DNS name in the certificate of the console.
	ConsoleName = "hanse-hub-console." + hubv1.SystemNamespace + ".svc"
)

func (o *Options) reviews() bool { return o.Webhook.Address != "" && o.Webhook.Address != "0" }

func (o *Options) servesConsole() bool { return o.Console.Address != "" && o.Console.Address != "0" }

func (o *Options) acceptsAgents() bool { return o.TunnelAddress != "" && o.TunnelAddress != "0" }

func (o *Options) securesMetrics() bool {
	return o.Manager.MetricsSecure && o.Manager.MetricsAddress != "" && o.Manager.MetricsAddress != "0"
}

// Run runs the hub. It returns when ctx ends, when this process stops being the leader, or when it loses the Lease
// under which it works on members. The process must then end, because a new process starts without outdated state.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	self, err := awaitIdentity(ctx, config, o.Namespace)
	if err != nil || self.UID == "" {
		return err
	}
	process, err := newProcess(ctx, config, o, self)
	if err != nil {
		return err
	}
	parts, err := newParts(ctx, process)
	if err != nil {
		return err
	}
	parts.connect(ctx)
	if err := parts.add(ctx); err != nil {
		return fmt.Errorf("adding the parts of the hub: %w", err)
	}
	err = process.mgr.Start(ctx)
	// The process is about to end. Leave deletes the Lease under which this replica works on members. Other replicas then
	// need not wait until that Lease expires.
	if left := process.coordinator.Leave(context.WithoutCancel(ctx)); err == nil {
		err = left
	}
	process.tracer.Close(context.WithoutCancel(ctx))
	if err != nil {
		return fmt.Errorf("running the hub: %w", err)
	}
	return nil
}
