// Package discovery caches the kinds of one member: which resource serves a kind, and which fields the kind has. It
// reports when a kind may have changed.
//
//   - The resource of a kind comes from the member's discovery.
//   - The schema of a kind in use comes from the member's OpenAPI v3 document of its group and version. member/openapi
//     parses it. Members that publish equal documents share one parsed schema.
//   - While a custom kind is in use or expected, the metadata of the member's CustomResourceDefinitions is watched. A
//     definition that is added, changed or deleted invalidates the answers about its kinds and queues the objects that
//     wait for it. There is no polling.
//
// If a schema is missing or cannot be read, no field and no value is checked. This is not an error. The caller decides
// what to do with an unknown field or an invalid value.
package discovery

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

	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/internal/informer"
)

// Options has the clients and callbacks of a Kinds. All fields except Retained are required.
type Options struct {
	Discovery discovery.DiscoveryInterface
	// HTTP is a client with the hub's credentials for the member. It limits the size of responses.
	HTTP *http.Client
	// Definitions reads CustomResourceDefinitions, see MetadataOnly. It must have no timeout.
	Definitions dynamic.Interface
	// Retained limits the memory of schemas and marks of definitions. If it is nil, the memory has no limit.
	Retained *answer.Retained
	// OnChange is called for a kind in use, if the member may have started or stopped serving it, or may serve it with
	// other fields. It must not block.
	OnChange func(schema.GroupKind)
	// OnDefinition is called when a CustomResourceDefinition was added, changed or deleted, if its API group is one of
	// those that the last call of Expect has set. It must not block.
	OnDefinition func()
}

// Kinds caches the answers of one member.
type Kinds struct {
	ctx         context.Context
	options     Options
	definitions *informer.Set

	mu       sync.Mutex
	kinds    map[schema.GroupVersionKind]*kind
	retained *answer.Part     // the memory of the schemas
	expected sets.Set[string] // API groups
}

// kind has the cached answers about one kind. Kinds.mu guards its fields.
type kind struct {
	used bool // objects of the kind are watched

	resource  *Resource // nil until the resource was found
	hasStatus bool      // as of the last time when the resource was found
	missing   time.Time // the time when the member answered that it does not serve the kind
	// changes is the number of events that have made the cached answers invalid. If a request was sent before the last
	// event, its answer is not cached.
	changes int
	// troubled is true if objects of the kind may wait for a change of its definition, because the member lacks the kind
	// or a field, or the schema forbids a value.
	troubled bool
	// nudge is a channel. A value on it makes wake stop waiting and queue the objects of the kind for another write. nudge
	// is nil if wake does not run for this kind.
	nudge chan struct{}
	// went is the time at which the definition was deleted. It is zero if another event of the definition has come since.
	// While the resource of the kind is not known, the deletion of any definition of its group sets went.
	went time.Time
	// changed is the time when the CustomResourceDefinition of the kind was last added or changed. It is zero if no watch
	// event has reported that.
	changed time.Time

	document document
}

// invalidate makes the next call of schemaOf fetch the schema.
func (k *kind) invalidate() { k.document.invalidations++ }

// Resource has the resource that serves a kind.
type Resource struct {
	schema.GroupVersionResource
	Namespaced bool
	// HasStatus is true for a custom resource with a status subresource.
	HasStatus bool
}

const (
	// missingFor is how long the hub believes an answer that the member does not serve a kind. If the watch of
	// CustomResourceDefinitions confirms the answer (see confirmsMissing), missingForWatched replaces it. A failed write
	// of the kind is then retried after missingForWatched, too.
	missingFor        = 2 * time.Second
	missingForWatched = 5 * time.Minute
	// stillDiscovered is how long discovery may still list a kind after its definition was deleted. No event reports the
	// end of this time. During this time, an answer of discovery that lists the kind is therefore not cached.
	stillDiscovered = 10 * time.Second
)

// NewForConfig returns a Kinds. The argument requests is the config for its requests. The argument watches is the
// config for the watch of definitions, and has no timeout. retained is Options.Retained, changed is Options.OnChange,
// and defined is Options.OnDefinition.
func NewForConfig(ctx context.Context, requests, watches *rest.Config, retained *answer.Retained, changed func(schema.GroupKind), defined func()) (*Kinds, error) {
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
	return New(ctx, Options{Discovery: disco, HTTP: http, Definitions: definitions, Retained: retained, OnChange: changed, OnDefinition: defined}), nil
}

// New returns a Kinds with an empty cache. Its watch ends with ctx.
func New(ctx context.Context, o Options) *Kinds {
	k := &Kinds{ctx: ctx, options: o, kinds: map[schema.GroupVersionKind]*kind{}, retained: o.Retained.SharedPart()}
	context.AfterFunc(ctx, k.retained.Close)
	k.definitions = newDefinitions(o.Definitions, o.Retained, k.definitionChanged)
	return k
}

// known returns the cached answers about a kind, and creates them if there are none. The caller holds k.mu.
func (k *Kinds) known(gvk schema.GroupVersionKind) *kind {
	if k.kinds[gvk] == nil {
		k.kinds[gvk] = &kind{document: document{turn: make(chan struct{}, 1)}}
	}
	return k.kinds[gvk]
}

// Find returns the resource of a kind. It asks the member if the cache has no answer. It returns a
// meta.NoKindMatchError if the member does not serve the kind.
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
		// The answer is kept even if the definition changed during the request, because an older answer is better than none.
		known.hasStatus = found.HasStatus
	}
	if found == nil {
		known.troubled = true
		return Resource{}, unserved
	}
	return *found, nil
}

// isMissing reports whether the member has answered recently that it does not serve the kind.
func (k *Kinds) isMissing(gvk schema.GroupVersionKind) bool {
	holds := missingFor
	if k.confirmsMissing(gvk.Group) {
		holds = missingForWatched
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.kinds[gvk]
	return known != nil && !known.missing.IsZero() && time.Since(known.missing) < holds
}

// These limits bound a discovery response for one group and version.
const (
	maxDiscoveryBytes = 16 << 20
	maxResources      = 10_000
	maxResourceBytes  = 64 << 10
)

// discover reads the resource of a kind from the member. It returns nil if the member does not serve the kind.
func (k *Kinds) discover(gvk schema.GroupVersionKind) (*Resource, error) {
	var found *Resource
	withStatus := map[string]bool{} // names of the resources that have a status subresource
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
	// HasStatus is false for built-in kinds, which have their own rules of health: an empty status does not make them
	// Progressing.
	found.HasStatus = withStatus[found.Resource] && !isBuiltIn(gvk.Group)
	return found, nil
}

// Forget drops the resource of a kind, so that the next Find asks the member. It keeps a recent answer that the member
// does not serve the kind.
func (k *Kinds) Forget(gvk schema.GroupVersionKind) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known(gvk).resource = nil
}

// HasStatus reports whether the kind has a status subresource. It answers from the cache.
func (k *Kinds) HasStatus(gvk schema.GroupVersionKind) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.kinds[gvk]
	return known != nil && known.hasStatus
}

// Use sets whether objects of a kind are watched on the member. The cached answers about a kind that is no longer
// watched are dropped.
func (k *Kinds) Use(gvk schema.GroupVersionKind, used bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if used {
		k.known(gvk).used = true
	} else {
		if known := k.kinds[gvk]; known != nil {
			_ = k.retained.Add(-known.document.size)
		}
		delete(k.kinds, gvk)
	}
	k.watchDefinitions()
}

// Expect sets the kinds that bindings may use. OnDefinition is then called for each change of a
// CustomResourceDefinition in the API groups of these kinds.
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

// Restart restarts the watch of definitions at once, after the link has become ready again. It invalidates every
// schema, because the member may have been upgraded meanwhile.
func (k *Kinds) Restart() {
	k.definitions.Restart()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, known := range k.kinds {
		known.invalidate()
		known.missing = time.Time{}
	}
}

// isBuiltIn reports whether the group belongs to Kubernetes itself. Its kinds have no CustomResourceDefinition.
func isBuiltIn(group string) bool {
	return clientgoscheme.Scheme.IsGroupRegistered(group) || group == definition.Group || group == "apiregistration.k8s.io"
}
