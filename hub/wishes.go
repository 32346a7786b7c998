package hub

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

// wishes are those of the placements for the statuses of their objects, as bindings keep them. Only objects of whose
// status something is wished are kept. Equal wishes are one pointer.
type wishes struct {
	// changed is told of an object whose wishes are others now. It must not block.
	changed func(hubv1.ObjectIdentity)

	none  atomic.Bool // true while there are none at all, as in most fleets: then nobody waits for the lock
	mu    sync.RWMutex
	known map[hubv1.ObjectIdentity]*sharedWishes
	all   map[string]*sharedWishes // by text

	delivered []toolscache.InformerSynced
}

type sharedWishes struct {
	health.Wishes
	text string
	uses int
}

func newWishes(changed func(hubv1.ObjectIdentity)) *wishes {
	w := &wishes{changed: changed, known: map[hubv1.ObjectIdentity]*sharedWishes{}, all: map[string]*sharedWishes{}}
	w.none.Store(true)
	return w
}

// of returns the wishes for one object, nil if there are none.
func (w *wishes) of(id hubv1.ObjectIdentity) *health.Wishes {
	if w.none.Load() {
		return nil
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	if s := w.known[id]; s != nil {
		return &s.Wishes
	}
	return nil
}

// watch follows the bindings.
func (w *wishes) watch(ctx context.Context, informers cache.Informers) error {
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

// ready waits until all bindings were seen, so that no object is judged in another way than its placement wants.
func (w *wishes) ready(ctx context.Context) bool {
	return toolscache.WaitForCacheSync(ctx.Done(), w.delivered...)
}

func (w *wishes) see(obj any) {
	if b, ok := obj.(hubv1.BindingObject); ok {
		w.set(hubv1.ObjectOf(b), wishText(b))
	}
}

func (w *wishes) forget(obj any) {
	if b, ok := scopes.Last(obj).(hubv1.BindingObject); ok {
		w.set(hubv1.ObjectOf(b), "")
	}
}

// wishesOf are those of one binding, nil if it has none.
func wishesOf(b hubv1.BindingObject) *health.Wishes {
	if text := wishText(b); text != "" {
		return &parseWishes(text).Wishes
	}
	return nil
}

// wishText is the part of a binding from which its wishes are read; empty if it has none.
func wishText(b hubv1.BindingObject) string {
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

// set notes the wishes for an object, and tells if they changed.
func (w *wishes) set(id hubv1.ObjectIdentity, text string) {
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
			s = parseWishes(text)
			w.all[text] = s
		}
		s.uses++
		w.known[id] = s
	}
	w.none.Store(len(w.known) == 0)
	w.mu.Unlock()
	w.changed(id)
}

func parseWishes(text string) *sharedWishes {
	s := &sharedWishes{text: text}
	parts := strings.Split(text, "\x00")
	last := len(parts) - 1
	s.Paths = parts[:last]
	if parts[last] != "" {
		s.Expression, _ = health.Compile(parts[last]) // what cannot be read makes its objects Unknown, and says so in their rows
	}
	return s
}
