package command

import (
	"context"
	"fmt"

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
