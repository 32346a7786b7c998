package inputs

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

// SetRollout reads the SetRollout of a bundle. It returns nil if there is none, or if the hub does not decide on the
// bundle as a whole.
func SetRollout(ctx context.Context, c client.Reader, of hubv1.BundleReference) (*hubv1.SetRollout, error) {
	record := &hubv1.SetRollout{}
	err := c.Get(ctx, of.SetRolloutKey(hubv1.SystemNamespace), record)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || err == nil && record.Spec.Rollout == nil {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the SetRollout of %s: %w", of, err)
	}
	return record, nil
}

// SetLists reads the lists of the objects in the revisions of a bundle that are in use, by digest. They are in Secrets
// in the hub's namespace. A list that is lost is missing in the result.
func SetLists(ctx context.Context, c client.Reader, spec *hubv1.SetRolloutSpec) (map[string]decide.SetList, error) {
	out := map[string]decide.SetList{}
	digests := []string{spec.Newest.List}
	for _, n := range decide.SetInUse(spec) {
		digests = append(digests, spec.Revision(n).List, spec.Revision(n).Policies)
	}
	for _, digest := range digests {
		if _, known := out[digest]; known || digest == "" {
			continue
		}
		secret := &corev1.Secret{}
		err := c.Get(ctx, client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: decide.SetListSecret(digest)}, secret)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading a list of the objects of %s: %w", spec.Bundle, err)
		}
		if out[digest], err = decide.ReadSetList(secret.Data[decide.ContentKey]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// HeldContents reads the contents of an object of a bundle that clusters shall hold. A content that is lost is missing
// in the result.
func HeldContents(ctx context.Context, c client.Reader, spec *hubv1.SetRolloutSpec, id hubv1.ObjectIdentity) ([]*unstructured.Unstructured, error) {
	lists, err := SetLists(ctx, c, spec)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, part := range decide.HeldParts(spec, lists, id) {
		secret := &corev1.Secret{}
		err := c.Get(ctx, client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: decide.SetPartSecret(part)}, secret)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading an earlier content of %s: %w", id, err)
		}
		content, err := decide.ReadTemplate(secret.Data[decide.ContentKey])
		if err != nil {
			return nil, err
		}
		out = append(out, content)
	}
	return out, nil
}
