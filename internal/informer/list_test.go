package informer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/hanse-dev/hanse/internal/answer"
)

// shelves is a server with objects of a certain size, which answers lists page by page. It records how many objects
// were requested.
type shelves struct {
	dynamic.NamespaceableResourceInterface
	objects, bytes int
	began, end     chan struct{} // if set, a list sends on began, and waits for end
	limited        bool          // true: an answer has at most the number of objects in most
	most           int64
	refuse         error // error of each page after the first

	mu     sync.Mutex
	limits []int64
}

// Resource implements dynamic.Interface.
func (s *shelves) Resource(schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return s
}

var (
	shelfKind     = schema.GroupVersionKind{Group: "lib.example.com", Version: "v1", Kind: "Shelf"}
	shelfResource = shelfKind.GroupVersion().WithResource("shelves")
)

// List implements dynamic.ResourceInterface.
func (s *shelves) List(_ context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	if s.began != nil {
		s.began <- struct{}{}
		<-s.end
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = append(s.limits, o.Limit)
	switch {
	case s.refuse != nil && o.Continue != "":
		return nil, s.refuse
	case s.limited && (o.Limit == 0 || o.Limit > s.most):
		return nil, &answer.TooLargeError{What: "the answer", Bound: "a bound"}
	}
	first := 0
	_, _ = fmt.Sscan(o.Continue, &first)
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(shelfKind.GroupVersion().WithKind("ShelfList"))
	list.SetResourceVersion("10")
	for i := first; i < s.objects && (o.Limit == 0 || i < first+int(o.Limit)); i++ {
		u := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"books": []any{strings.Repeat("b", s.bytes), int64(1)}}}}
		u.SetGroupVersionKind(shelfKind)
		u.SetName(fmt.Sprint(i))
		list.Items = append(list.Items, u)
	}
	if next := first + len(list.Items); next < s.objects {
		list.SetContinue(fmt.Sprint(next))
	}
	return list, nil
}

func newTestKind(ctx context.Context, s *shelves) *kind {
	set := New(Options{Client: s, Resolve: func(schema.GroupVersionKind) (schema.GroupVersionResource, error) { return shelfResource, nil }})
	k := newKind(ctx, shelfKind, set)
	k.place.resource = shelfResource
	return k
}

func TestAPageHoldsFewerObjectsTheLargerTheyAre(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		objects, bytes int
		limits         []int64
	}{
		"few objects come with the first page": {40, 1000, []int64{50}},
		"small ones in large pages":            {1100, 500, []int64{50, 500, 500, 500}},
		"large ones in small pages":            {100, 50 << 10, []int64{50, 20, 20, 20}},
		"the largest in the smallest pages":    {75, 1 << 20, []int64{50, 10, 10, 10}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &shelves{objects: tc.objects, bytes: tc.bytes}
			k := newTestKind(t.Context(), s)
			k.set.options.Transform = func(u *unstructured.Unstructured) (metav1.Object, error) {
				return &metav1.ObjectMeta{Name: u.GetName()}, nil
			}
			if err := k.list(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.limits, s.limits); diff != "" {
				t.Errorf("objects asked for (-want +got):\n%s", diff)
			}
			if len(k.objects) != tc.objects {
				t.Errorf("%d objects are known, want %d", len(k.objects), tc.objects)
			}
		})
	}
}

func TestListsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slots, begin := newSlots(2, time.Second), time.Now()
		type slot struct {
			after time.Duration
			end   func()
		}
		got := make(chan slot, 10)
		ask := func() {
			go func() {
				end, err := slots.take(t.Context())
				if err != nil {
					t.Error(err)
				}
				got <- slot{time.Since(begin), end}
			}()
			synctest.Wait()
		}
		for range 5 {
			ask()
		}
		if len(got) != 2 {
			t.Fatalf("%d lists began at once, want 2", len(got))
		}
		(<-got).end()
		synctest.Wait()
		<-got // the second list reads its next page
		third := <-got
		if third.after != 0 {
			t.Errorf("the next one began after %s, want at once when another had ended", third.after)
		}
		// No other list ends, but each list loses its slot after a second, so that the next list can begin.
		for range 2 {
			if next := <-got; next.after != time.Second {
				t.Errorf("one began after %s, want 1s", next.after)
			}
		}
		third.end() // ends late: this must not free the slot of another list
		ask()
		if next := <-got; next.after != 2*time.Second {
			t.Errorf("one began after %s, want 2s", next.after)
		}
	})
}

func TestWaitingForATurnEndsWithTheKind(t *testing.T) {
	t.Parallel()
	slots := newSlots(0, time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := slots.take(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

func TestFirstListsOfAProcessAreStaggered(t *testing.T) { // not parallel: the slots are those of the process
	s := &shelves{objects: 1, began: make(chan struct{}, 100), end: make(chan struct{})}
	ended := make(chan error, 100)
	const kinds = 20
	for range kinds {
		k := newTestKind(t.Context(), s)
		go func() { ended <- k.firstList(t.Context()) }()
	}
	for range cap(lists.places) {
		<-s.began
	}
	if n := len(s.began); n > 0 {
		t.Errorf("%d more lists than %d began at once", n, cap(lists.places))
	}
	again := newTestKind(t.Context(), s)
	again.streaks.failures = 1
	go func() { ended <- again.firstList(t.Context()) }()
	<-s.began // the list of again begins without a slot
	close(s.end)
	for range kinds + 1 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestTheNextPageIsAskedForWhileOneIsReduced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelves{objects: 60, bytes: 10, began: make(chan struct{}), end: make(chan struct{})}
		close(s.end)
		var once sync.Once
		set := New(Options{
			Client: s, Resolve: func(schema.GroupVersionKind) (schema.GroupVersionResource, error) { return shelfResource, nil },
			Transform: func(u *unstructured.Unstructured) (metav1.Object, error) {
				once.Do(func() { <-s.began }) // wait until the second page is requested
				return u, nil
			},
		})
		k := newKind(t.Context(), shelfKind, set)
		k.place.resource = shelfResource
		listed := make(chan error)
		go func() { listed <- k.list(t.Context()) }()
		<-s.began
		if err := <-listed; err != nil {
			t.Fatal(err)
		}
		if len(k.objects) != 60 {
			t.Errorf("%d objects, want 60", len(k.objects))
		}
	})
}
