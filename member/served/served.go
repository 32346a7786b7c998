// Package served knows the kinds of one member: which resource serves a kind, with which fields, and when that changes.
//
//   - The resource of a kind comes from the member's discovery, and is cached.
//   - The schema of a kind in use comes from the member's OpenAPI v3 document of its group and version. member/openapi
//     converts it. Members that publish equal documents share it.
//   - While a custom kind is in use or expected, the metadata of the member's CustomResourceDefinitions is watched. A
//     definition that is added, changed or deleted invalidates the answers about its kinds and queues the objects that
//     wait for it. There is no polling.
//
// A missing or unreadable schema is no failure: then no field and no value is checked. The caller decides how to treat
// an unknown field or a wrong value.
package served

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/hanse-dev/hanse/kindwatch"
)

// Options of a Kinds. All are required.
type Options struct {
	Discovery discovery.DiscoveryInterface
	// HTTP has the member's credentials and limits the size of responses.
	HTTP *http.Client
	// Definitions reads CustomResourceDefinitions, see MetadataOnly. It has no timeout.
	Definitions dynamic.Interface
	// OnChange is called for a kind in use when the member may have started or stopped serving it, or serves it
	// differently. It must not block.
	OnChange func(schema.GroupKind)
	// OnDefinition is called when a definition of an expected group was added, changed or deleted. It must not block.
	OnDefinition func()
}

// Kinds caches the answers of one member.
type Kinds struct {
	ctx         context.Context
	options     Options
	definitions *kindwatch.Set

	mu       sync.Mutex
	kinds    map[schema.GroupVersionKind]*kind
	expected sets.Set[string] // groups
}

// kind has the answers about one kind. Its fields are guarded by Kinds.mu.
type kind struct {
	used bool // objects of it are watched

	resource  *Resource // nil until found
	hasStatus bool      // when it was last found
	missing   time.Time // when the member answered that it does not serve the kind
	// changes counts the events that invalidated the answers. An answer that was requested before the last event is not
	// kept.
	changes int
	// troubled is true if the member lacked the kind, or fields of an object, since the last event.
	troubled bool
	// nudge ends the pause of the goroutine that wakes the kind; nil if there is none.
	nudge chan struct{}
	// went is when the definition was deleted; zero if there was another event since. While the resource is not known, the
	// deletion of any definition of the group counts.
	went time.Time
	// changed is when the definition was last added or changed; zero if no event showed that.
	changed time.Time

	document document
}

// invalidate makes the next call of schemaOf fetch the schema.
func (k *kind) invalidate() { k.document.invalidations++ }

// Resource describes how a kind is served.
type Resource struct {
	schema.GroupVersionResource
	Namespaced bool
	// HasStatus is true for a custom resource with a status subresource.
	HasStatus bool
}

const (
	// How long the answer holds that a kind is not served. It holds long if a watch would show the definition, and then a
	// write is tried again as seldom. A kind of an aggregated API server has no definition.
	missingFor        = 2 * time.Second
	missingForWatched = 5 * time.Minute
	// stillDiscovered is how long discovery may list a kind after the deletion of its definition. No event ends that
	// time, so such an answer is not cached.
	stillDiscovered = 10 * time.Second
)

// NewForConfig returns a Kinds that uses the config requests for requests, and the config watches, which has no
// timeout, to watch definitions. See Options for changed and defined.
func NewForConfig(ctx context.Context, requests, watches *rest.Config, changed func(schema.GroupKind), defined func()) (*Kinds, error) {
	http, err := rest.HTTPClientFor(requests)
	if err != nil {
		return nil, fmt.Errorf("making the client for schemas: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfigAndClient(requests, http)
	if err != nil {
		return nil, fmt.Errorf("making the discovery client: %w", err)
	}
	definitions, err := dynamic.NewForConfig(MetadataOnly(watches))
	if err != nil {
		return nil, fmt.Errorf("making the client for definitions: %w", err)
	}
	return New(ctx, Options{Discovery: disco, HTTP: http, Definitions: definitions, OnChange: changed, OnDefinition: defined}), nil
}

// New returns a Kinds without answers. Its watch ends with ctx.
func New(ctx context.Context, o Options) *Kinds {
	k := &Kinds{ctx: ctx, options: o, kinds: map[schema.GroupVersionKind]*kind{}}
	k.definitions = newDefinitions(o.Definitions, k.definitionChanged)
	return k
}

// known returns the entry of a kind. The caller holds k.mu.
func (k *Kinds) known(gvk schema.GroupVersionKind) *kind {
	if k.kinds[gvk] == nil {
		k.kinds[gvk] = &kind{document: document{turn: make(chan struct{}, 1)}}
	}
	return k.kinds[gvk]
}

// Find returns the resource of a kind, and asks the member if it is unknown. A kind that the member does not serve is a
// meta.NoKindMatchError.
func (k *Kinds) Find(gvk schema.GroupVersionKind) (Resource, error) {
	unserved := &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	if k.isMissing(gvk) {
		return Resource{}, unserved
	}
	k.mu.Lock()
	known := k.known(gvk)
	found, changes := known.resource, known.changes
	k.mu.Unlock()
	if found != nil {
		return *found, nil
	}
	found, err := k.discover(gvk)
	if err != nil {
		return Resource{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	known = k.known(gvk)
	switch {
	case known.changes != changes:
	case found == nil:
		known.resource, known.missing = nil, time.Now()
	case time.Since(known.went) > stillDiscovered:
		known.resource, known.missing = found, time.Time{}
	}
	if found != nil {
		known.hasStatus = found.HasStatus // an answer from before a change is better than none
	}
	if found == nil {
		known.troubled = true
		return Resource{}, unserved
	}
	return *found, nil
}

// isMissing reports whether the answer that the member does not serve the kind is still valid.
func (k *Kinds) isMissing(gvk schema.GroupVersionKind) bool {
	holds := missingFor
	if k.Watched(gvk.Group) {
		holds = missingForWatched
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.kinds[gvk]
	return known != nil && !known.missing.IsZero() && time.Since(known.missing) < holds
}

// The limits of a group and version. It is read resource by resource.
const (
	longestDiscovery = 16 << 20
	mostResources    = 10_000
	longestResource  = 64 << 10
)

// discover reads the resource of a kind from the member; nil if the member does not serve it.
func (k *Kinds) discover(gvk schema.GroupVersionKind) (*Resource, error) {
	var found *Resource
	withStatus := map[string]bool{} // names of resources with a status subresource
	err := k.eachResource(k.ctx, gvk.GroupVersion(), func(r listedResource) {
		switch resource, sub, isSub := strings.Cut(r.Name, "/"); {
		case isSub && sub == "status":
			withStatus[resource] = true
		case !isSub && r.Kind == gvk.Kind && len(validation.IsDNS1035Label(r.Name)) == 0:
			found = &Resource{GroupVersionResource: gvk.GroupVersion().WithResource(r.Name), Namespaced: r.Namespaced}
		}
	})
	if found == nil || err != nil {
		return nil, err
	}
	// Built-in kinds have their own health rules: an empty status does not count for them.
	found.HasStatus = withStatus[found.Resource] && !isBuiltIn(gvk.Group)
	return found, nil
}

// Forget makes the next Find ask the member again, unless the member has just answered that it does not serve the kind.
func (k *Kinds) Forget(gvk schema.GroupVersionKind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known(gvk).resource = nil
}

// HasStatus answers from memory.
func (k *Kinds) HasStatus(gvk schema.GroupVersionKind) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.kinds[gvk]
	return known != nil && known.hasStatus
}

// Use sets whether objects of a kind are watched on the member. The answers about a kind that is no longer watched are
// dropped.
func (k *Kinds) Use(gvk schema.GroupVersionKind, used bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if used {
		k.known(gvk).used = true
	} else {
		delete(k.kinds, gvk)
	}
	k.watchDefinitions()
}

// Expect sets the kinds that may be used. OnDefinition is called for all definitions of their groups.
func (k *Kinds) Expect(kinds []schema.GroupKind) {
	groups := sets.New[string]()
	for _, gk := range kinds {
		groups.Insert(gk.Group)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.expected = groups
	k.watchDefinitions()
}

// watchDefinitions watches definitions while a custom kind is in use or expected. The caller holds k.mu.
func (k *Kinds) watchDefinitions() {
	for group := range k.expected {
		if !isBuiltIn(group) {
			k.definitions.Start(k.ctx, definition)
			return
		}
	}
	for other, known := range k.kinds {
		if known.used && !isBuiltIn(other.Group) {
			k.definitions.Start(k.ctx, definition)
			return
		}
	}
	k.definitions.Stop(definition)
}

// Restart restarts the watch at once, as after a new link, and invalidates every schema: the member may have been
// upgraded.
func (k *Kinds) Restart() {
	k.definitions.Restart()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, known := range k.kinds {
		known.invalidate()
		known.missing = time.Time{}
	}
}

// isBuiltIn reports whether the group belongs to Kubernetes itself, so that its kinds have no CustomResourceDefinition.
func isBuiltIn(group string) bool {
	return clientgoscheme.Scheme.IsGroupRegistered(group) || group == definition.Group || group == "apiregistration.k8s.io"
}
