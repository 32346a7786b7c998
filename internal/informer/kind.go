package informer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/hanse-dev/hanse/internal/answer"
)

// kind watches the objects of one kind, in one namespace or in all. Only the goroutine of the method run changes its
// fields objects and place.
type kind struct {
	gvk    schema.GroupVersionKind
	set    *Set
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.RWMutex
	objects map[string]metav1.Object
	groups  groups                   // the keys of objects by Options.Group
	await   map[string]metav1.Object // objects that callers of Set.Await wait for
	state   State
	kept    *answer.Part // the memory of objects
	place   place        // only run changes it, and may read it without mu

	namespace string // empty: all namespaces. Only run changes it, once, with the lock of set
	orders    orders
	streaks   streaks // only run uses them
}

// place is the API resource from which the objects of a kind are read, and the resourceVersion at which the next watch
// begins.
type place struct {
	resource schema.GroupVersionResource // empty until resolved
	version  string                      // resourceVersion at which the watch continues; empty: list first
}

func newKind(parent context.Context, gvk schema.GroupVersionKind, s *Set) *kind {
	ctx, cancel := context.WithCancel(parent)
	return &kind{
		gvk: gvk, set: s, ctx: ctx, cancel: cancel, state: State{Since: time.Now()}, kept: s.options.Retained.Part(),
		orders: orders{reread: make(chan *unstructured.Unstructured)},
	}
}

// run repeats the method attempt until the kind is stopped. Set.Restart ends the current attempt, and the pause after
// it. Earlier failures then no longer make pauses longer, because a server that has just come back refuses a few
// requests while it starts.
func (k *kind) run() {
	for k.ctx.Err() == nil {
		ctx, interrupt := k.orders.begin(k.ctx)
		err := k.attempt(ctx)
		wait(ctx, k.settle(ctx, err))
		if context.Cause(ctx) != nil {
			k.streaks.failures, k.streaks.expired = 0, 0
		}
		interrupt(nil)
	}
}

func (k *kind) troubled() bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.state.Reason != ""
}

// attempt finds the API resource of the kind, and lists the objects if necessary. It then watches the objects until the
// watch ends.
func (k *kind) attempt(ctx context.Context) error {
	if k.place.resource.Empty() || k.orders.isToFind() {
		r, err := k.set.options.Resolve(k.gvk)
		if err != nil {
			return fmt.Errorf("finding the resource of %s: %w", k.gvk, err)
		}
		k.resolved(r)
		if namespaces := k.set.options.Namespaces(r); len(namespaces) > 0 && k.namespace == "" {
			k.set.divide(k, namespaces)
		}
	}
	if k.place.version == "" || k.orders.toRelist() {
		if err := k.firstList(ctx); err != nil {
			return fmt.Errorf("listing %s: %w", k.gvk, err)
		}
	}
	if err := k.watch(ctx); err != nil {
		return fmt.Errorf("watching %s: %w", k.gvk, err)
	}
	return nil
}

// server returns the client that lists and watches the objects of the kind.
func (k *kind) server() dynamic.ResourceInterface {
	if k.namespace == "" {
		return k.set.options.Client.Resource(k.place.resource)
	}
	return k.set.options.Client.Resource(k.place.resource).Namespace(k.namespace)
}

func (k *kind) resolved(r schema.GroupVersionResource) {
	k.mu.Lock()
	k.place.resource = r
	k.mu.Unlock()
	k.orders.found()
}

// settle records the result of an attempt in the state of the kind. It returns the pause before the next attempt.
func (k *kind) settle(ctx context.Context, err error) time.Duration {
	if context.Cause(ctx) != nil { // stopped or restarted: this package caused the error
		return 0
	}
	if err != nil && isExpired(err) {
		// The server works, but does not know the resourceVersion any more. The next attempt lists the objects at once. There
		// is a pause only if the server repeatedly does not know the resourceVersion of its own list.
		k.continueAt("")
		k.streaks.failures = 0
		k.streaks.expired++
		return retryAfter(k.streaks.expired-1, err)
	}
	pause := retryAfter(k.streaks.failures, err)
	k.streaks.failures++
	switch {
	case err == nil:
		return pause
	case isNotServed(err):
		k.resolved(schema.GroupVersionResource{})
		k.continueAt("")
	}
	var large *answer.TooLargeError
	if errors.As(err, &large) {
		k.set.options.Retained.Report("the objects of "+k.gvk.Kind, large)
	}
	reason, message := classify(err)
	k.report(func(s *State) { s.Reason, s.Message = reason, message })
	return pause
}

// report changes the state of the kind with the given function, and calls OnState if the state changed.
func (k *kind) report(edit func(*State)) {
	k.mu.Lock()
	changed := k.edit(edit)
	k.mu.Unlock()
	if changed {
		k.tellState()
	}
}

// edit changes the state of the kind with the given function. The caller holds k.mu. changed is true if the state has
// changed.
func (k *kind) edit(edit func(*State)) (changed bool) {
	before := k.state
	edit(&k.state)
	if k.state.Synced != before.Synced || (k.state.Reason == "") != (before.Reason == "") {
		k.state.Since = time.Now()
	}
	return k.state != before
}

func (k *kind) tellState() {
	if state, watched := k.set.State(k.gvk); watched && k.ctx.Err() == nil {
		k.set.options.OnState(k.gvk, state)
	}
}

func (k *kind) current() State {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.state
}

// change is one change of an object, as the handler gets it. old is nil for a new object, and new is nil for a deleted
// object.
type change struct{ old, new metav1.Object }

func (k *kind) notify(changes ...change) {
	for _, c := range changes {
		if k.ctx.Err() != nil {
			return
		}
		k.set.options.Handler(k.gvk, c.old, c.new)
	}
}

// put stores one object from the watch. It returns an error if the kind has too many objects, or if they are too large
// together.
func (k *kind) put(key string, object metav1.Object) error {
	k.mu.Lock()
	if k.objects == nil {
		k.objects = map[string]metav1.Object{}
	}
	old, known := k.objects[key]
	var err error
	if !known && len(k.objects) >= maxObjects {
		err = &answer.TooLargeError{What: "the kind", Bound: fmt.Sprintf("%d objects", maxObjects)}
	} else if err = k.kept.Add(k.growth(key, object)); err == nil {
		k.objects[key] = object
		k.regroup(key, old, object)
	}
	k.mu.Unlock()
	if err != nil {
		return err
	}
	k.notify(change{old, object})
	return nil
}

// growth returns by how many bytes the stored objects grow if the object is stored under the key.
func (k *kind) growth(key string, object metav1.Object) int64 {
	size := sizeOf(key, object)
	if old, known := k.objects[key]; known {
		size -= sizeOf(key, old)
	}
	return size
}

// drop removes one object that the watch reports as deleted.
func (k *kind) drop(key string) {
	k.mu.Lock()
	old, ok := k.objects[key]
	delete(k.objects, key)
	k.regroup(key, old, nil)
	k.mu.Unlock()
	if ok {
		_ = k.kept.Add(-sizeOf(key, old)) // a negative number never fails
		k.notify(change{old, nil})
	}
}

// replace stores the objects of a complete list. listed has the objects by key. If Transform refused an object, its
// value in listed is nil: the version that was stored before stays, if there is one. State.Synced becomes true before
// the handler is called for the objects. relists is the number of Relist calls before the list began.
func (k *kind) replace(listed map[string]metav1.Object, relists int) {
	var gone, there []change
	relisted := k.orders.listed(relists)
	k.mu.Lock()
	for key, old := range k.objects {
		if _, ok := listed[key]; !ok {
			gone = append(gone, change{old, nil})
		}
	}
	for key, object := range listed {
		old := k.objects[key]
		switch {
		case object == nil && old == nil:
			delete(listed, key)
		case object == nil:
			listed[key] = old
		case relisted || !same(old, object):
			there = append(there, change{old, object})
		}
	}
	k.objects = listed
	k.groups = nil
	for key, object := range listed {
		k.regroup(key, nil, object)
	}
	changed := k.edit(func(s *State) { s.Synced = true })
	k.mu.Unlock()
	k.notify(gone...)
	k.notify(there...)
	k.mu.Lock()
	changed = k.edit(func(s *State) { s.Delivered = true }) || changed
	k.mu.Unlock()
	if moved := k.orders.delivered(); changed || moved {
		k.tellState()
	}
}

func same(a, b metav1.Object) bool {
	return a != nil && a.GetUID() == b.GetUID() && a.GetResourceVersion() == b.GetResourceVersion()
}

// transform checks one object and calls Transform for it. If the object is refused, transform records the refusal and
// returns nil. It treats a panic as a refusal, because an object on another server must not end this process.
func (k *kind) transform(u *unstructured.Unstructured) (out metav1.Object) {
	refuse := func(why any) {
		k.refuse(u.GetNamespace(), u.GetName(), why)
		out = nil
	}
	defer func() {
		if p := recover(); p != nil {
			refuse(p)
		}
	}()
	if err := k.checked(u); err != nil {
		refuse(err)
		return nil
	}
	out, err := k.set.options.Transform(u)
	if err == nil {
		err = k.checkSized(out)
	}
	if err != nil {
		refuse(err)
	}
	return out
}

// refuse records in the state of the kind that an object was refused, and why.
func (k *kind) refuse(namespace, name string, why any) {
	text := fmt.Sprintf("%.300s: %.200s", Key(namespace, name), fmt.Sprint(why))
	k.report(func(s *State) { s.Refused = text })
}
