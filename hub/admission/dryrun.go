package admission

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/access"
)

// notAdmitted records why the hub's API server does not admit the rendered manifest as a new object, if the reviewed
// policy causes this. The hub sends the manifest as a dry run.
//
//   - The request is a create, because admission policies are for the operation with which a member gets the object. An
//     update would fail on fields that cannot change, such as the selector of a Deployment.
//   - The manifest keeps its name, because admission policies may depend on the name. An object of this name exists on
//     the hub. The API server finds that out only after admission, so AlreadyExists means that the object is admitted.
//   - The hub sends the request as itself. To act as the author, it would need the right to impersonate every user. Any
//     client that knows the webhook's path could then act as another user.
func (t *trial) notAdmitted(ctx context.Context, o selectedObject, where string, manifest *unstructured.Unstructured, without func() *unstructured.Unstructured) error {
	dryRun := t.reviewer.options.DryRun
	if dryRun == nil || len(access.Granting(o.GroupKind(), "")) > 0 { // the API server lets the hub grant no rights to others
		return nil
	}
	content, err := json.Marshal(manifest.Object)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", o.ObjectIdentity, err)
	}
	sum := sha256.Sum256(content)
	if t.sent.Has(sum) {
		return nil
	}
	t.sent.Insert(sum)
	refused, err := refusalIn(dryRun(ctx, asNew(manifest)))
	if err != nil || refused == "" {
		return t.unlessLate(ctx, err)
	}
	also := ""
	if before := without(); before != nil {
		if also, err = refusalIn(dryRun(ctx, asNew(before))); err != nil {
			return t.unlessLate(ctx, err)
		}
	}
	message := refused
	if hubv1.IsSecret(o.GroupKind()) {
		message = "the text is withheld because it may quote the Secret" // the API server's message may have a value of the Secret
	}
	if refused == also {
		t.warn(where + "the hub's API server refuses the object with and without the policy, so the dry run does not check the policy: " + message)
		return nil
	}
	t.breaks(where + "the hub's API server refuses the rendered object: " + message)
	return nil
}

// unlessLate returns the error, or nil if the time for rendering is over. The review then warns that it has not checked
// all objects.
func (t *trial) unlessLate(ctx context.Context, err error) error {
	if err != nil && !isOver(ctx) {
		return fmt.Errorf("sending a rendered object to the hub's API server as a dry run: %w", err)
	}
	return nil
}

// asNew returns the manifest without the ports of nodes, because the Service of the hub has these ports.
func asNew(manifest *unstructured.Unstructured) *unstructured.Unstructured {
	out := manifest.DeepCopy()
	if out.GroupVersionKind().GroupKind() != (schema.GroupKind{Kind: "Service"}) {
		return out
	}
	ports, _, _ := unstructured.NestedSlice(out.Object, "spec", "ports")
	for _, p := range ports {
		if port, ok := p.(map[string]any); ok {
			delete(port, "nodePort")
		}
	}
	if len(ports) > 0 {
		_ = unstructured.SetNestedSlice(out.Object, ports, "spec", "ports")
	}
	return out
}

// refusalIn returns the message of an API server that refuses to create an object. The message is empty if the object
// is admitted, and if the hub has no such kind or namespace. Any other failure is an error.
func refusalIn(err error) (string, error) {
	var status apierrors.APIStatus
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return "", nil
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return "", nil
	case apierrors.IsTooManyRequests(err), apierrors.IsTimeout(err), !errors.As(err, &status):
		return "", err
	}
	if code := status.Status().Code; code < http.StatusBadRequest || code >= http.StatusInternalServerError {
		return "", err
	}
	return hubv1.CutMessage(status.Status().Message, 1024), nil
}
