package templates

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/answer"
)

// undecided is the error of Live if an object is missing or being deleted, but the hub cannot tell whether a user
// deleted the object. The CustomResourceDefinition of the object's kind is then missing, is being deleted, or was
// created again. For an object of a bundle, the Secret with the object's manifest is missing. A retry would return the
// same error.
type undecided struct{ why string }

// Error implements error.
func (u undecided) Error() string { return u.why }

// Undecided marks the error, so that callers can distinguish it from a failed read without an import of this package.
func (undecided) Undecided() bool { return true }

// Live reads an object from the API server. It returns the object, which may have a deletionTimestamp, or gone if the
// object was deleted, or an error.
//
// gone is true only if the object was deleted while its kind existed. The response must therefore come from the storage
// of the kind. The CustomResourceDefinition must exist, must not be being deleted, and must not be younger than since,
// a time at which the object existed. If a definition was deleted and created again, its objects are lost without a
// user's request.
//
// For an object of a bundle, gone is always false. After the object is removed from the bundle, Live returns the object
// with a deletionTimestamp.
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

// read reads an object of a known resource. Its results have the same meaning as those of Live. If the API server does
// not serve the resource any more, it returns an error: a missing object proves a deletion only if the kind still
// exists.
func (s *Store) read(ctx context.Context, resource schema.GroupVersionResource, id hubv1.ObjectIdentity, since time.Time) (obj *unstructured.Unstructured, gone bool, err error) {
	obj, err = s.server.requests.Resource(resource).Namespace(id.Namespace).Get(ctx, id.Name, metav1.GetOptions{})
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
	if err := s.kindStays(ctx, resource.GroupResource(), since); err != nil {
		return nil, false, err
	}
	if gone {
		return nil, true, nil
	}
	return obj, false, nil
}

// places caches the resources of kinds for the time recentFor. If many objects are deleted together, one discovery
// request is then enough.
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

// isGone reports whether the response says that the object is missing. API servers also answer 404 if the kind is
// missing; for such a response, isGone returns false.
func isGone(err error) bool {
	return apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// KindStays returns an error unless the kind has existed since the given time and is not being deleted. If the error
// has a method Undecided that returns true, the objects of the kind were deleted with it.
func (s *Store) KindStays(ctx context.Context, gk schema.GroupKind, since time.Time) error {
	if builtIn(gk.Group) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, answer.Timeout)
	defer cancel()
	resource, err := s.resource(ctx, gk)
	if meta.IsNoMatchError(err) {
		return undecided{fmt.Sprintf("the hub does not serve the kind %s", gk)}
	}
	if err != nil {
		return fmt.Errorf("reading the kind %s uncached: %w", gk, err)
	}
	return s.kindStays(ctx, resource.GroupResource(), since)
}

// kindStays returns an error unless the kind has existed since the given time and is not being deleted. It must be
// called after the read of the object. A CRD gets its deletionTimestamp before its objects disappear, and never loses
// it.
func (s *Store) kindStays(ctx context.Context, r schema.GroupResource, since time.Time) error {
	if builtIn(r.Group) {
		return nil
	}
	definition, err := s.server.definitions.get(ctx, r.String())
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

// definitions reads the metadata of CustomResourceDefinitions, uncached. Concurrent calls for one definition share a
// read, because many objects of a kind may be deleted at once, and the API server decodes the whole definition for each
// read. A definition may have a megabyte. No call shares a read that began before the call.
type definitions struct {
	reader  client.Reader
	flight  singleflight.Group
	reading *semaphore.Weighted // taken during a read
}

func newDefinitions(r client.Reader) *definitions {
	return &definitions{reader: r, reading: semaphore.NewWeighted(1)}
}

func (d *definitions) get(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	read, err, _ := d.flight.Do(name, func() (any, error) {
		definition := &metav1.PartialObjectMetadata{}
		if err := d.reading.Acquire(ctx, 1); err != nil {
			return definition, err
		}
		defer d.reading.Release(1)
		d.flight.Forget(name) // the read begins now: later calls wait for the next read
		definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		return definition, d.reader.Get(ctx, client.ObjectKey{Name: name}, definition)
	})
	return read.(*metav1.PartialObjectMetadata), err
}

// builtIn reports whether the API server itself serves the group. It uses the list of groups in the client library. A
// CRD could add a group to the list of the server. For a kind of an aggregated API server it returns false, and no read
// can prove that the kind exists.
func builtIn(group string) bool {
	switch group {
	case "apiextensions.k8s.io", "apiregistration.k8s.io":
		return true
	}
	return builtInKinds.IsGroupRegistered(group)
}

// builtInKinds is a separate scheme, because other packages may add kinds to the shared scheme of client-go.
var builtInKinds = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(s))
	return s
}()
