package hub

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/admission"
	"github.com/hanse-dev/hanse/hub/admission/certificate"
	"github.com/hanse-dev/hanse/hub/membership/shard"
	"github.com/hanse-dev/hanse/hub/store/clusters"
	"github.com/hanse-dev/hanse/hub/tracing"
	"github.com/hanse-dev/hanse/hub/tunnel"
	"github.com/hanse-dev/hanse/hub/views"
	"github.com/hanse-dev/hanse/member/connect"
)

// process has the parts of one replica that all others need: its manager, its shard (the set of members that it
// serves), and its connections to these members.
type process struct {
	options     Options
	hub         identity
	host        string              // name of this replica in the status of NotificationSinks
	certificate *certificate.Keeper // nil if neither webhook nor metrics need one
	mgr         manager.Manager
	views       *views.Server  // nil if views are turned off
	tunnel      *tunnel.Server // nil if agents are not accepted
	links       *connect.Provider
	clusters    *clusters.Store
	coordinator *shard.Coordinator
	held        *shard.Links    // links of the members in this replica's shard
	tracer      *tracing.Tracer // nil if tracing is off
}

func newProcess(ctx context.Context, config *rest.Config, o Options, self identity) (*process, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading the name of the host: %w", err)
	}
	p := &process{options: o, hub: self, host: host, certificate: newCertificate(o)}
	lead := shard.NewLead()
	if p.mgr, err = newManager(config, o, lead, p.certificate); err != nil {
		return nil, err
	}
	if p.views, err = views.Listen(o.View.Address, o.View.Host); err != nil {
		return nil, err
	}
	if err := p.connectMembers(ctx, config); err != nil {
		return nil, err
	}
	p.clusters = clusters.New(p.mgr.GetClient())
	leases := rest.CopyConfig(config) // not guarded by the lead, because the lead depends on the coordinator's writes
	leases.QPS = -1
	p.coordinator, err = shard.New(shard.Options{
		Config: leases, Namespace: o.Namespace, Identity: o.Identity, Members: p.clusters,
		HangUp: p.links.Remove, Annotations: leaseAnnotations(p.views.Annotations()), Logger: p.mgr.GetLogger().WithName("shard"),
	})
	if err != nil {
		return nil, fmt.Errorf("sharing members among replicas: %w", err)
	}
	lead.Of(p.coordinator)
	p.held = p.coordinator.Share(p.links)
	p.tracer, err = tracing.New(o.Tracing, tracing.Process{
		HubID: string(self.UID), Version: o.Version, Instance: o.Identity, Proxy: o.Proxy, Logger: p.mgr.GetLogger().WithName("tracing"),
	})
	if err != nil {
		return nil, fmt.Errorf("setting up tracing: %w", err)
	}
	return p, nil
}

// leaseAnnotations returns the annotations of this replica's Lease. views are those of the views of members.
func leaseAnnotations(views map[string]string) map[string]string {
	out := map[string]string{hubv1.SetsAnnotation: hubv1.SetsVersion}
	maps.Copy(out, views)
	return out
}

// connectMembers makes the links to members, and opens the port for agents of members.
func (p *process) connectMembers(ctx context.Context, config *rest.Config) error {
	options := connect.Options{Logger: p.mgr.GetLogger().WithName("connect"), Proxy: p.options.Proxy, HubID: string(p.hub.UID)}
	if p.options.acceptsAgents() {
		certificate, err := readTunnelCertificate(ctx, config, p.options.Namespace)
		if err != nil {
			return err
		}
		p.tunnel, err = tunnel.Listen(tunnel.Options{
			Address: p.options.TunnelAddress, Certificate: certificate, NewLane: connect.NewLane, Logger: p.mgr.GetLogger().WithName("tunnel"),
		})
		if err != nil {
			return err
		}
		options.Tunnels = p.tunnel
	}
	p.links = connect.New(options)
	return nil
}

// newCertificate returns the keeper of the certificate for the webhook, the metrics and the console. The result is nil
// if all three are turned off.
func newCertificate(o Options) *certificate.Keeper {
	options := certificate.Options{
		ReviewPath: admission.ReviewPath, AuthorPath: admission.AuthorPath, Secret: types.NamespacedName{Namespace: o.Namespace, Name: WebhookSecret},
	}
	if o.reviews() {
		options.Configuration, options.Names = WebhookName, slices.Clone(o.Webhook.Names)
	}
	if o.securesMetrics() {
		options.Names = append(options.Names, MetricsName)
	}
	if o.servesConsole() {
		options.Names = append(options.Names, ConsoleName) // without TLS, for the key of sessions
	}
	if len(options.Names) == 0 {
		return nil
	}
	return certificate.New(options)
}

func newManager(config *rest.Config, o Options, lead *shard.Lead, keeper *certificate.Keeper) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, hubv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering kinds: %w", err)
		}
	}
	config = rest.CopyConfig(config)
	config.QPS = -1 // the API server limits requests (priority and fairness)
	lease := rest.CopyConfig(config)
	lease.Wrap(lead.Renewals)
	config.Wrap(lead.Guard)
	metrics := metricsserver.Options{BindAddress: o.Manager.MetricsAddress}
	if o.securesMetrics() {
		metrics.SecureServing = true
		metrics.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.MinVersion, c.GetCertificate = tls.VersionTLS12, keeper.GetCertificate }}
		metrics.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	mgr, err := manager.New(config, manager.Options{
		Scheme:                        scheme,
		Metrics:                       metrics,
		Cache:                         cacheOptions(o.Namespace),
		HealthProbeBindAddress:        o.Manager.HealthAddress,
		LeaderElection:                o.Manager.LeaderElection,
		LeaderElectionID:              LeaseName,
		LeaderElectionNamespace:       o.Namespace,
		LeaderElectionConfig:          lease, // a separate client, so that load on the other one cannot cost the lead
		LeaderElectionLabels:          versionLabel(o.Version),
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 ptr.To(shard.LeadLasts),
		RenewDeadline:                 ptr.To(shard.LeadRenewWithin),
		RetryPeriod:                   ptr.To(shard.LeadRetryEvery),
		GracefulShutdownTimeout:       ptr.To(8 * time.Second),
		Controller:                    ctrlconfig.Controller{SkipNameValidation: ptr.To(true)}, // a test process runs several hubs
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

// versionLabel returns the label of the Lease with the version of the leader. A label cannot contain a "+", so that "_"
// replaces it. The label is set even without a version. Otherwise the Lease would keep the version of the previous
// leader.
func versionLabel(version string) map[string]string {
	version = strings.ReplaceAll(version, "+", "_")
	if version == "" || len(validation.IsValidLabelValue(version)) > 0 {
		version = "unknown"
	}
	return map[string]string{hubv1.VersionLabel: version}
}
