// Package informer stores the objects of selected kinds of one API server in memory, and updates them by watches.
//
// Every kind has a goroutine. The goroutine finds the API resource of the kind, lists its objects and watches them. It
// holds no shared lock while it waits for the server. A kind that is not served, not permitted or hangs therefore does
// not delay other kinds, and no caller waits for a first list.
//
//   - Listed objects stay while a watch is repaired: an object that cannot be read is not deleted.
//   - A watch that ends continues at its last resourceVersion. The kind is listed again only if the server no longer
//     knows that version. client-go's Reflector lists again after most broken connections. ADR 18 compares the two.
//   - Options.Transform reduces objects page by page, so that memory has at most one page of whole objects. The number
//     of objects in a page depends on their size, and only a few kinds of the process list at the same time.
//
// Get returns no object before the first list, and none after a deletion. Callers must distinguish these cases by
// State.Synced. When a kind is stopped, the handler is not called for its objects.
package informer

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

	"github.com/hanse-dev/hanse/internal/answer"
)

// Options are the settings of a Set. Client and Resolve are required.
type Options struct {
	// Client must have no timeout, because a timeout would end watches.
	Client dynamic.Interface
	// Resolve returns the API resource of a kind. It is called when a kind is started, after Find, and again after the
	// server has answered that it does not serve the kind. It may block, because only this kind waits for the result.
	Resolve func(schema.GroupVersionKind) (schema.GroupVersionResource, error)
	// Namespaces returns the namespaces in which a namespaced resource is watched. Each namespace has its own watch. If
	// the result is empty, or Namespaces is nil, one watch covers all namespaces. Namespaces is called each time the
	// resource of a kind has been found, and must not block.
	Namespaces func(schema.GroupVersionResource) []string
	// LabelSelector selects the objects that are stored. If it is empty, all objects are stored.
	LabelSelector string
	// Transform reduces an object to the part that is stored. The part must have the object's namespace, name, UID and
	// resourceVersion. Transform returns an error to refuse an object. In this case, the previously stored part stays. If
	// Transform is nil, the whole object is stored.
	Transform func(*unstructured.Unstructured) (metav1.Object, error)
	// Group returns the group of a stored part, for Grouped. A part whose group is empty is in no group. If Group is nil,
	// there are no groups.
	Group func(metav1.Object) string
	// Retained limits the memory of the stored parts, and is told of lists and events that are too large. If it is set,
	// the parts must be Sized. Objects that do not fit fail the list or the watch, and the objects that were stored before
	// stay. If Retained is nil, the memory has no limit.
	Retained *answer.Retained
	// Handler is called for changes of objects, one at a time for each kind and watched namespace. old is nil for a new
	// object, and new is nil for a deleted object. If an object was deleted and created again while the watch was down,
	// Handler is called once. old and new then have different UIDs.
	Handler func(gvk schema.GroupVersionKind, old, new metav1.Object)
	// OnState is called when the state of a kind changes. It is also called after a Find, when the new list is stored and
	// Handler has been called for its objects.
	OnState func(schema.GroupVersionKind, State)
	// ListTimeout limits one page of a list, and the opening of a watch. Default 30 s.
	ListTimeout time.Duration
	// IdleTimeout is the time after which a watch without events and bookmarks is opened again. Default 3 min, because
	// servers send a bookmark about once a minute.
	IdleTimeout time.Duration
}

// State is the state of one kind.
type State struct {
	// Synced becomes true when the objects of the first list are stored, and stays true.
	Synced bool
	// Delivered becomes true when the handler was called for all objects of the first list, and stays true.
	Delivered bool
	// Reason says why the kind cannot be watched, and Message explains it. Reason is ReasonKindNotServed, ReasonForbidden,
	// ReasonUnauthorized, ReasonThrottled, ReasonServerError, ReasonAnswerTooLarge or ReasonUnreachable of the API. It is
	// empty while the kind is watched.
	Reason, Message string
	// Since is the time of the last change of Synced, or the time at which the kind began to fail or worked again. It is
	// the time of the last Restart if that is later. The time of a failure before the Restart would say nothing about a
	// server that has come back.
	Since time.Time
	// Refused names the last object that Transform refused, with the error. It becomes empty when the next list begins.
	Refused string
}

// Set has the kinds that are watched on one API server.
type Set struct {
	options Options

	mu sync.Mutex
	// kinds has the parts of each kind. Each part has its own watch: one part for all namespaces, or one part for each
	// namespace of Options.Namespaces.
	kinds map[schema.GroupVersionKind][]*kind
}

// New returns a Set that watches no kinds.
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

// Start watches the kind until Stop or the end of ctx. It has no effect for a kind that is already watched.
func (s *Set) Start(ctx context.Context, gvk schema.GroupVersionKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.kinds[gvk], func(k *kind) bool { return k.ctx.Err() == nil }) {
		return
	}
	s.kinds[gvk] = nil
	s.start(newKind(ctx, gvk, s))
}

// start starts the goroutine of one part of a kind (see Set.kinds). The caller holds s.mu.
func (s *Set) start(k *kind) {
	s.kinds[k.gvk] = append(s.kinds[k.gvk], k)
	go func() {
		defer s.forget(k)
		k.run()
	}()
}

// divide replaces the only part of a kind, first, by one part for each namespace. first becomes the part of the first
// namespace. divide is called before the first list, so that the kind is synced only when all parts are synced. The end
// of first's context ends all parts.
func (s *Set) divide(first *kind, namespaces []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first.namespace = namespaces[0]
	if !slices.Contains(s.kinds[first.gvk], first) {
		return // the kind was stopped
	}
	for _, namespace := range namespaces[1:] {
		k := newKind(first.ctx, first.gvk, s)
		k.namespace = namespace
		s.start(k)
	}
}

// Stop ends the watches of the kind and drops its objects. It does not wait, because a handler may call it.
func (s *Set) Stop(gvk schema.GroupVersionKind) {
	for _, k := range s.parts(gvk) {
		s.forget(k)
	}
}

// forget stops the part k and removes it from the set. If the kind was stopped and started again in the meantime, the
// new part stays.
func (s *Set) forget(k *kind) {
	k.cancel()
	k.kept.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	left := slices.DeleteFunc(slices.Clone(s.kinds[k.gvk]), func(other *kind) bool { return other == k })
	if len(left) == 0 {
		delete(s.kinds, k.gvk)
	} else {
		s.kinds[k.gvk] = left
	}
}

// parts returns the parts of a kind (see Set.kinds). The caller must not change the result.
func (s *Set) parts(gvk schema.GroupVersionKind) []*kind {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clip(s.kinds[gvk])
}

// part returns the part of a kind that watches a namespace. It is nil if the namespace is not watched.
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

// Watches reports whether objects of a kind in a namespace are watched. It also returns true if this is not known: for
// a kind that is not started, and until the API resource of the kind is found.
func (s *Set) Watches(gvk schema.GroupVersionKind, namespace string) bool {
	return len(s.parts(gvk)) == 0 || s.part(gvk, namespace) != nil
}

// Key returns the key of an object for Get: "namespace/name", or "name" for a cluster-scoped object.
func Key(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// Get returns the stored object with this Key. It returns false if there is no such object.
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

// List returns the objects of the kind in random order.
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

// Grouped returns the objects of the kind in a group of Options.Group, in random order. Its cost does not depend on the
// other objects.
func (s *Set) Grouped(gvk schema.GroupVersionKind, group string) []metav1.Object {
	var out []metav1.Object
	for _, k := range s.parts(gvk) {
		k.mu.RLock()
		for key := range k.groups[group] {
			out = append(out, k.objects[key])
		}
		k.mu.RUnlock()
	}
	return out
}

// State returns the state of the kind. The second result is false if the kind is not watched.
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

// with combines the states of two parts of a kind. Synced and Delivered are true only if they are true for both parts.
// If both parts fail, the result has the Reason and Message of s.
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

// Restart makes every kind open its watch again at once, at the resourceVersion of its last event. It also ends the
// pauses after failures. The stored objects stay.
func (s *Set) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, parts := range s.kinds {
		for _, k := range parts {
			k.mu.Lock()
			k.state.Since = time.Now()
			k.mu.Unlock()
			k.orders.restart()
		}
	}
}

// Retry makes a kind whose watch fails try again at once.
func (s *Set) Retry(gvk schema.GroupVersionKind) {
	for _, k := range s.parts(gvk) {
		if k.troubled() {
			k.orders.restart()
		}
	}
}

// Resource returns the API resource of a kind. It is empty until the resource is known.
func (s *Set) Resource(gvk schema.GroupVersionKind) schema.GroupVersionResource {
	parts := s.parts(gvk)
	if len(parts) == 0 {
		return schema.GroupVersionResource{}
	}
	parts[0].mu.RLock()
	defer parts[0].mu.RUnlock()
	return parts[0].place.resource
}

// Find makes a kind find its API resource and list its objects again at once, for example because the server now
// prefers another version of the kind. The handler is then called for every object, as after Relist.
func (s *Set) Find(gvk schema.GroupVersionKind) {
	for _, k := range s.parts(gvk) {
		k.orders.find()
	}
}

// Relist lists a kind again at once, for example after a change of Transform's settings. The handler is called for
// every object of the list, even if the object has not changed.
func (s *Set) Relist(gvk schema.GroupVersionKind) {
	for _, k := range s.parts(gvk) {
		k.orders.relist()
	}
}
