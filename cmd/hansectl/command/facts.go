package command

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/memberview"
)

// tenantClient reads the cluster-scoped objects that affect a namespace. If the user may not list a kind, it asks the
// hub for the parts that concern the namespace.
type tenantClient struct {
	client.Client
	hub       *hub
	window    *window
	namespace string

	facts memberview.FactsAnswer
	fault error
	asked time.Time
}

// reader returns a client for a command that reads.
func (h *hub) reader(w *window) (*tenantClient, error) {
	c, _, err := h.connect()
	if err != nil {
		return nil, err
	}
	namespace, _, err := h.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("finding the namespace: %w", err)
	}
	return &tenantClient{Client: c, hub: h, window: w, namespace: namespace}, nil
}

// List implements client.Reader.
func (t *tenantClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := t.Client.List(ctx, list, opts...)
	if !apierrors.IsForbidden(err) {
		return err
	}
	var from client.ListOptions
	from.ApplyOptions(opts)
	switch list := list.(type) {
	case *hubv1.MemberClusterList:
		return t.ask(ctx, err, func(f *memberview.FactsAnswer) { list.Items = f.MemberClusters })
	case *hubv1.ClusterPlacementList:
		return t.ask(ctx, err, func(f *memberview.FactsAnswer) { list.Items = f.ClusterPlacements })
	case *hubv1.ClusterOverridePolicyList:
		return t.ask(ctx, err, func(f *memberview.FactsAnswer) { list.Items = f.ClusterOverridePolicies })
	case *hubv1.OverridePolicyList:
		if from.Namespace == t.namespace {
			return t.ask(ctx, err, func(f *memberview.FactsAnswer) { list.Items = f.OverridePolicies })
		}
	}
	return err
}

// ask takes from the facts of the namespace what the user may not list, which refused says. The facts are read once for
// all kinds that one look at an object lists.
func (t *tenantClient) ask(ctx context.Context, refused error, take func(*memberview.FactsAnswer)) error {
	if time.Since(t.asked) > lookEvery {
		t.facts = memberview.FactsAnswer{}
		t.fault = t.read(ctx)
		t.asked = time.Now()
	}
	switch {
	case apierrors.IsForbidden(t.fault): // which names the role to ask for
		return fmt.Errorf("reading the policies and clusters of namespace %s from the hub: %w; %w", t.namespace, t.fault, refused)
	case t.fault != nil:
		return fmt.Errorf("%w; reading the policies and clusters of namespace %s from the hub: %w", refused, t.namespace, t.fault)
	}
	for _, note := range t.facts.Notes {
		t.hub.warn("warning: " + note + "\n")
	}
	take(&t.facts)
	return nil
}

func (t *tenantClient) read(ctx context.Context) error {
	views, err := t.window.open(ctx, t.hub, t.Client)
	if err != nil {
		return err
	}
	return views.ask(ctx, "", memberview.Facts, t.namespace, memberview.FactsRequest{}, &t.facts)
}
