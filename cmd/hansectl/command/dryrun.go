package command

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// notWriting is a client that reads, and ignores all writes.
type notWriting struct{ client.Client }

func (notWriting) Create(context.Context, client.Object, ...client.CreateOption) error { return nil }
func (notWriting) Update(context.Context, client.Object, ...client.UpdateOption) error { return nil }
func (notWriting) Delete(context.Context, client.Object, ...client.DeleteOption) error { return nil }
func (notWriting) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return nil
}
