package hub

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/hanse-dev/hanse/hub/admission"
	"github.com/hanse-dev/hanse/hub/admission/certificate"
	"github.com/hanse-dev/hanse/member/discovery"
	"github.com/hanse-dev/hanse/view/preview"
)

// addAdmission serves, in every replica, the webhooks that review policies and record their authors.
func addAdmission(mgr manager.Manager, o Options, store admission.Templates, kinds *discovery.Kinds, keeper *certificate.Keeper) error {
	if !o.reviews() {
		return nil
	}
	host, digits, err := net.SplitHostPort(o.Webhook.Address)
	if err != nil {
		return fmt.Errorf("reading the address of the webhook: %w", err)
	}
	port, err := strconv.Atoi(digits)
	if err != nil || port < 1 {
		return fmt.Errorf("reading the address of the webhook: %q has no port", o.Webhook.Address)
	}
	var dryRun func(context.Context, *unstructured.Unstructured) error
	if o.Webhook.DryRunRendered {
		dryRun = func(ctx context.Context, o *unstructured.Unstructured) error {
			return mgr.GetClient().Create(ctx, o, client.DryRunAll)
		}
	}
	reviewer := admission.New(admission.Options{
		Client: mgr.GetClient(), Mapper: mgr.GetRESTMapper(), Templates: store, Schema: kinds.Schema, Readable: preview.CheckPlacement,
		DryRun: dryRun, Lookup: admission.HubLookup{Client: mgr.GetClient(), Reader: mgr.GetAPIReader()}, RemovalLimit: o.Limits.Guard.WithDefaults().Limit, DeniedMetadataPrefixes: o.Objects.DeniedMetadataPrefixes,
	})
	server := &webhookServer{Server: webhook.NewServer(webhook.Options{Host: host, Port: port, TLSOpts: []func(*tls.Config){func(c *tls.Config) {
		c.MinVersion, c.GetCertificate = tls.VersionTLS12, keeper.GetCertificate
	}}})}
	for path, handler := range map[string]ctrladmission.Handler{admission.ReviewPath: reviewer, admission.AuthorPath: admission.Recorder{}} {
		guarded := keeper.Guard(path, &ctrladmission.Webhook{Handler: handler, RecoverPanic: ptr.To(true)})
		server.Register(path, guarded)
		server.Register(path+"/", guarded) // keeps the random part out of metric labels
	}
	if err := mgr.AddReadyzCheck("webhook", server.StartedChecker()); err != nil {
		return fmt.Errorf("adding the readiness probe of the webhook: %w", err)
	}
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("adding the webhook: %w", err)
	}
	return nil
}
