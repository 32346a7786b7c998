// Package kindwatch keeps copies of the objects of chosen kinds of one API server, kind by kind.
//
// Every kind has its own goroutine, which resolves, lists and watches. It shares no lock over I/O with the others: a
// kind that is not served, not permitted or hangs does not delay them, and no caller waits for a first list.
//   - Listed objects are kept while a watch is repaired: an object that cannot be read is not gone.
//   - A watch that ends is opened again where it ended. The kind is listed again only if the server no longer knows
//     that place. The Reflector of client-go lists anew after most broken connections. ADR 18 compares the two.
//   - Objects are reduced by Options.Transform page by page, so that memory holds at most one page of whole objects.
//     How many objects make a page depends on their size, and only a few kinds of the process list at the same time.
//
// Callers decide what a missing object means. Stopping a kind reports no object as gone.
package kindwatch

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// Options of a Set. Client and Resolve are required.
type Options struct {
	// Client must have no time-out, because that would end watches.
	Client dynamic.Interface
	// Resolve is called when a kind is started, and again after the server said that it does not serve the kind. It may
	// block until its own deadline: only this kind waits.
	Resolve func(schema.GroupVersionKind) (schema.GroupVersionResource, error)
	// Namespaces are those whose objects of a namespaced resource are watched, each by a watch of its own; none means all
	// of them by one watch. It is asked once, when the resource of a kind is known, and must answer from memory. Unset
	// means all for every resource.
	Namespaces func(schema.GroupVersionResource) []string
	// LabelSelector of the objects. Empty means all.
	LabelSelector string
	// Transform reduces an object to the part to keep, with namespace, name, uid and resourceVersion. If it refuses an
	// object, the former part is kept. Unset keeps the whole object.
	Transform func(*unstructured.Unstructured) (metav1.Object, error)
	// Handler is called for changes, one at a time for each kind and watched namespace. old is nil for a new object, new
	// is nil for a deleted one. An object that was deleted and created again while the watch was away is one change with
	// another uid.
	Handler func(gvk schema.GroupVersionKind, old, new metav1.Object)
	// OnState is called when the state of a kind changes, and when a kind was listed after Find; in both cases after the
	// handler has got the objects.
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
	// Delivered is true once the handler has got the objects of the first list, and stays true.
	Delivered bool
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

	mu sync.Mutex
	// kinds are parts: one for all namespaces, or one for each of Options.Namespaces.
	kinds map[schema.GroupVersionKind][]*kind
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
	if o.Namespaces == nil {
		o.Namespaces = func(schema.GroupVersionResource) []string { return nil }
	}
	return &Set{options: o, kinds: map[schema.GroupVersionKind][]*kind{}}
}

// Start watches the kind until Stop or the end of ctx. It does nothing for a kind that is already watched.
func (s *Set) Start(ctx context.Context, gvk schema.GroupVersionKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.kinds[gvk], func(k *kind) bool { return k.ctx.Err() == nil }) {
		return
	}
	s.kinds[gvk] = nil
	s.start(newKind(ctx, gvk, s))
}

// start runs a part of a kind, with the lock held.
func (s *Set) start(k *kind) {
	s.kinds[k.gvk] = append(s.kinds[k.gvk], k)
	go func() {
		defer s.forget(k)
		k.run()
	}()
}

// divide assigns the first part of a kind to the first namespace, and starts a part for each other namespace. It runs
// before the first list, so that the kind is synced only when all parts are. All parts end with the first one.
func (s *Set) divide(first *kind, namespaces []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first.namespace = namespaces[0]
	if !slices.Contains(s.kinds[first.gvk], first) {
		return // it was stopped meanwhile
	}
	for _, namespace := range namespaces[1:] {
		k := newKind(first.ctx, first.gvk, s)
		k.namespace = namespace
		s.start(k)
	}
}

// Stop ends the watches of the kind and drops its objects. It does not wait: it may be called by a handler.
func (s *Set) Stop(gvk schema.GroupVersionKind) {
	for _, k := range s.parts(gvk) {
		s.forget(k)
	}
}

// forget ends k. A later entry of the same kind stays.
func (s *Set) forget(k *kind) {
	k.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	left := slices.DeleteFunc(slices.Clone(s.kinds[k.gvk]), func(other *kind) bool { return other == k })
	if len(left) == 0 {
		delete(s.kinds, k.gvk)
	} else {
		s.kinds[k.gvk] = left
	}
}

// parts of a kind; what is returned is not to be changed.
func (s *Set) parts(gvk schema.GroupVersionKind) []*kind {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clip(s.kinds[gvk])
}

// part returns the part that watches a namespace; nil if none does.
func (s *Set) part(gvk schema.GroupVersionKind, namespace string) *kind {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.kinds[gvk] {
		if k.namespace == "" || k.namespace == namespace {
			return k
		}
	}
	return nil
}

// Watches reports whether the objects of a kind are watched in a namespace. It is true while that is unknown.
func (s *Set) Watches(gvk schema.GroupVersionKind, namespace string) bool {
	return len(s.parts(gvk)) == 0 || s.part(gvk, namespace) != nil
}

// Key of an object for Get: "namespace/name", or "name" for a cluster-scoped object.
func Key(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// Get returns the object with this Key.
func (s *Set) Get(gvk schema.GroupVersionKind, key string) (metav1.Object, bool) {
	namespace, _, _ := strings.Cut(key, "/")
	k := s.part(gvk, namespace)
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
	var out []metav1.Object
	for _, k := range s.parts(gvk) {
		k.mu.RLock()
		out = slices.Grow(out, len(k.objects))
		for _, o := range k.objects {
			out = append(out, o)
		}
		k.mu.RUnlock()
	}
	return out
}

// State returns the state of the kind; false if it is not watched.
func (s *Set) State(gvk schema.GroupVersionKind) (State, bool) {
	parts := s.parts(gvk)
	if len(parts) == 0 {
		return State{}, false
	}
	out := parts[0].current()
	for _, k := range parts[1:] {
		out = out.with(k.current())
	}
	return out, true
}

// with is the state of a kind of which two parts have these states: what holds of both, and the first trouble.
func (s State) with(other State) State {
	out := s
	out.Synced, out.Delivered = s.Synced && other.Synced, s.Delivered && other.Delivered
	if out.Reason == "" {
		out.Reason, out.Message = other.Reason, other.Message
	}
	if out.Refused == "" {
		out.Refused = other.Refused
	}
	if other.Since.After(out.Since) {
		out.Since = other.Since
	}
	return out
}

// Restart makes every kind give up what it waits for and open its watch again now, where it ended. Objects stay.
func (s *Set) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, parts := range s.kinds {
		for _, k := range parts {
			k.restart()
		}
	}
}

// Retry makes a kind that cannot be followed try again now.
func (s *Set) Retry(gvk schema.GroupVersionKind) {
	for _, k := range s.parts(gvk) {
		if k.troubled() {
			k.restart()
		}
	}
}

// Resource is where the objects of a kind are read; empty until that is known.
func (s *Set) Resource(gvk schema.GroupVersionKind) schema.GroupVersionResource {
	parts := s.parts(gvk)
	if len(parts) == 0 {
		return schema.GroupVersionResource{}
	}
	parts[0].mu.RLock()
	defer parts[0].mu.RUnlock()
	return parts[0].resource
}

// Find makes a kind be resolved and listed once more, now, as when the server prefers another version of the kind. The
// handler is told as by Relist.
func (s *Set) Find(gvk schema.GroupVersionKind) {
	for _, k := range s.parts(gvk) {
		k.find()
	}
}

// Relist makes a kind list once more, now, as when Transform would make something else of the same objects. The handler
// is told of every object of that list, changed or not.
func (s *Set) Relist(gvk schema.GroupVersionKind) {
	for _, k := range s.parts(gvk) {
		k.relist()
	}
}
