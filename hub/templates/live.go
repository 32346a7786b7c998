package templates

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hanse-dev/hanse/answer"
	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// undecided means that the object is missing, but no read can prove its deletion. A retry will not help soon.
type undecided struct{ why string }

// Error says why.
func (u undecided) Error() string { return u.why }

// Undecided lets callers distinguish this error from a failed read, without importing this package.
func (undecided) Undecided() bool { return true }

// Live reads an object from the API server. It returns the object, which may have a deletionTimestamp, or gone, or an
// error.
//
// A deletion counts only if it is independent of the kind. The response must come from the kind's own storage. The
// CustomResourceDefinition must exist, must not be terminating, and must not be younger than since, a time at which the
// object existed. A definition that was deleted and created again has deleted its objects. An object of a bundle is
// never gone: it has a deletionTimestamp after it was removed from the bundle.
func (s *Store) Live(ctx context.Context, id hubv1.ObjectIdentity, since time.Time) (obj *unstructured.Unstructured, gone bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, answer.Timeout)
	defer cancel()
	if s.isStored(id) {
		return s.liveStored(ctx, id)
	}
	if resource, ok := s.places.get(id.GroupKind()); ok {
		if obj, gone, err = s.read(ctx, resource, id, since); err == nil {
			return obj, gone, nil
		}
	}
	resource, err := s.resource(ctx, id.GroupKind())
	if meta.IsNoMatchError(err) {
		return nil, false, undecided{fmt.Sprintf("the hub does not serve the kind %s", id.GroupKind())}
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading %s uncached: %w", id, err)
	}
	s.places.put(id.GroupKind(), resource)
	return s.read(ctx, resource, id, since)
}

// read reads an object whose resource is known, with Live's results. If the resource is outdated, it returns an error,
// because only the storage of an existing kind gives a reliable answer.
func (s *Store) read(ctx context.Context, resource schema.GroupVersionResource, id hubv1.ObjectIdentity, since time.Time) (obj *unstructured.Unstructured, gone bool, err error) {
	obj, err = s.requests.Resource(resource).Namespace(id.Namespace).Get(ctx, id.Name, metav1.GetOptions{})
	switch {
	case isGone(err):
		gone = true
	case err != nil:
		return nil, false, fmt.Errorf("reading %s uncached: %w", id, err)
	default:
		trim(obj)
		if obj.GetDeletionTimestamp() == nil {
			return obj, false, nil
		}
	}
	if err := s.stands(ctx, resource.GroupResource(), since); err != nil {
		return nil, false, err
	}
	if gone {
		return nil, true, nil
	}
	return obj, false, nil
}

// places caches the resources of kinds for recentFor, so that the deletion of many objects does not need discovery for
// each.
type places struct {
	mu    sync.Mutex
	found map[schema.GroupKind]place
}

type place struct {
	resource schema.GroupVersionResource
	at       time.Time
}

func (p *places) get(gk schema.GroupKind) (schema.GroupVersionResource, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.found[gk]
	return found.resource, ok && time.Since(found.at) < recentFor
}

func (p *places) put(gk schema.GroupKind, resource schema.GroupVersionResource) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found == nil {
		p.found = map[schema.GroupKind]place{}
	}
	p.found[gk] = place{resource: resource, at: time.Now()}
}

// isGone reports whether the object is missing, not its kind: the API server responds with 404 in both cases.
func isGone(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// stands returns an error unless the kind has existed since then and is not being deleted. The check comes after the
// read of the object: objects disappear with their definition only after it has a deletionTimestamp, which is never
// removed.
func (s *Store) stands(ctx context.Context, r schema.GroupResource, since time.Time) error {
	if builtIn(r.Group) {
		return nil
	}
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	err := s.definitions.Get(ctx, client.ObjectKey{Name: r.String()}, definition)
	switch {
	case isGone(err):
		return undecided{fmt.Sprintf("no CustomResourceDefinition %s defines the kind", r)}
	case err != nil:
		return fmt.Errorf("reading the CustomResourceDefinition %s: %w", r, err)
	case definition.DeletionTimestamp != nil:
		return undecided{fmt.Sprintf("the CustomResourceDefinition %s is being deleted", r)}
	case !since.IsZero() && definition.CreationTimestamp.After(since):
		return undecided{fmt.Sprintf("the CustomResourceDefinition %s was deleted and created again at %s, so its objects were deleted with it: create them again", r, definition.CreationTimestamp.UTC().Format(time.RFC3339))}
	}
	return nil
}

// builtIn reports whether the API server itself serves the group. It uses the list of the client library, not of the
// server, so that a custom group never counts as built-in. Kinds of an aggregated API server are neither built-in nor
// custom: nothing proves that they exist.
func builtIn(group string) bool {
	switch group {
	case "apiextensions.k8s.io", "apiregistration.k8s.io":
		return true
	}
	return builtInKinds.IsGroupRegistered(group)
}

// builtInKinds is a separate scheme, because other packages may add kinds to the one that client-go shares.
var builtInKinds = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(s))
	return s
}()
