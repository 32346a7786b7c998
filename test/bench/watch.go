package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// watcher sees every widget of all members, and knows when each came to the state that is waited for.
type watcher struct {
	mu     sync.Mutex
	wanted *expectation // nil: nothing is waited for
	cancel context.CancelCauseFunc
}

// expectation is a state that every copy of a namespace's objects shall reach.
type expectation struct {
	namespace string
	reached   func(copied *unstructured.Unstructured, gone bool) bool
	seen      [][]time.Time // when the copy of an object was first seen so: by object, then by member
	left      int
	complete  chan struct{}
}

// watchMembers watches until ctx ends. A watch that ends on its own would make the figures wrong: it cancels with that cause.
func watchMembers(ctx context.Context, members []dynamic.Interface, cancel context.CancelCauseFunc) (*watcher, error) {
	w := &watcher{cancel: cancel}
	for m, c := range members {
		list, err := c.Resource(widgets).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("listing widgets on member %d: %w", m, err)
		}
		stream, err := c.Resource(widgets).Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
		if err != nil {
			return nil, fmt.Errorf("watching widgets on member %d: %w", m, err)
		}
		go w.follow(ctx, m, stream)
	}
	return w, nil
}

func (w *watcher) follow(ctx context.Context, member int, stream watch.Interface) {
	defer stream.Stop()
	for e := range stream.ResultChan() {
		if copied, ok := e.Object.(*unstructured.Unstructured); ok && e.Type != watch.Error {
			w.see(member, copied, e.Type == watch.Deleted)
		}
	}
	if ctx.Err() == nil {
		w.cancel(fmt.Errorf("the benchmark's watch of member %d ended", member))
	}
}

func (w *watcher) see(member int, copied *unstructured.Unstructured, gone bool) {
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.wanted
	if x == nil || copied.GetNamespace() != x.namespace {
		return
	}
	i, ok := widgetIndex(copied.GetName())
	if !ok || i >= len(x.seen) || !x.seen[i][member].IsZero() || !x.reached(copied, gone) {
		return
	}
	x.seen[i][member] = now
	if x.left--; x.left == 0 {
		close(x.complete)
	}
}

// expect begins to wait for a state.
func (w *watcher) expect(namespace string, objects, members int, reached func(*unstructured.Unstructured, bool) bool) *expectation {
	x := &expectation{namespace: namespace, reached: reached, seen: make([][]time.Time, objects), left: objects * members, complete: make(chan struct{})}
	for i := range x.seen {
		x.seen[i] = make([]time.Time, members)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted = x
	return x
}

// await waits until all copies are there and says every few seconds how many are.
func (w *watcher) await(ctx context.Context, x *expectation, atMost time.Duration, say func(string, ...any)) error {
	tick, end := time.NewTicker(5*time.Second), time.NewTimer(atMost)
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
			return fmt.Errorf("%d copies are not as wanted after %s: %s", missing, atMost, names)
		}
	}
}

// missing counts the copies that are waited for, and names the first few.
func (w *watcher) missing(x *expectation) (int, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for i, times := range x.seen {
		for member, t := range times {
			if t.IsZero() && len(names) < 5 {
				names = append(names, fmt.Sprintf("%s on member %d", widgetName(i), member))
			}
		}
	}
	return x.left, strings.Join(names, ", ")
}

// last is when each object reached the state on the last of its members.
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
