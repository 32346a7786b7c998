package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
)

const (
	manifestKey          = "manifest"
	bundleUIDAnnotation  = hubv1.Prefix + "bundle-uid"
	generationAnnotation = hubv1.Prefix + "generation"
	removedAnnotation    = hubv1.Prefix + "removed"
)

var errNotManifest = errors.New("it is not a stored manifest")

// maxStoredBytes is the maximum size, in bytes, of a stored manifest's JSON after decompression. No API server accepts
// an object of that size.
const maxStoredBytes = 16 << 20

// Stored is an object of a bundle as the hub stores it: in a Secret in hanse-system. The identity of the object
// determines the name of the Secret, so that an object belongs to at most one bundle.
//
// If Removed is set, the hub has decided to delete the object, and its copies are withdrawn. If only the Secret is
// missing, the copies stay, because a user may have deleted the Secret by mistake.
type Stored struct {
	Bundle hubv1.ObjectBundle
	// UID is the UID of the bundle.
	UID types.UID
	// Generation of the object. The hub increases it with each change of the manifest.
	Generation int64
	// Manifest is the object as the bundle has it: its metadata has only name, namespace, labels and annotations.
	Manifest *unstructured.Unstructured
	// Removed is the time at which the hub decided to delete the object. It is zero if the object is not deleted.
	Removed time.Time
}

// Secret returns the Secret that stores the object. namespace is the namespace of the Secret.
func (s Stored) Secret(namespace string) (*corev1.Secret, error) {
	raw, err := s.Manifest.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("writing %s as JSON: %w", hubv1.IdentityOf(s.Manifest), err)
	}
	compressed, err := canonical.Compress(raw)
	if err != nil {
		return nil, fmt.Errorf("compressing %s: %w", hubv1.IdentityOf(s.Manifest), err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: hubv1.IdentityOf(s.Manifest).ManifestName(), Labels: map[string]string{hubv1.ManifestLabel: "true"},
			Annotations: map[string]string{
				hubv1.BundleAnnotation: s.Bundle.Annotation(), bundleUIDAnnotation: string(s.UID), generationAnnotation: strconv.FormatInt(s.Generation, 10),
			},
		},
		Type: hubv1.ManifestSecretType,
		Data: map[string][]byte{manifestKey: compressed},
	}
	if !s.Removed.IsZero() {
		secret.Annotations[removedAnnotation] = s.Removed.UTC().Format(time.RFC3339)
	}
	return secret, nil
}

// ReadStored returns the object that a Secret stores. It is the inverse of Stored.Secret.
func ReadStored(secret *corev1.Secret) (Stored, error) {
	fail := func(err error) (Stored, error) {
		return Stored{}, fmt.Errorf("reading Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	of := hubv1.BundleOf(secret)
	if of == nil || secret.Type != hubv1.ManifestSecretType {
		return fail(errNotManifest)
	}
	s := Stored{Bundle: *of, UID: types.UID(secret.Annotations[bundleUIDAnnotation]), Manifest: &unstructured.Unstructured{}}
	var err error
	if s.Generation, err = strconv.ParseInt(secret.Annotations[generationAnnotation], 10, 64); err != nil {
		return fail(fmt.Errorf("annotation %s: %w", generationAnnotation, err))
	}
	if at, removed := secret.Annotations[removedAnnotation]; removed {
		if s.Removed, err = time.Parse(time.RFC3339, at); err != nil {
			return fail(fmt.Errorf("annotation %s: %w", removedAnnotation, err))
		}
	}
	raw, err := canonical.Decompress(secret.Data[manifestKey], maxStoredBytes)
	if err == nil {
		err = s.Manifest.UnmarshalJSON(raw)
	}
	if err != nil {
		return fail(err)
	}
	if hubv1.IdentityOf(s.Manifest).ManifestName() != secret.Name {
		return fail(fmt.Errorf("it has the manifest of %s: %w", hubv1.IdentityOf(s.Manifest), errNotManifest))
	}
	return s, nil
}

// WithoutContent returns the manifest of an object of which only the identity is known.
func WithoutContent(apiVersion string, id hubv1.ObjectIdentity) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(id.Kind)
	u.SetNamespace(id.Namespace)
	u.SetName(id.Name)
	return u
}

// HasContent reports whether an object has any field beside its identity and metadata. It returns false for the objects
// that WithoutContent returns.
func HasContent(o *unstructured.Unstructured) bool {
	for field := range o.Object {
		if field != "apiVersion" && field != "kind" && field != "metadata" {
			return true
		}
	}
	return false
}

// Template returns the object in the form of a hub object: with UID, generation and other metadata that an API server
// would set. secret is the Secret that stores the object.
func (s Stored) Template(secret metav1.Object) *unstructured.Unstructured {
	u := s.Manifest
	u.SetUID(s.UID)
	u.SetGeneration(s.Generation)
	u.SetResourceVersion(secret.GetResourceVersion())
	u.SetCreationTimestamp(secret.GetCreationTimestamp())
	if !s.Removed.IsZero() {
		at := metav1.NewTime(s.Removed)
		u.SetDeletionTimestamp(&at)
	}
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[hubv1.BundleAnnotation] = s.Bundle.Annotation()
	u.SetAnnotations(annotations)
	return u
}

// Patch returns a merge patch that stores s in the Secret that has an earlier state of the same object. The patch fails
// if the Secret does not have this resourceVersion any more.
func (s Stored) Patch(resourceVersion string) ([]byte, error) {
	secret, err := s.Secret("")
	if err != nil {
		return nil, err
	}
	annotations := map[string]any{removedAnnotation: nil}
	for key, value := range secret.Annotations {
		annotations[key] = value
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": resourceVersion, "annotations": annotations}, "data": secret.Data,
	})
}

// Of returns the manifest of a hub object that Template has returned. It is the inverse of Template.
func Of(template *unstructured.Unstructured) *unstructured.Unstructured {
	out := template.DeepCopy()
	for _, field := range []string{"uid", "generation", "resourceVersion", "creationTimestamp", "deletionTimestamp"} {
		unstructured.RemoveNestedField(out.Object, "metadata", field)
	}
	annotations := out.GetAnnotations()
	delete(annotations, hubv1.BundleAnnotation)
	if len(annotations) == 0 {
		annotations = nil
	}
	out.SetAnnotations(annotations)
	return out
}
