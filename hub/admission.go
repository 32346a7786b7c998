package hub

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/admission"
	"github.com/hanse-dev/hanse/hub/certificate"
	"github.com/hanse-dev/hanse/hub/policystatus"
	"github.com/hanse-dev/hanse/hub/templates"
	"github.com/hanse-dev/hanse/member/served"
)

// WebhookName is the name of the ValidatingWebhookConfiguration, WebhookSecret that of the Secret with the certificate
// of webhook and metrics. The chart makes both.
const (
	WebhookName   = "hanse-hub"
	WebhookSecret = "hanse-hub-webhook"
)

// MetricsName is the DNS name that the certificate of the metrics is for.
const MetricsName = "hanse-hub-metrics." + hubv1.SystemNamespace + ".svc"

func (o *Options) reviews() bool { return o.WebhookAddress != "" && o.WebhookAddress != "0" }

func (o *Options) securesMetrics() bool {
	return o.MetricsSecure && o.MetricsAddress != "" && o.MetricsAddress != "0"
}

// addCertificate keeps one certificate for the webhook and the metrics, in every replica. Nil if there is neither.
func addCertificate(mgr manager.Manager, o Options) (*certificate.Keeper, error) {
	options := certificate.Options{
		Reader: mgr.GetAPIReader(), Client: mgr.GetClient(), Path: admission.Path,
		Secret: types.NamespacedName{Namespace: o.Namespace, Name: WebhookSecret},
	}
	if o.reviews() {
		options.Configuration, options.Names = WebhookName, slices.Clone(o.WebhookNames)
	}
	if o.securesMetrics() {
		options.Names = append(options.Names, MetricsName)
	}
	if len(options.Names) == 0 {
		return nil, nil
	}
	keeper := certificate.New(options)
	if err := mgr.Add(keeper); err != nil {
		return nil, fmt.Errorf("adding the certificate of webhook and metrics: %w", err)
	}
	return keeper, nil
}

// addAdmission serves the webhook that reviews policies, in every replica.
func addAdmission(mgr manager.Manager, o Options, store *templates.Store, kinds *served.Kinds, keeper *certificate.Keeper) error {
	if !o.reviews() {
		return nil
	}
	host, digits, err := net.SplitHostPort(o.WebhookAddress)
	if err != nil {
		return fmt.Errorf("reading the address of the webhook: %w", err)
	}
	port, err := strconv.Atoi(digits)
	if err != nil || port < 1 {
		return fmt.Errorf("reading the address of the webhook: %q has no port", o.WebhookAddress)
	}
	reviewer := admission.New(admission.Options{
		Client: mgr.GetClient(), Mapper: mgr.GetRESTMapper(), Templates: store, Schema: kinds.Values, Readable: policystatus.Readable,
		DeniedMetadataPrefixes: o.DeniedMetadataPrefixes,
	})
	server := webhook.NewServer(webhook.Options{Host: host, Port: port, TLSOpts: []func(*tls.Config){func(c *tls.Config) {
		c.MinVersion, c.GetCertificate = tls.VersionTLS12, keeper.GetCertificate
	}}})
	guarded := keeper.Guard(&ctrladmission.Webhook{Handler: reviewer, RecoverPanic: ptr.To(true)})
	server.Register(admission.Path, guarded)
	server.Register(admission.Path+"/", guarded) // the random part is not to be a label of metrics
	if err := mgr.AddReadyzCheck("webhook", server.StartedChecker()); err != nil {
		return fmt.Errorf("adding the readiness probe of the webhook: %w", err)
	}
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("adding the webhook: %w", err)
	}
	return nil
}

// newHubKinds makes what knows the schemas of the hub's own kinds.
func newHubKinds(ctx context.Context, config *rest.Config) (*served.Kinds, error) {
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making the client for the hub's schemas: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(config, http)
	if err != nil {
		return nil, fmt.Errorf("making the hub's discovery client: %w", err)
	}
	definitions, err := dynamic.NewForConfig(served.MetadataOnly(config))
	if err != nil {
		return nil, fmt.Errorf("making the client for the hub's definitions: %w", err)
	}
	return served.New(ctx, served.Options{
		Discovery: disco, HTTP: http, Definitions: definitions, OnChange: func(schema.GroupKind) {}, OnDefinition: func() {},
	}), nil
}
