// Package templates keeps the templates of the hub in memory. A template is a hub object of a wanted kind, or an object
// of a bundle (stored.go), which is not a separate object on the hub. If both exist with the same identity, the object
// of the bundle is the template.
//
//   - A kind is watched while it is wanted, without a label selector, at the version that the hub prefers. If its CRD
//     gets another preferred version, the watch changes to that version.
//   - Each start and repair of a watch uses a new discovery request. A REST mapper would cache a version that the hub
//     no longer serves, and request it for ever.
//   - A template that is missing in memory is not known to be deleted. Live asks the API server, and reports a deletion
//     only while the kind itself exists. A deleted CRD deletes its objects, although no user has deleted an object.
//   - Objects are stored as compressed JSON, and are cached unpacked for a while after a use.
//
// hub/schedule decides which objects are federated, and on which clusters.
package templates

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/internal/informer"
)

// Store has the templates: the hub objects of the wanted kinds, and the objects of bundles. It runs in every replica.
type Store struct {
	server     server
	watches    *informer.Set
	stored     *informer.Set // watches the Secrets with the objects of bundles
	namespace  string        // namespace of these Secrets
	recent     recent
	places     places
	unreadable unreadable
	listeners  listeners

	mu     sync.Mutex
	ctx    context.Context // context of Start; nil before
	wanted sets.Set[schema.GroupKind]
}

// server reads from the hub's API server without a cache.
type server struct {
	definitions *definitions
	discovery   discovery.DiscoveryInterface
	requests    dynamic.Interface
}

// listeners are called after changes of objects, of their statuses, and of the states of watches.
type listeners struct {
	onChange []func(hubv1.ObjectIdentity)
	onStatus []func(hubv1.ObjectIdentity)
	onState  []func(schema.GroupKind)
}

var (
	_ manager.Runnable               = &Store{}
	_ manager.LeaderElectionRunnable = &Store{}
)

// New returns a Store without wanted kinds. apiReader reads CustomResourceDefinitions without a cache. own is the
// namespace of the Secrets with the objects of bundles. If a resource is in namespaces, only its objects in the listed
// namespaces are templates.
func New(cfg *rest.Config, apiReader client.Reader, own string, namespaces map[schema.GroupResource][]string) (*Store, error) {
	short := rest.CopyConfig(cfg)
	short.Timeout = answer.Timeout
	long := rest.CopyConfig(cfg)
	long.Timeout = 0 // a client timeout would end watches

	d, err := discovery.NewDiscoveryClientForConfig(short)
	if err != nil {
		return nil, fmt.Errorf("making the discovery client of the hub: %w", err)
	}
	requests, err := informer.NewClient(short)
	if err != nil {
		return nil, fmt.Errorf("making the client for templates: %w", err)
	}
	watching, err := informer.NewClient(long)
	if err != nil {
		return nil, fmt.Errorf("making the client that watches templates: %w", err)
	}
	s := &Store{server: server{definitions: newDefinitions(apiReader), discovery: d, requests: requests}, namespace: own}
	s.stored = informer.New(informer.Options{
		Client: watching,
		Resolve: func(schema.GroupVersionKind) (schema.GroupVersionResource, error) {
			return corev1.SchemeGroupVersion.WithResource("secrets"), nil
		},
		Namespaces:    func(schema.GroupVersionResource) []string { return []string{own} },
		LabelSelector: hubv1.ManifestLabel,
		Transform:     s.keepStored,
		Group:         bundleOf,
		Handler:       s.storedChanged,
		OnState:       s.storedState,
	})
	s.watches = informer.New(informer.Options{
		Client: watching,
		Resolve: func(gvk schema.GroupVersionKind) (schema.GroupVersionResource, error) {
			ctx, cancel := context.WithTimeout(s.context(), answer.Timeout)
			defer cancel()
			return s.resource(ctx, gvk.GroupKind())
		},
		Namespaces: func(r schema.GroupVersionResource) []string { return namespaces[r.GroupResource()] },
		Transform:  s.keep,
		Handler:    s.changed,
		OnState: func(gvk schema.GroupVersionKind, state informer.State) {
			s.unreadable.log(s.context(), gvk.GroupKind(), state)
			for _, f := range s.listeners.onState {
				f(gvk.GroupKind())
			}
		},
	})
	return s, nil
}

// OnChange registers a function that is called for every object that is added, deleted, or changed in more than its
// status. Call OnChange before Start.
func (s *Store) OnChange(f func(hubv1.ObjectIdentity)) {
	s.listeners.onChange = append(s.listeners.onChange, f)
}

// OnStatus registers a function that is called for every object whose status alone has changed. Call OnStatus before
// Start.
func (s *Store) OnStatus(f func(hubv1.ObjectIdentity)) {
	s.listeners.onStatus = append(s.listeners.onStatus, f)
}

// OnState registers a function that is called when the state of a kind's watch on the hub changes, see State. Call
// OnState before Start.
func (s *Store) OnState(f func(schema.GroupKind)) {
	s.listeners.onState = append(s.listeners.onState, f)
}

// NeedLeaderElection implements manager.LeaderElectionRunnable. It returns false, because every replica renders from
// templates.
func (*Store) NeedLeaderElection() bool { return false }

// Start watches the wanted kinds until ctx ends.
func (s *Store) Start(ctx context.Context) error {
	s.mu.Lock()
	s.ctx = ctx
	for gk := range s.wanted {
		s.watches.Start(ctx, unversioned(gk))
	}
	s.mu.Unlock()
	s.stored.Start(ctx, secrets)
	// Only in tests, a process has a second Store. The metrics of the second Store are not exported.
	if err := metrics.Registry.Register(collector{s}); err == nil {
		defer metrics.Registry.Unregister(collector{s})
	}
	aging := time.NewTicker(recentFor)
	defer aging.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-aging.C:
			s.recent.age()
		}
	}
}

func (s *Store) context() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ctx
}

// Want sets the kinds to watch. It drops the objects of kinds that are not wanted any more. The kinds of hanse.dev are
// never watched.
func (s *Store) Want(kinds sets.Set[schema.GroupKind]) {
	wanted := sets.New[schema.GroupKind]()
	for gk := range kinds {
		if gk.Group != hubv1.GroupVersion.Group {
			wanted.Insert(gk)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.wanted
	s.wanted = wanted
	if s.ctx == nil {
		return
	}
	for gk := range wanted.Difference(before) {
		s.watches.Start(s.ctx, unversioned(gk))
	}
	for gk := range before.Difference(wanted) {
		s.watches.Stop(unversioned(gk))
	}
}

// Retry discovers the wanted kinds of the given groups again, because CRDs of these groups have changed. It retries
// kinds that were not served. If the hub now prefers another version of a kind, the watch changes to this version, and
// the functions of OnState are called.
func (s *Store) Retry(ctx context.Context, groups sets.Set[string]) {
	s.mu.Lock()
	wanted := s.wanted
	s.mu.Unlock()
	unserved := false
	for gk := range wanted {
		if !groups.Has(gk.Group) {
			continue
		}
		state, _ := s.State(gk)
		unserved = unserved || state.Reason == hubv1.ReasonKindNotServed
		if now := s.watches.Resource(unversioned(gk)); !now.Empty() {
			if preferred, err := s.resource(ctx, gk); err == nil && preferred != now {
				s.watches.Find(unversioned(gk))
			}
		}
	}
	if unserved {
		s.watches.Restart() // the watches of all kinds, which continue at their resourceVersion
	}
}

// Forbidden returns the wanted kinds that the hub may not read.
func (s *Store) Forbidden() []schema.GroupKind {
	s.mu.Lock()
	wanted := s.wanted
	s.mu.Unlock()
	var out []schema.GroupKind
	for gk := range wanted {
		if state, _ := s.State(gk); state.Reason == hubv1.ReasonForbidden {
			out = append(out, gk)
		}
	}
	return out
}

// RetryForbidden reads the kinds again at once that the hub could not read for lack of a right.
func (s *Store) RetryForbidden() {
	for _, gk := range s.Forbidden() {
		s.watches.Retry(unversioned(gk))
	}
}

// Wanted returns the watched kinds of a group, sorted by name.
func (s *Store) Wanted(group string) []schema.GroupKind {
	s.mu.Lock()
	wanted := s.wanted
	s.mu.Unlock()
	var out []schema.GroupKind
	for gk := range wanted {
		if gk.Group == group {
			out = append(out, gk)
		}
	}
	slices.SortFunc(out, func(a, b schema.GroupKind) int { return cmp.Compare(a.Kind, b.Kind) })
	return out
}

// Get returns a template, which is a hub object or an object of a bundle. The template is shared and must not be
// changed. If Get returns false, the object is not in memory, but it may exist on the API server; see Live.
func (s *Store) Get(id hubv1.ObjectIdentity) (*unstructured.Unstructured, bool) {
	r, ok := s.record(id)
	if !ok {
		return nil, false
	}
	return s.recent.get(r), true
}

// Head returns the metadata of a template that can be read without unpacking it: namespace, name, uid, resourceVersion,
// labels and BundleAnnotation. The result is shared and must not be changed.
func (s *Store) Head(id hubv1.ObjectIdentity) (metav1.Object, bool) {
	r, ok := s.record(id)
	if !ok {
		return nil, false
	}
	return r, true
}

// Content returns a number that changes when any part of a template except its status changes. A template is a hub
// object or an object of a bundle. The numbers of different processes cannot be compared. The number is 0 if there is
// no such template.
func (s *Store) Content(id hubv1.ObjectIdentity) uint64 {
	r, ok := s.record(id)
	if !ok {
		return 0
	}
	return r.rest
}

func (s *Store) record(id hubv1.ObjectIdentity) (*record, bool) {
	if stored, ok := s.storedRecord(id); ok {
		return stored.template, true
	}
	o, _ := s.watches.Get(unversioned(id.GroupKind()), informer.Key(id.Namespace, id.Name))
	r, ok := o.(*record)
	return r, ok
}

// keep makes the record of an object from a list or a watch. It also caches the unpacked object, because the handlers
// that are called next read it.
func (s *Store) keep(u *unstructured.Unstructured) (metav1.Object, error) {
	trim(u)
	r := pack(u)
	s.recent.put(r, u)
	return r, nil
}

// List returns the identities of the templates of a kind, in any order.
func (s *Store) List(gk schema.GroupKind) []hubv1.ObjectIdentity {
	objects := s.watches.List(unversioned(gk))
	ids := make([]hubv1.ObjectIdentity, 0, len(objects))
	for _, o := range objects {
		if id := identity(gk, o); !s.isStored(id) {
			ids = append(ids, id)
		}
	}
	for _, o := range s.stored.List(secrets) {
		if r, ok := o.(*storedRecord); ok && r.id.GroupKind() == gk {
			ids = append(ids, r.id)
		}
	}
	return ids
}

func (s *Store) isStored(id hubv1.ObjectIdentity) bool {
	_, ok := s.storedRecord(id)
	return ok
}

// State returns the state of the watch of a kind. It returns false if the kind is not watched.
func (s *Store) State(gk schema.GroupKind) (informer.State, bool) {
	return s.watches.State(unversioned(gk))
}

// StateOf returns the state of the watch that delivers the object: the watch of the stored objects if it is an object
// of a bundle, and otherwise the watch of its kind. It returns false if the kind is not watched.
func (s *Store) StateOf(id hubv1.ObjectIdentity) (informer.State, bool) {
	if s.isStored(id) {
		return s.StoredState(), true
	}
	return s.State(id.GroupKind())
}

// Watches reports whether the Store reads the objects of a kind in a namespace. It returns true while this is not
// known.
func (s *Store) Watches(gk schema.GroupKind, namespace string) bool {
	return s.watches.Watches(unversioned(gk), namespace)
}

func (s *Store) changed(gvk schema.GroupVersionKind, before, after metav1.Object) {
	o := after
	if o == nil {
		o = before
	}
	id, handlers := identity(gvk.GroupKind(), o), s.listeners.onChange
	if s.isStored(id) {
		return
	}
	was, _ := before.(*record)
	if is, ok := after.(*record); ok && was != nil && was.rest == is.rest {
		handlers = s.listeners.onStatus
		if was.resourceVersion == is.resourceVersion {
			return // the object is of another version
		}
	}
	s.notify(handlers, id)
}

func (s *Store) notify(handlers []func(hubv1.ObjectIdentity), id hubv1.ObjectIdentity) {
	for _, f := range handlers {
		f(id)
	}
}

func identity(gk schema.GroupKind, o metav1.Object) hubv1.ObjectIdentity {
	return hubv1.ObjectIdentity{Group: gk.Group, Kind: gk.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// unversioned returns the key of a kind for package informer. It has no version, because the version may change.
func unversioned(gk schema.GroupKind) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: gk.Group, Kind: gk.Kind}
}
