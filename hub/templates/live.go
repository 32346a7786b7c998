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

// undecided means that the object is missing, and no read can tell that it was deleted. Asking again soon is no use.
type undecided struct{ why string }

// Error says why.
func (u undecided) Error() string { return u.why }

// Undecided is how callers tell this from a failed read, without knowing this package.
func (undecided) Undecided() bool { return true }

// Live reads an object from the API server. Either the object is returned, which may have a deletionTimestamp, or gone
// is true, or there is an error.
//
// That an object is gone, or was asked to go, counts only if it has nothing to do with its kind: the answer must come
// from the kind's own storage, and the CustomResourceDefinition must exist, not be terminating and be no younger than
// since, the time at which the object was known to exist. A definition that was deleted and made again has taken its
// objects with it.
func (s *Store) Live(ctx context.Context, id hubv1.ObjectIdentity, since time.Time) (obj *unstructured.Unstructured, gone bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, answer.Timeout)
	defer cancel()
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

// read is Live for an object whose resource is known. If the resource is outdated, it returns an error, because only
// the storage of an existing kind gives an answer.
func (s *Store) read(ctx context.Context, resource schema.GroupVersionResource, id hubv1.ObjectIdentity, since time.Time) (obj *unstructured.Unstructured, gone bool, err error) {
	obj, err = s.requests.Resource(resource).Namespace(id.Namespace).Get(ctx, id.Name, metav1.GetOptions{})
	switch {
	case isGone(err):
		gone = true
	case err != nil:
		return nil, false, fmt.Errorf("reading %s uncached: %w", id, err)
	case obj.GetDeletionTimestamp() == nil:
		return obj, false, nil
	}
	if err := s.stands(ctx, resource.GroupResource(), since); err != nil {
		return nil, false, err
	}
	if gone {
		return nil, true, nil
	}
	return obj, false, nil
}

// placeHolds is how long it is relied on where a kind was found.
const placeHolds = 10 * time.Second

// places are the resources of kinds, so that the end of many objects does not cost discovery for each.
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
	return found.resource, ok && time.Since(found.at) < placeHolds
}

func (p *places) put(gk schema.GroupKind, resource schema.GroupVersionResource) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found == nil {
		p.found = map[schema.GroupKind]place{}
	}
	p.found[gk] = place{resource: resource, at: time.Now()}
}

// isGone tells an object that is missing from a kind that is missing: both are answered with 404.
func isGone(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// stands returns an error unless the kind existed since then and goes on to exist. It is asked after the object was:
// objects vanish with their definition only after that has its deletionTimestamp, which is never taken back.
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
		return undecided{fmt.Sprintf("the CustomResourceDefinition %s was deleted and created again at %s, so its objects were deleted with it", r, definition.CreationTimestamp.UTC().Format(time.RFC3339))}
	}
	return nil
}

// builtIn says whether the API server itself serves the group. The list is that of the client library, not of the
// server, so that a custom group never passes for a built-in one. Kinds of an aggregated API server are neither:
// nothing says that they stand.
func builtIn(group string) bool {
	switch group {
	case "apiextensions.k8s.io", "apiregistration.k8s.io":
		return true
	}
	return builtInKinds.IsGroupRegistered(group)
}

// builtInKinds is a scheme of our own, because other packages may add kinds to the one that client-go shares.
var builtInKinds = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(s))
	return s
}()
