package schedule

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/placement/decide"
)

// everyKind is the kind in a selector that selects all kinds of an API group. The hub looks up the kinds of such a
// group every pace.LookEvery.
const everyKind = "*"

// wants computes the wanted kinds: the kinds of the hub's own objects that the hub watches. These are the kinds that
// placements select, the kinds of objects of bundles, and the kinds of objects with bindings. The kinds of objects with
// bindings count because their placement may be deleted. Every replica computes the wanted kinds.
type wants struct {
	client     client.Reader
	cache      cache.Cache // set before Start
	templates  Templates
	discovered func(schema.GroupKind) // called for a kind that the selector "*" newly includes
	onMore     func([]schema.GroupKind)
	stale      chan struct{}
	soon       *time.Timer // fires when the groups with changed definitions are checked

	mu     sync.RWMutex
	wanted sets.Set[schema.GroupKind] // nil until the wanted kinds are known
	groups map[string]group
	moved  sets.Set[string] // groups with new or changed definitions
}

// group has the kinds that "*" stands for in a group, from the last discovery.
type group struct {
	kinds []schema.GroupKind
	read  time.Time
}

func newWants(c client.Reader, t Templates, discovered func(schema.GroupKind)) *wants {
	w := &wants{client: c, templates: t, discovered: discovered, stale: make(chan struct{}, 1), groups: map[string]group{}, moved: sets.New[string]()}
	w.soon = time.NewTimer(lookEvery)
	return w
}

// NeedLeaderElection returns false, because every replica keeps hub objects in memory.
func (*wants) NeedLeaderElection() bool { return false }

// Start computes the wanted kinds until ctx ends. It does so at the start, after each change that may affect the kinds,
// and periodically, because selectors with "*" may get new kinds.
func (w *wants) Start(ctx context.Context) error {
	definition := &metav1.PartialObjectMetadata{}
	definition.SetGroupVersionKind(definitionKind)
	informer, err := w.cache.GetInformer(ctx, definition)
	if err != nil {
		return fmt.Errorf("watching definitions for wanted kinds: %w", err)
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: w.defined, UpdateFunc: func(_, o any) { w.defined(o) }}); err != nil {
		return fmt.Errorf("watching definitions for wanted kinds: %w", err)
	}
	expand := time.NewTicker(pace.LookEvery)
	defer expand.Stop()
	pause := time.NewTicker(lookEvery)
	defer pause.Stop()
	w.refresh()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-expand.C:
		case <-w.soon.C:
			w.lookAgain(ctx)
		case <-w.stale:
		}
		if err := w.collect(ctx); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Collecting the wanted kinds failed; the previous ones stay")
		}
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
	}
}

func (w *wants) refresh() {
	select {
	case w.stale <- struct{}{}:
	default: // a check is already requested
	}
}

// defined is called for a new or changed CustomResourceDefinition, which is named "<plural>.<group>". It records that
// the kinds of the group may have changed.
func (w *wants) defined(o any) {
	d, ok := o.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	_, name, _ := strings.Cut(d.Name, ".")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moved.Insert(name)
	w.soon.Reset(lookEvery)
}

// lookAgain looks up the kinds of those groups again whose CustomResourceDefinitions have changed. It also retries the
// watches of kinds that the API server did not serve before.
func (w *wants) lookAgain(ctx context.Context) {
	w.mu.Lock()
	moved := w.moved
	w.moved = sets.New[string]()
	for name := range moved {
		if known, ok := w.groups[name]; ok {
			w.groups[name] = group{kinds: known.kinds}
		}
	}
	w.mu.Unlock()
	w.templates.Retry(ctx, moved)
}

// bindingChanged is called for every change of a binding. It computes the wanted kinds again if a binding of a new kind
// was created, or a binding was deleted. The kind of a binding never changes.
func (w *wants) bindingChanged(c changes.Binding) {
	if c.Before == nil && w.current().Has(hubv1.ObjectOf(c.After).GroupKind()) || c.Parts&changes.Any != 0 {
		return
	}
	w.refresh()
}

// objectChanged is called for every changed object. If the object is the first one of its kind in a bundle, the wanted
// kinds are computed again.
func (w *wants) objectChanged(id hubv1.ObjectIdentity) {
	if !w.current().Has(id.GroupKind()) {
		w.refresh()
	}
}

// current returns the wanted kinds. It returns nil before they are computed for the first time.
func (w *wants) current() sets.Set[schema.GroupKind] {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.wanted
}

// collect computes the wanted kinds from the cache. It passes them to the store of hub objects, and calls onMore if
// there are new kinds.
func (w *wants) collect(ctx context.Context) error {
	placements, err := scopes.Placements(ctx, w.client, client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	bindings, err := scopes.Bindings(ctx, w.client, "", client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	own := sets.New[schema.GroupKind]()
	for _, p := range placements {
		w.expand(ctx, p)
		own.Insert(w.kinds(p)...)
	}
	wanted := own.Union(w.templates.StoredKinds())
	for _, b := range bindings {
		gk := hubv1.ObjectOf(b).GroupKind()
		if wanted.Insert(gk); b.BindingSpec().ObjectRef.Bundle == nil {
			own.Insert(gk)
		}
	}
	w.mu.Lock()
	more := w.wanted == nil || wanted.Difference(w.wanted).Len() > 0
	w.wanted = wanted
	w.mu.Unlock()
	w.templates.Want(own)
	if more && w.onMore != nil {
		w.onMore(wanted.UnsortedList())
	}
	return nil
}

// expand looks up the kinds of the groups that a placement selects with "*", unless this was done recently.
func (w *wants) expand(ctx context.Context, p hubv1.PlacementObject) {
	for _, sel := range p.PlacementSpec().ResourceSelectors {
		w.mu.RLock()
		known := w.groups[sel.APIGroup]
		w.mu.RUnlock()
		if sel.Kind != everyKind || time.Since(known.read) < pace.LookEvery {
			continue
		}
		kinds, err := w.templates.Kinds(ctx, sel.APIGroup)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Discovering the kinds of a group failed; the previous ones stay", "group", sel.APIGroup)
			continue
		}
		w.mu.Lock()
		w.groups[sel.APIGroup] = group{kinds: kinds, read: time.Now()}
		w.mu.Unlock()
		for _, gk := range kinds {
			if !slices.Contains(known.kinds, gk) {
				w.discovered(gk)
			}
		}
	}
}

// kinds returns the kinds that a placement selects, and the kinds of objects that the selected objects may need.
func (w *wants) kinds(p hubv1.PlacementObject) []schema.GroupKind {
	w.mu.RLock()
	defer w.mu.RUnlock()
	var out []schema.GroupKind
	for _, sel := range p.PlacementSpec().ResourceSelectors {
		if sel.Kind == everyKind {
			out = append(out, w.groups[sel.APIGroup].kinds...)
			continue
		}
		out = append(out, schema.GroupKind{Group: sel.APIGroup, Kind: sel.Kind})
	}
	out = append(out, decide.ReferencedKinds(p.PlacementSpec().References)...)
	return slices.DeleteFunc(out, func(gk schema.GroupKind) bool { return gk.Group == hubv1.GroupVersion.Group })
}
