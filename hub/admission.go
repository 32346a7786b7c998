package hub

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
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

	"github.com/hanse-dev/hanse/hub/admission"
	"github.com/hanse-dev/hanse/hub/certificate"
	"github.com/hanse-dev/hanse/hub/policystatus"
	"github.com/hanse-dev/hanse/hub/templates"
	"github.com/hanse-dev/hanse/member/served"
)

// WebhookName is the name of the ValidatingWebhookConfiguration, WebhookSecret that of the Secret with its certificate. The chart makes
// both.
const (
	WebhookName   = "hanse-hub"
	WebhookSecret = "hanse-hub-webhook"
)

// addAdmission serves the webhook that reviews policies, in every replica.
func addAdmission(mgr manager.Manager, o Options, store *templates.Store, kinds *served.Kinds) error {
	if o.WebhookAddress == "" || o.WebhookAddress == "0" {
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
	keeper := certificate.New(certificate.Options{
		Reader: mgr.GetAPIReader(), Client: mgr.GetClient(), Configuration: WebhookName, Names: o.WebhookNames, Path: admission.Path,
		Secret: types.NamespacedName{Namespace: o.Namespace, Name: WebhookSecret},
	})
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
	for _, r := range []manager.Runnable{keeper, server} {
		if err := mgr.Add(r); err != nil {
			return fmt.Errorf("adding %T: %w", r, err)
		}
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
