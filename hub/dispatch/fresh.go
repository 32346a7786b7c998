package dispatch

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
)

// freshBindings reads bindings from the API server. A binding whose copies are withdrawn is queued for all members at
// once. The withdrawals on these members share one read.
//
// A withdrawal uses a shared read only if the generation of the read binding is at least the generation in the cache.
// The read is therefore never older than the decision that the withdrawal carries out. A shared read is up to a second
// old, and may miss a decision of the last second. A separate read has the same gap: the decision may change between
// the answer of the API server and the answer of the member.
type freshBindings struct {
	reader client.Reader
	clock  clock.PassiveClock

	mu    sync.Mutex
	reads map[types.NamespacedName]*freshRead
	swept time.Time
}

type freshRead struct {
	begun time.Time
	done  chan struct{}

	// binding and err are the result of the read. They are set before done is closed.
	binding hubv1.BindingObject
	err     error
}

// get returns the binding from the API server. The returned binding is not older than the cached one. Callers share it
// and must not change it.
func (f *freshBindings) get(ctx context.Context, cached hubv1.BindingObject) (hubv1.BindingObject, error) {
	key := client.ObjectKeyFromObject(cached)
	var useless *freshRead
	for {
		r, isMine := f.join(key, useless)
		if isMine {
			defer close(r.done)
			r.err = f.reader.Get(ctx, key, r.binding)
			return r.binding, r.err
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if r.err == nil && r.binding.GetUID() == cached.GetUID() && r.binding.GetGeneration() >= cached.GetGeneration() &&
			f.clock.Since(r.begun) < pace.FreshFor {
			return r.binding, nil
		}
		useless = r
	}
}

// join returns a recent read of the binding, which may still be in flight. It never returns the read `useless`, whose
// result the caller cannot use. If there is no recent read, isMine is true: the caller must make the returned read, and
// others wait for its result. Old reads are dropped.
func (f *freshBindings) join(key types.NamespacedName, useless *freshRead) (r *freshRead, isMine bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.reads[key]; r != nil && r != useless && f.clock.Since(r.begun) < pace.FreshFor {
		return r, false
	}
	r = &freshRead{begun: f.clock.Now(), done: make(chan struct{}), binding: hubv1.NewBinding(key)}
	if f.clock.Since(f.swept) >= pace.FreshFor {
		f.swept = r.begun
		for k, old := range f.reads {
			if f.clock.Since(old.begun) >= pace.FreshFor {
				delete(f.reads, k)
			}
		}
	}
	if f.reads == nil {
		f.reads = map[types.NamespacedName]*freshRead{}
	}
	f.reads[key] = r
	return r, true
}
