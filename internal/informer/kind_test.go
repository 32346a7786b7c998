package informer

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// moody is a server for which a test sets the answers. It records the times of its requests. Its lists are empty.
type moody struct {
	dynamic.NamespaceableResourceInterface

	mu    sync.Mutex
	watch error
	at    []time.Time // times of the requests
	lists int
}

// Resource implements dynamic.Interface.
func (m *moody) Resource(schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return m
}

// List implements dynamic.ResourceInterface.
func (m *moody) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at, m.lists = append(m.at, time.Now()), m.lists+1
	list := &unstructured.UnstructuredList{}
	list.SetResourceVersion("10")
	return list, nil
}

// Watch implements dynamic.ResourceInterface.
func (m *moody) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = append(m.at, time.Now())
	return nil, m.watch
}

// answer makes every watch fail with this error.
func (m *moody) answer(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watch = err
}

// asked returns the number of requests.
func (m *moody) asked() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.at)
}

// since returns the number of requests after a time.
func (m *moody) since(moment time.Time) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, at := range m.at {
		if !at.Before(moment) {
			n++
		}
	}
	return n
}

var (
	errStarting = apierrors.NewServiceUnavailable("starting")
	errTooOld   = apierrors.NewResourceExpired("too old resource version")
)

// follow runs a kind whose watch continues from a known resourceVersion, as after a first list.
func follow(t *testing.T, m *moody) *kind {
	t.Helper()
	set := New(Options{Client: m, Resolve: func(schema.GroupVersionKind) (schema.GroupVersionResource, error) { return shelfResource, nil }})
	k := newKind(t.Context(), shelfKind, set)
	k.place.resource, k.place.version = shelfResource, "5"
	go k.run()
	return k
}

// pass lets the time d pass, on the clock of a synctest bubble.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // nobody waits: this clock jumps
}

func TestAServerThatIsBackIsAskedOftenWhileItStarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &moody{watch: errors.New("connection refused")}
		k := follow(t, m)
		pass(10 * time.Minute) // while the server is away, the pauses grow to a minute
		m.answer(errStarting)
		back := time.Now()
		k.orders.restart()
		pass(3 * time.Second)
		if n := m.since(back); n < 4 {
			t.Errorf("asked %d times in the first three seconds, want at least 4", n)
		}
	})
}

func TestAServerThatForgotThePlaceIsListedAtOnceHoweverLongItWasAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &moody{watch: errors.New("connection refused")}
		follow(t, m)
		pass(10 * time.Minute)
		m.answer(errTooOld)
		for asked := m.asked(); m.asked() == asked; {
			pass(time.Millisecond)
		}
		pass(300 * time.Millisecond)
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.lists != 1 {
			t.Errorf("listed %d times within 0.3 s of the answer that the place is not known any more, want once", m.lists)
		}
	})
}

func TestAServerThatKnowsNoPlaceIsLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &moody{watch: errTooOld}
		follow(t, m)
		pass(10 * time.Minute)
		begin := time.Now()
		pass(10 * time.Minute)
		if n := m.since(begin); n > 30 {
			t.Errorf("asked %d times in ten minutes, want a list and a watch a minute", n)
		}
	})
}
