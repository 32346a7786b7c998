package provider

import (
	"context"
	"errors"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	toolscache "k8s.io/client-go/tools/cache"
)

const (
	firstRetry = 500 * time.Millisecond // after the first failure to begin an informer; then doubled
	lastRetry  = 30 * time.Second
)

// lateInformer is an informer that begins when the member serves its kind. Until then, it keeps handlers and indexes.
type lateInformer struct {
	key  kindKey
	stop context.CancelFunc

	mu       sync.Mutex
	real     cache.Informer // nil until the member serves the kind
	err      error          // of the last attempt
	handlers []*registration
	indexers []toolscache.Indexers
	indexes  []indexed
	ready    chan struct{} // closed when the first list has arrived; nil until someone waits
}

type indexed struct {
	field   string
	extract client.IndexerFunc
}

// registration is a handler of a lateInformer.
type registration struct {
	informer *lateInformer
	handler  toolscache.ResourceEventHandler
	options  toolscache.HandlerOptions
	real     toolscache.ResourceEventHandlerRegistration // nil until the informer begins
}

// begin makes the informer. It tries again until it succeeds, or until ctx ends: the member may not answer, or may not
// serve the kind yet.
func (l *lateInformer) begin(ctx context.Context, inner cache.Cache, obj client.Object) {
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		made, err := inner.GetInformer(ctx, obj, cache.BlockUntilSynced(false))
		if err == nil {
			err = l.take(ctx, inner, obj, made)
		}
		l.mu.Lock()
		l.err = err
		l.mu.Unlock()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// take hands all that was kept to the informer that was made.
func (l *lateInformer) take(ctx context.Context, inner cache.Cache, obj client.Object, made cache.Informer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.indexes) > 0 {
		if err := inner.IndexField(ctx, obj, l.indexes[0].field, l.indexes[0].extract); err != nil {
			return err
		}
		l.indexes = l.indexes[1:]
	}
	for len(l.indexers) > 0 {
		if err := made.AddIndexers(l.indexers[0]); err != nil {
			return err
		}
		l.indexers = l.indexers[1:]
	}
	for _, r := range l.handlers {
		if r.real != nil {
			continue
		}
		var err error
		if r.real, err = made.AddEventHandlerWithOptions(r.handler, r.options); err != nil {
			return err
		}
	}
	l.real = made
	if l.ready != nil {
		go closeAfter(ctx, l.ready, made)
	}
	return nil
}

func closeAfter(ctx context.Context, ready chan struct{}, made cache.Informer) {
	select {
	case <-made.HasSyncedChecker().Done():
		close(ready)
	case <-ctx.Done():
	}
}

func (l *lateInformer) index(ctx context.Context, inner cache.Cache, obj client.Object, field string, extract client.IndexerFunc) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.real == nil {
		l.indexes = append(l.indexes, indexed{field: field, extract: extract})
		return nil
	}
	return inner.IndexField(ctx, obj, field, extract)
}

func (l *lateInformer) lastError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *lateInformer) begun() bool { return l.made() != nil }

func (l *lateInformer) made() cache.Informer {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.real
}

// AddEventHandler implements cache.Informer.
func (l *lateInformer) AddEventHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return l.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements cache.Informer.
func (l *lateInformer) AddEventHandlerWithResyncPeriod(h toolscache.ResourceEventHandler, period time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return l.AddEventHandlerWithOptions(h, toolscache.HandlerOptions{ResyncPeriod: &period})
}

// AddEventHandlerWithOptions implements cache.Informer.
func (l *lateInformer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &registration{informer: l, handler: h, options: o}
	if l.real != nil {
		var err error
		if r.real, err = l.real.AddEventHandlerWithOptions(h, o); err != nil {
			return nil, err
		}
	}
	l.handlers = append(l.handlers, r)
	return r, nil
}

// RemoveEventHandler implements cache.Informer.
func (l *lateInformer) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(*registration)
	if !ok || r == nil || r.informer != l {
		return errors.New("the handler was not added to this informer")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, known := range l.handlers {
		if known == r {
			l.handlers = append(l.handlers[:i:i], l.handlers[i+1:]...)
			break
		}
	}
	if r.real == nil || l.real == nil {
		return nil
	}
	return l.real.RemoveEventHandler(r.real)
}

// AddIndexers implements cache.Informer.
func (l *lateInformer) AddIndexers(indexers toolscache.Indexers) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.real == nil {
		l.indexers = append(l.indexers, indexers)
		return nil
	}
	return l.real.AddIndexers(indexers)
}

// HasSynced implements cache.Informer.
func (l *lateInformer) HasSynced() bool {
	made := l.made()
	return made != nil && made.HasSynced()
}

// HasSyncedChecker implements cache.Informer.
func (l *lateInformer) HasSyncedChecker() toolscache.DoneChecker {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.real != nil {
		return l.real.HasSyncedChecker()
	}
	if l.ready == nil {
		l.ready = make(chan struct{})
	}
	return checker{name: l.key.gvk.String(), done: l.ready}
}

// IsStopped implements cache.Informer.
func (l *lateInformer) IsStopped() bool {
	made := l.made()
	return made != nil && made.IsStopped()
}

// HasSynced implements toolscache.ResourceEventHandlerRegistration.
func (r *registration) HasSynced() bool {
	r.informer.mu.Lock()
	defer r.informer.mu.Unlock()
	return r.real != nil && r.real.HasSynced()
}

// HasSyncedChecker implements toolscache.ResourceEventHandlerRegistration.
func (r *registration) HasSyncedChecker() toolscache.DoneChecker {
	r.informer.mu.Lock()
	if r.real != nil {
		defer r.informer.mu.Unlock()
		return r.real.HasSyncedChecker()
	}
	r.informer.mu.Unlock()
	return r.informer.HasSyncedChecker()
}

type checker struct {
	name string
	done <-chan struct{}
}

// Name implements toolscache.DoneChecker.
func (c checker) Name() string { return c.name }

// Done implements toolscache.DoneChecker.
func (c checker) Done() <-chan struct{} { return c.done }
