package discovery

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/internal/informer"
)

var (
	definition  = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	definitions = definition.GroupVersion().WithResource("customresourcedefinitions")
)

// MetadataOnly returns a copy of a config whose clients get only the metadata of objects from lists and watches.
func MetadataOnly(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodGet { // a review of rights must not be reduced to metadata
				return next.RoundTrip(r)
			}
			as := "PartialObjectMetadataList"
			if r.URL.Query().Has("watch") {
				as = "PartialObjectMetadata"
			}
			r = r.Clone(r.Context())
			r.Header.Set("Accept", fmt.Sprintf("application/json;as=%s;g=meta.k8s.io;v=v1", as))
			return next.RoundTrip(r)
		})
	})
	return config
}

type transport func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

func newDefinitions(client dynamic.Interface, retained *answer.Retained, changed func(name string, known, gone bool)) *informer.Set {
	return informer.New(informer.Options{
		Client:   client,
		Retained: retained,
		Resolve:  func(schema.GroupVersionKind) (schema.GroupVersionResource, error) { return definitions, nil },
		Transform: func(u *unstructured.Unstructured) (metav1.Object, error) {
			return &mark{name: u.GetName(), uid: u.GetUID(), version: u.GetResourceVersion()}, nil
		},
		Handler: func(_ schema.GroupVersionKind, old, latest metav1.Object) {
			seen := latest
			if seen == nil {
				seen = old
			}
			changed(seen.GetName(), old != nil, latest == nil)
		},
	})
}

// mark has the few fields of a CustomResourceDefinition that the hub keeps in memory.
type mark struct {
	*metav1.ObjectMeta // always nil: only the overridden methods may be called
	name, version      string
	uid                types.UID
}

// markSize is an upper bound of the memory of a mark without its texts, and of the rounding of the texts.
const markSize = 128

// Size implements informer.Sized.
func (m *mark) Size() int64 {
	texts := len(m.name) + len(m.uid) + len(m.version)
	return int64(markSize + texts + texts/8)
}

// GetName implements metav1.Object.
func (m *mark) GetName() string { return m.name }

// GetUID implements metav1.Object.
func (m *mark) GetUID() types.UID { return m.uid }

// GetResourceVersion implements metav1.Object.
func (m *mark) GetResourceVersion() string { return m.version }

// Watched reports whether a new CustomResourceDefinition of this API group would cause a watch event. If it returns
// false, the watch does not work, or the group belongs to Kubernetes itself.
func (k *Kinds) Watched(group string) bool {
	state, ok := k.definitions.State(definition)
	return ok && state.Synced && state.Reason == "" && !isBuiltIn(group)
}

// confirmsMissing reports whether the member has no definition of the group, according to the watch of definitions. A
// new definition then causes an event. If the member has a definition of the group, an answer that it does not serve a
// kind may be wrong: a proxy can answer 404 for a moment, and no event follows.
func (k *Kinds) confirmsMissing(group string) bool {
	if !k.Watched(group) {
		return false
	}
	return !slices.ContainsFunc(k.definitions.List(definition), func(o metav1.Object) bool {
		return strings.HasSuffix(o.GetName(), "."+group)
	})
}

// unwatchable reports whether the member forbids the hub to watch CustomResourceDefinitions.
func (k *Kinds) unwatchable() bool {
	state, _ := k.definitions.State(definition)
	return state.Reason == hubv1.ReasonForbidden
}

// again are pauses after a watch event of a CustomResourceDefinition. While the member still lacks the kind or a field,
// the hub queues objects of the kind for another write after each pause. The API server serves a new kind shortly after
// the event of its definition, and publishes the schema a little later.
var again = []time.Duration{time.Second, 2 * time.Second, 7 * time.Second}

// definitionChanged is called for each event of the CustomResourceDefinition with this name. known is false if it was
// listed or added, and gone is true if it was deleted.
func (k *Kinds) definitionChanged(name string, known, gone bool) {
	plural, group, _ := strings.Cut(name, ".")
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.expected.Has(group) {
		k.options.OnDefinition()
	}
	for gvk, kind := range k.kinds {
		if gvk.Group == group && (kind.resource == nil || kind.resource.Resource == plural) {
			k.invalidate(gvk, kind, known, gone)
		}
	}
}

// invalidate drops the cached answers about a kind, and queues the objects of the kind for another write. known is
// false if the definition was listed or added, and gone is true if it was deleted. If known is false and no object
// waits for a change of the definition, invalidate drops only the schema and queues nothing.
func (k *Kinds) invalidate(gvk schema.GroupVersionKind, kind *kind, known, gone bool) {
	kind.invalidate()
	if !known && !kind.troubled {
		return
	}
	kind.changes++
	kind.resource, kind.missing, kind.went, kind.troubled, kind.changed = nil, time.Time{}, time.Time{}, gone, time.Time{}
	if gone {
		kind.went = time.Now()
	} else {
		kind.changed = time.Now()
	}
	switch {
	case !kind.used:
	case kind.nudge == nil:
		kind.nudge = make(chan struct{}, 1)
		go k.wake(gvk, kind, kind.nudge) // in a goroutine, because the watch must not wait for OnChange
	default:
		select {
		case kind.nudge <- struct{}{}:
		default: // an earlier nudge has not been received yet
		}
	}
}

// wake calls OnChange at once, to queue the objects of a kind for another write. While the member lacks the kind or a
// field, wake calls OnChange again after each pause in the variable again. A new event of the definition starts the
// pauses again. The objects are queued at most once a second.
func (k *Kinds) wake(gvk schema.GroupVersionKind, kind *kind, nudge <-chan struct{}) {
	pauses, changes := again, -1
	for {
		now, tell, ended := k.due(gvk, kind, changes, len(pauses) == 0)
		if ended {
			return
		}
		if now != changes {
			pauses, changes = again, now
		}
		if tell {
			k.options.OnChange(gvk.GroupKind())
		}
		if !k.pause(again[0], nil) || !k.pause(pauses[0]-again[0], nudge) {
			return
		}
		pauses = pauses[1:]
	}
}

// pause waits for the duration d, or until a value arrives on nudge. It returns false if the context of the member has
// ended.
func (k *Kinds) pause(d time.Duration, nudge <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-k.ctx.Done():
		return false
	case <-timer.C:
	case <-nudge:
	}
	return true
}

// due decides the next step of wake, which queues the objects of the kind for another write. now is the present number
// of events of the kind's CustomResourceDefinition. changes is the number at the last call. tell is true if wake must
// queue the objects now. last is true if wake has no pause left. ended is true if wake must stop. wake stops if the
// kind is no longer cached. wake also stops if no event has arrived since the last call, and either last is true or the
// CustomResourceDefinition was deleted. If ended is false, due also invalidates the cached answers about the kind.
func (k *Kinds) due(gvk schema.GroupVersionKind, kind *kind, changes int, last bool) (now int, tell, ended bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	moved := kind.changes != changes
	if k.kinds[gvk] != kind || !moved && (last || !kind.went.IsZero()) {
		kind.nudge = nil
		return kind.changes, false, true
	}
	kind.invalidate()
	kind.missing = time.Time{}
	return kind.changes, moved || kind.troubled, false
}
