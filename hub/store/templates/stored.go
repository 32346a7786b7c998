package templates

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/manifest"
	"github.com/hanse-dev/hanse/internal/informer"
)

// A stored template is an object of a bundle in a Secret, see bundle.Stored. Package hub/bundles writes these Secrets.

// secrets is the kind Secret.
var secrets = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}

// storedRecord is the record of a stored template. Its namespace, name, UID and resourceVersion are those of the
// Secret.
type storedRecord struct {
	*metav1.ObjectMeta // always nil, as in record: only the values below can be read
	secret             types.NamespacedName
	resourceVersion    string
	uid                types.UID // UID of the Secret
	id                 hubv1.ObjectIdentity
	template           *record
}

// GetNamespace implements metav1.Object.
func (r *storedRecord) GetNamespace() string { return r.secret.Namespace }

// GetName implements metav1.Object.
func (r *storedRecord) GetName() string { return r.secret.Name }

// GetUID implements metav1.Object.
func (r *storedRecord) GetUID() types.UID { return r.uid }

// GetResourceVersion implements metav1.Object.
func (r *storedRecord) GetResourceVersion() string { return r.resourceVersion }

// keepStored makes the record of a listed or watched Secret that has an object of a bundle.
func (s *Store) keepStored(u *unstructured.Unstructured) (metav1.Object, error) {
	var secret corev1.Secret
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &secret); err != nil {
		return nil, fmt.Errorf("reading Secret %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	stored, err := manifest.ReadStored(&secret)
	if err != nil {
		return nil, err
	}
	template := stored.Template(&secret)
	r := pack(template)
	s.recent.put(r, template)
	return &storedRecord{
		ObjectMeta: nothing, secret: client.ObjectKeyFromObject(&secret), resourceVersion: secret.ResourceVersion, uid: secret.UID,
		id: hubv1.IdentityOf(template), template: r,
	}, nil
}

func (s *Store) storedChanged(_ schema.GroupVersionKind, before, after metav1.Object) {
	was, _ := before.(*storedRecord)
	is, _ := after.(*storedRecord)
	switch {
	case is == nil && was == nil:
		return
	case is == nil: // from now on, the hub's own object of this identity is the template
		for _, f := range s.listeners.onState {
			f(was.id.GroupKind())
		}
	case was != nil && was.template.rest == is.template.rest:
		return
	default:
		s.notify(s.listeners.onChange, is.id)
	}
}

func (s *Store) storedState(schema.GroupVersionKind, informer.State) {
	for gk := range s.StoredKinds() {
		for _, f := range s.listeners.onState {
			f(gk)
		}
	}
}

func (s *Store) storedRecord(id hubv1.ObjectIdentity) (*storedRecord, bool) {
	o, _ := s.stored.Get(secrets, informer.Key(s.namespace, id.ManifestName()))
	r, ok := o.(*storedRecord)
	return r, ok
}

// StoredKinds returns the kinds of the objects in all bundles.
func (s *Store) StoredKinds() sets.Set[schema.GroupKind] {
	kinds := sets.New[schema.GroupKind]()
	for _, o := range s.stored.List(secrets) {
		if r, ok := o.(*storedRecord); ok {
			kinds.Insert(r.id.GroupKind())
		}
	}
	return kinds
}

// StoredState returns the state of the watch of the stored objects.
func (s *Store) StoredState() informer.State {
	state, _ := s.stored.State(secrets)
	return state
}

// ListStored returns the objects of the bundles that `which` selects, in any order.
func (s *Store) ListStored(which func(hubv1.ObjectBundle) bool) []hubv1.ObjectIdentity {
	var ids []hubv1.ObjectIdentity
	for _, o := range s.stored.List(secrets) {
		r, ok := o.(*storedRecord)
		if !ok {
			continue
		}
		if bundle := r.template.bundle; bundle != nil && which(*bundle) {
			ids = append(ids, r.id)
		}
	}
	return ids
}

// StoredOf returns the objects of a bundle, in any order. It does not read the objects of other bundles.
func (s *Store) StoredOf(bundle hubv1.BundleReference) []hubv1.ObjectIdentity {
	records := s.stored.Grouped(secrets, bundle.String())
	ids := make([]hubv1.ObjectIdentity, 0, len(records))
	for _, o := range records {
		if r, ok := o.(*storedRecord); ok {
			ids = append(ids, r.id)
		}
	}
	return ids
}

// bundleOf returns the bundle of a stored template as text, or an empty text.
func bundleOf(o metav1.Object) string {
	if r, ok := o.(*storedRecord); ok && r.template.bundle != nil {
		return r.template.bundle.BundleReference.String()
	}
	return ""
}

// liveStored reads an object of a bundle from the API server. It has the same results as Live.
func (s *Store) liveStored(ctx context.Context, id hubv1.ObjectIdentity) (obj *unstructured.Unstructured, gone bool, err error) {
	u, err := s.server.requests.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(s.namespace).Get(ctx, id.ManifestName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, false, undecided{fmt.Sprintf("the Secret %s/%s with its manifest is missing", s.namespace, id.ManifestName())}
	case err != nil:
		return nil, false, fmt.Errorf("reading the manifest of %s uncached: %w", id, err)
	}
	var secret corev1.Secret
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &secret); err != nil {
		return nil, false, fmt.Errorf("reading the manifest of %s uncached: %w", id, err)
	}
	stored, err := manifest.ReadStored(&secret)
	if err != nil {
		return nil, false, err
	}
	return stored.Template(&secret), false, nil
}
