package command

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/views"
)

// reader returns a client for a command that only reads. The client also works for users who may see only one
// namespace.
func (h *hub) reader(w *window) (*views.Narrowed, error) {
	c, _, err := h.connect()
	if err != nil {
		return nil, err
	}
	namespace, _, err := h.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("finding the namespace: %w", err)
	}
	return &views.Narrowed{
		Client: c, Namespace: namespace,
		Views: func(ctx context.Context) (*views.Client, error) { return w.open(ctx, h, c) },
		Note:  func(text string) { h.warn("warning: " + text + "\n") },
	}, nil
}

// narrow makes a command that reads all namespaces read the namespace of the user's context alone, if the user may not
// list placements and bindings everywhere. It says so in one line. Without a namespace in the context, it changes
// nothing: the requests that follow are refused, with advice.
func (h *hub) narrow(ctx context.Context, c client.Client) error {
	if *h.flags.Namespace != "" {
		return nil
	}
	config, err := h.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	name := config.CurrentContext
	if *h.flags.Context != "" {
		name = *h.flags.Context
	}
	current := config.Contexts[name]
	if current == nil || current.Namespace == "" {
		return nil
	}
	for _, list := range []client.ObjectList{&hubv1.PlacementList{}, &hubv1.ResourceBindingList{}} {
		if err := c.List(ctx, list, client.Limit(1)); apierrors.IsForbidden(err) {
			*h.flags.Namespace = current.Namespace
			h.warn("note: you may not read all namespaces, so that namespace " + current.Namespace + " of your context is used\n")
			return nil
		}
	}
	return nil // another error meets the command, too
}
