package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// watcher watches every widget of some clusters, and records when each widget reached the expected state.
type watcher struct {
	mu     sync.Mutex
	wanted *expectation // nil if no state is expected
	cancel context.CancelCauseFunc
}

// expectation is a state that some objects of a namespace must reach on the first clusters of the watcher.
type expectation struct {
	namespace string
	from      int // index of the first object
	reached   func(copied *unstructured.Unstructured, gone bool) bool
	seen      [][]time.Time // the time when a copy was first seen in the expected state: by object, then by cluster
	left      int
	complete  chan struct{}
}

// watch watches the widgets on the clusters until ctx ends. An API server ends a watch that is too slow. The watcher
// reopens such a watch within about two seconds, at its last resourceVersion. If the watch cannot be reopened during an
// expectation, the figures would be wrong. In this case cancel is called with the cause.
func watch(ctx context.Context, clusters []dynamic.Interface, cancel context.CancelCauseFunc) (*watcher, error) {
	w := &watcher{cancel: cancel}
	for m, c := range clusters {
		stream, err := open(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("cluster %d: %w", m, err)
		}
		go w.follow(ctx, m, c, stream)
	}
	return w, nil
}

// open opens a watch of widgets that reports the changes from now on, and not the existing widgets.
func open(ctx context.Context, cluster dynamic.Interface) (apiwatch.Interface, error) {
	list, err := cluster.Resource(widgets).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("listing widgets: %w", err)
	}
	stream, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{WatchFuncWithContext: cluster.Resource(widgets).Watch})
	if err != nil {
		return nil, fmt.Errorf("watching widgets: %w", err)
	}
	return stream, nil
}

// follow reads the watch of one cluster, and opens a new watch when it ends. Events may be missing between the two
// watches, so follow calls cancel if an expectation is not fulfilled yet. The new watch begins with a new list, because
// an API server that has just started to serve a kind may not know earlier resourceVersions.
func (w *watcher) follow(ctx context.Context, m int, cluster dynamic.Interface, stream apiwatch.Interface) {
	for {
		ended := w.read(m, stream)
		var err error
		stream, err = open(ctx, cluster)
		switch {
		case ctx.Err() != nil:
			return
		case w.waiting(): // checked after the list, because the list may already contain the expected state
			w.cancel(fmt.Errorf("the benchmark's watch of cluster %d ended and cannot go on where it did: %w", m, ended))
			return
		case err != nil:
			w.cancel(fmt.Errorf("watching cluster %d anew: %w", m, err))
			return
		}
	}
}

// read handles the events of a watch until it ends. It returns the reason of the end.
func (w *watcher) read(cluster int, stream apiwatch.Interface) error {
	defer stream.Stop()
	ended := errors.New("no reason was given")
	for e := range stream.ResultChan() {
		if e.Type == apiwatch.Error {
			ended = apierrors.FromObject(e.Object)
		} else if copied, ok := e.Object.(*unstructured.Unstructured); ok {
			w.see(cluster, copied, e.Type == apiwatch.Deleted)
		}
	}
	return ended
}

// waiting reports whether an expectation is set and not fulfilled yet.
func (w *watcher) waiting() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wanted != nil && w.wanted.left > 0
}

func (w *watcher) see(cluster int, copied *unstructured.Unstructured, gone bool) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.wanted
	if x == nil || copied.GetNamespace() != x.namespace {
		return
	}
	i, ok := widgetIndex(copied.GetName())
	i -= x.from
	if !ok || i < 0 || i >= len(x.seen) || cluster >= len(x.seen[i]) || !x.seen[i][cluster].IsZero() || !x.reached(copied, gone) {
		return
	}
	x.seen[i][cluster] = now
	if x.left--; x.left == 0 {
		close(x.complete)
	}
}

// expect sets the expectation that these objects reach a state on the first clusters. from is the index of the first
// object.
func (w *watcher) expect(namespace string, from, objects, clusters int, reached func(*unstructured.Unstructured, bool) bool) *expectation {
	x := &expectation{
		namespace: namespace, from: from, reached: reached, seen: make([][]time.Time, objects), left: objects * clusters, complete: make(chan struct{}),
	}
	for i := range x.seen {
		x.seen[i] = make([]time.Time, clusters)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted = x
	return x
}

// await waits until all expected copies have arrived. It prints the number of arrived copies every few seconds.
func (w *watcher) await(ctx context.Context, x *expectation, say func(string, ...any)) error {
	tick, end := time.NewTicker(5*time.Second), time.NewTimer(maxPhase)
	defer tick.Stop()
	defer end.Stop()
	for {
		select {
		case <-x.complete:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			missing, _ := w.missing(x)
			say("  %d copies to go", missing)
		case <-end.C:
			missing, names := w.missing(x)
			return fmt.Errorf("%d copies are not as wanted after %s: %s", missing, maxPhase, names)
		}
	}
}

// missing returns the number of missing copies, and the names of the first ones.
func (w *watcher) missing(x *expectation) (int, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for i, times := range x.seen {
		for cluster, t := range times {
			if t.IsZero() && len(names) < 5 {
				names = append(names, fmt.Sprintf("%s on cluster %d", widgetName(x.from+i), cluster))
			}
		}
	}
	return x.left, strings.Join(names, ", ")
}

// last returns, for each object, the time at which it reached the state on the last of its clusters.
func (x *expectation) last() []time.Time {
	out := make([]time.Time, len(x.seen))
	for i, times := range x.seen {
		for _, t := range times {
			if t.After(out[i]) {
				out[i] = t
			}
		}
	}
	return out
}
