package report

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/scopes"
	"github.com/hanse-dev/hanse/member/health"
)

// StatusSettings are the settings of placements for how the statuses of their objects are read. Bindings keep them.
// Objects without such settings are not kept. Equal settings are one pointer.
type StatusSettings struct {
	changed func(hubv1.ObjectIdentity)

	none  atomic.Bool // true while there are none at all, as in most fleets: then nobody waits for the lock
	mu    sync.RWMutex
	known map[hubv1.ObjectIdentity]*sharedSettings
	all   map[string]*sharedSettings // by text

	delivered []toolscache.InformerSynced
}

type sharedSettings struct {
	health.Settings
	text string
	uses int
}

// NewStatusSettings returns settings of no object.
func NewStatusSettings() *StatusSettings {
	w := &StatusSettings{changed: func(hubv1.ObjectIdentity) {}, known: map[hubv1.ObjectIdentity]*sharedSettings{}, all: map[string]*sharedSettings{}}
	w.none.Store(true)
	return w
}

// OnChange sets the function that is told of an object whose settings changed. It must not block. To be called before
// Watch.
func (w *StatusSettings) OnChange(f func(hubv1.ObjectIdentity)) { w.changed = f }

// Of returns the settings of one object, nil if there are none.
func (w *StatusSettings) Of(id hubv1.ObjectIdentity) *health.Settings {
	if w.none.Load() {
		return nil
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	if s := w.known[id]; s != nil {
		return &s.Settings
	}
	return nil
}

// Watch follows the bindings.
func (w *StatusSettings) Watch(ctx context.Context, informers cache.Informers) error {
	for _, kind := range []client.Object{&hubv1.ResourceBinding{}, &hubv1.ClusterResourceBinding{}} {
		informer, err := informers.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %T on the hub: %w", kind, err)
		}
		registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: w.see, UpdateFunc: func(_, after any) { w.see(after) }, DeleteFunc: w.forget,
		})
		if err != nil {
			return fmt.Errorf("watching %T on the hub: %w", kind, err)
		}
		w.delivered = append(w.delivered, registration.HasSynced)
	}
	return nil
}

// Ready waits until all bindings were seen, so that no object is judged in another way than its placement sets.
func (w *StatusSettings) Ready(ctx context.Context) bool {
	return toolscache.WaitForCacheSync(ctx.Done(), w.delivered...)
}

func (w *StatusSettings) see(obj any) {
	if b, ok := obj.(hubv1.BindingObject); ok {
		w.set(hubv1.ObjectOf(b), settingsText(b))
	}
}

func (w *StatusSettings) forget(obj any) {
	if b, ok := scopes.Last(obj).(hubv1.BindingObject); ok {
		w.set(hubv1.ObjectOf(b), "")
	}
}

// settingsOf are those of one binding, nil if it has none.
func settingsOf(b hubv1.BindingObject) *health.Settings {
	if text := settingsText(b); text != "" {
		return &parseSettings(text).Settings
	}
	return nil
}

// settingsText is the part of a binding from which its settings are read; empty if it has none.
func settingsText(b hubv1.BindingObject) string {
	text := b.GetAnnotations()[hubv1.SettingsAnnotation]
	if !strings.Contains(text, `"statusAggregation"`) {
		return ""
	}
	s := hubv1.LastSettings(b).StatusAggregation
	var parts []string
	for _, r := range s.Reducers {
		parts = append(parts, r.Path)
	}
	if s.HealthExpression == "" && len(parts) == 0 {
		return ""
	}
	return strings.Join(append(parts, s.HealthExpression), "\x00")
}

// set notes the settings of an object, and tells if they changed.
func (w *StatusSettings) set(id hubv1.ObjectIdentity, text string) {
	if text == "" && w.none.Load() {
		return
	}
	w.mu.Lock()
	before := w.known[id]
	if before == nil && text == "" || before != nil && before.text == text {
		w.mu.Unlock()
		return
	}
	if before != nil {
		if before.uses--; before.uses == 0 {
			delete(w.all, before.text)
		}
		delete(w.known, id)
	}
	if text != "" {
		s := w.all[text]
		if s == nil {
			s = parseSettings(text)
			w.all[text] = s
		}
		s.uses++
		w.known[id] = s
	}
	w.none.Store(len(w.known) == 0)
	w.mu.Unlock()
	w.changed(id)
}

func parseSettings(text string) *sharedSettings {
	s := &sharedSettings{text: text}
	parts := strings.Split(text, "\x00")
	last := len(parts) - 1
	s.Paths = parts[:last]
	if parts[last] != "" {
		s.Expression, _ = health.Compile(parts[last]) // what cannot be read makes its objects Unknown, and says so in their rows
	}
	return s
}
