// Package kindwatch keeps copies of the objects of chosen kinds of one API server, kind by kind.
//
// Every kind has its own goroutine, which resolves, lists and watches, and shares nothing that blocks with the others: a
// kind that is not served, not permitted or hangs costs itself only, and nobody waits for a first list.
//   - What was listed is kept while a watch is repaired: could not read is not gone.
//   - A watch that ends is opened again where it ended; only a server that no longer knows that place is listed anew.
//     The reflector of client-go lists anew after most broken connections and cannot be told to re-open, so it is not used.
//   - Objects are reduced by Options.Transform page by page, so that memory holds at most one page of whole objects. How many
//     objects make a page depends on their size, and only a few kinds of the process list at the same time.
//
// Nothing is decided here about what a missing object means, and stopping a kind reports no object as gone.
package kindwatch

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Options say what is watched and who is told. Client and Resolve are required.
type Options struct {
	// Client has no time-out of its own: that would cut watches.
	Client dynamic.Interface
	// Resolve is asked when a kind is started and again after the server said that it does not serve the kind. It may
	// block as long as its own deadline: only the kind in question waits.
	Resolve func(schema.GroupVersionKind) (schema.GroupVersionResource, error)
	// LabelSelector of the objects. Empty means all.
	LabelSelector string
	// Transform reduces an object to what is kept; what it returns must carry namespace, name, uid and resourceVersion.
	// An object that it refuses keeps its former copy, if there is one. Unset keeps the whole object.
	Transform func(*unstructured.Unstructured) (metav1.Object, error)
	// Handler is told of changes, one at a time per kind: old is nil for a new object, new is nil for one that is gone. A
	// deleted object that came back while the watch was away is one change with another uid.
	Handler func(gvk schema.GroupVersionKind, old, new metav1.Object)
	// OnState is told when the state of a kind changes, after the handler was told of the objects.
	OnState func(schema.GroupVersionKind, State)
	// ListTimeout is how long one page of a list, or the opening of a watch, may take. Default 30 s.
	ListTimeout time.Duration
	// IdleTimeout is how long a watch may bring neither event nor bookmark before it is opened again. Default 3 min:
	// servers send a bookmark about once a minute.
	IdleTimeout time.Duration
}

// State of one kind.
type State struct {
	// Synced is true once the objects of the first list can be read, and stays true.
	Synced bool
	// Told is true once the handler was told of them, and stays true: what it is told before is no news.
	Told bool
	// Reason is ReasonKindNotServed, ReasonForbidden, ReasonUnauthorized, ReasonThrottled, ReasonServerError,
	// ReasonAnswerTooLarge or ReasonUnreachable of the API while the kind cannot be followed, and empty while it can.
	Reason, Message string
	// Since is when Synced or Reason last changed.
	Since time.Time
	// Refused names the last object that the transform refused, with the error. It is emptied by the next list.
	Refused string
}

// Set is the kinds that are watched on one API server.
type Set struct {
	options Options

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]*kind
}

// New returns a Set without kinds.
func New(o Options) *Set {
	if o.ListTimeout == 0 {
		o.ListTimeout = 30 * time.Second
	}
	if o.IdleTimeout == 0 {
		o.IdleTimeout = 3 * time.Minute
	}
	if o.Transform == nil {
		o.Transform = func(u *unstructured.Unstructured) (metav1.Object, error) { return u, nil }
	}
	if o.Handler == nil {
		o.Handler = func(schema.GroupVersionKind, metav1.Object, metav1.Object) {}
	}
	if o.OnState == nil {
		o.OnState = func(schema.GroupVersionKind, State) {}
	}
	return &Set{options: o, kinds: map[schema.GroupVersionKind]*kind{}}
}

// Start watches the kind until Stop or the end of ctx. A kind that is already watched is left as it is.
func (s *Set) Start(ctx context.Context, gvk schema.GroupVersionKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.kinds[gvk]; k != nil && k.ctx.Err() == nil {
		return
	}
	k := newKind(ctx, gvk, &s.options)
	s.kinds[gvk] = k
	go func() {
		defer s.forget(gvk, k)
		k.run()
	}()
}

// Stop ends the watch of the kind and drops its objects. It does not wait: it may be called by a handler.
func (s *Set) Stop(gvk schema.GroupVersionKind) {
	if k := s.kind(gvk); k != nil {
		s.forget(gvk, k)
	}
}

// forget ends k; a later k of the same kind stays.
func (s *Set) forget(gvk schema.GroupVersionKind, k *kind) {
	k.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kinds[gvk] == k {
		delete(s.kinds, gvk)
	}
}

func (s *Set) kind(gvk schema.GroupVersionKind) *kind {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kinds[gvk]
}

// Key is what Get takes: "namespace/name", or "name" for a cluster-scoped object.
func Key(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// Get returns the object with this Key.
func (s *Set) Get(gvk schema.GroupVersionKind, key string) (metav1.Object, bool) {
	k := s.kind(gvk)
	if k == nil {
		return nil, false
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	o, ok := k.objects[key]
	return o, ok
}

// List returns the objects of the kind in no order.
func (s *Set) List(gvk schema.GroupVersionKind) []metav1.Object {
	k := s.kind(gvk)
	if k == nil {
		return nil
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	out := make([]metav1.Object, 0, len(k.objects))
	for _, o := range k.objects {
		out = append(out, o)
	}
	return out
}

// State returns the state of the kind; false if it is not watched.
func (s *Set) State(gvk schema.GroupVersionKind) (State, bool) {
	k := s.kind(gvk)
	if k == nil {
		return State{}, false
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.state, true
}

// Restart makes every kind give up what it waits for and open its watch again now, where it ended. Objects stay.
func (s *Set) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.kinds {
		k.restart()
	}
}

// Retry makes a kind that cannot be followed try again now.
func (s *Set) Retry(gvk schema.GroupVersionKind) {
	if k := s.kind(gvk); k != nil && k.troubled() {
		k.restart()
	}
}

// Relist makes a kind list once more, now, as when Transform would make something else of the same objects. The handler is told of
// every object of that list, changed or not.
func (s *Set) Relist(gvk schema.GroupVersionKind) {
	if k := s.kind(gvk); k != nil {
		k.relist()
	}
}
