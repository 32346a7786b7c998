package informer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/informer"
)

var shelf = schema.GroupVersionKind{Group: "lib.example.com", Version: "v1", Kind: "Shelf"}

func resolveShelf(schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	return schema.GroupVersionResource{Group: "lib.example.com", Version: "v1", Resource: "shelves"}, nil
}

// library is an API server that stores objects of the kind Shelf. To simulate a failure, a test replaces one of its
// handlers.
type library struct {
	mu      sync.Mutex
	version int
	shelves map[string]int // resourceVersions by name
	lists   int
	watches []string // resourceVersions that watches were opened at
	list    http.HandlerFunc
	watch   http.HandlerFunc
	changed chan struct{}
}

func newLibrary(names ...string) *library {
	l := &library{shelves: map[string]int{}, version: 10, changed: make(chan struct{})}
	for _, n := range names {
		l.shelves[n] = 10
	}
	return l
}

func item(name string, version int) map[string]any {
	return map[string]any{
		"apiVersion": "lib.example.com/v1", "kind": "Shelf",
		"metadata": map[string]any{"name": name, "uid": "uid-" + name, "resourceVersion": fmt.Sprint(version)},
	}
}

func (l *library) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	l.mu.Lock()
	list, watch := l.list, l.watch
	if r.URL.Query().Get("watch") == "true" {
		l.watches = append(l.watches, r.URL.Query().Get("resourceVersion"))
	} else {
		l.lists++
	}
	l.mu.Unlock()
	switch {
	case r.URL.Query().Get("watch") == "true" && watch != nil:
		watch(w, r)
	case r.URL.Query().Get("watch") == "true":
		l.follow(w, r)
	case list != nil:
		list(w, r)
	default:
		l.writeList(w)
	}
}

func (l *library) writeList(w http.ResponseWriter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	items := []any{}
	for n, v := range l.shelves {
		items = append(items, item(n, v))
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": "lib.example.com/v1", "kind": "ShelfList", "items": items,
		"metadata": map[string]any{"resourceVersion": fmt.Sprint(l.version)},
	})
}

// follow serves a watch: it sends the objects that are newer than the requested version, until the client disconnects.
func (l *library) follow(w http.ResponseWriter, r *http.Request) {
	w.(http.Flusher).Flush()
	var from int
	_, _ = fmt.Sscan(r.URL.Query().Get("resourceVersion"), &from)
	for {
		l.mu.Lock()
		for n, v := range l.shelves {
			if v > from {
				_ = json.NewEncoder(w).Encode(map[string]any{"type": "MODIFIED", "object": item(n, v)})
			}
		}
		from = l.version
		changed := l.changed
		l.mu.Unlock()
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func (l *library) put(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.version++
	l.shelves[name] = l.version
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *library) set(edit func(*library)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	edit(l)
}

func (l *library) opened() (lists int, watches []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lists, slices.Clone(l.watches)
}

// refuse answers with a Status.
func refuse(code int, reason metav1.StatusReason) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: int32(code), Reason: reason, Message: "no",
		})
	}
}

// hang serves a request without an answer, until the client disconnects.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// log records the calls of a handler.
type log struct {
	mu     sync.Mutex
	events []string
}

func (l *log) handle(_ schema.GroupVersionKind, old, latest metav1.Object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case old == nil:
		l.events = append(l.events, "+"+latest.GetName())
	case latest == nil:
		l.events = append(l.events, "-"+old.GetName())
	default:
		l.events = append(l.events, "~"+latest.GetName())
	}
}

func (l *log) has(event string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.events, event)
}

func start(t *testing.T, handler http.Handler, edit func(*informer.Options)) (*informer.Set, *log) {
	t.Helper()
	return startWith(t, theirs, handler, edit)
}

// newClient makes the client of a Set: theirs is the client of client-go, and ours that of package informer.
type newClient func(*rest.Config) (dynamic.Interface, error)

var (
	theirs newClient = func(c *rest.Config) (dynamic.Interface, error) { return dynamic.NewForConfig(c) }
	ours   newClient = informer.NewClient
)

func startWith(t *testing.T, newClient newClient, handler http.Handler, edit func(*informer.Options)) (*informer.Set, *log) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	client, err := newClient(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	reported := &log{}
	o := informer.Options{Client: client, Resolve: resolveShelf, Handler: reported.handle}
	if edit != nil {
		edit(&o)
	}
	s := informer.New(o)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	s.Start(ctx, shelf)
	return s, reported
}

// until waits until the condition is true. what describes the condition.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		return condition(), nil
	})
	if err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

func synced(s *informer.Set) func() bool {
	return func() bool { st, _ := s.State(shelf); return st.Synced }
}

func reason(s *informer.Set, want string) func() bool {
	return func() bool { st, ok := s.State(shelf); return ok && st.Reason == want }
}

func names(s *informer.Set) []string {
	var out []string
	for _, o := range s.List(shelf) {
		out = append(out, o.GetName())
	}
	slices.Sort(out)
	return out
}

func TestListsThenFollows(t *testing.T) {
	l := newLibrary("a", "b")
	s, reported := start(t, l, nil)
	until(t, "the first list", synced(s))
	l.put("c")
	until(t, "an event", func() bool { return reported.has("+c") })
	l.put("a")
	until(t, "a change", func() bool { return reported.has("~a") })
	if diff := cmp.Diff([]string{"a", "b", "c"}, names(s)); diff != "" {
		t.Error(diff)
	}
	if o, ok := s.Get(shelf, informer.Key("", "a")); !ok || o.GetResourceVersion() != "12" {
		t.Errorf("got %v, %v", o, ok)
	}
}

func TestSyncedBeforeTheHandlerIsTold(t *testing.T) {
	var s *informer.Set
	ready := make(chan struct{})
	seen := make(chan bool, 1)
	s, _ = start(t, newLibrary("a"), func(o *informer.Options) {
		o.Handler = func(gvk schema.GroupVersionKind, _, _ metav1.Object) {
			<-ready
			st, _ := s.State(gvk)
			_, ok := s.Get(gvk, "a")
			seen <- st.Synced && ok
		}
	})
	close(ready)
	if !<-seen {
		t.Error("the handler was told of an object of a kind that is not synced")
	}
}

func TestTheHandlerCanTellTheFirstListFromChanges(t *testing.T) {
	var s *informer.Set
	ready := make(chan struct{})
	seen := make(chan string, 3)
	l := newLibrary("a", "b")
	s, _ = start(t, l, func(o *informer.Options) {
		o.Handler = func(gvk schema.GroupVersionKind, _, latest metav1.Object) {
			<-ready
			st, _ := s.State(gvk)
			seen <- fmt.Sprintf("%s %t", latest.GetName(), st.Delivered)
		}
	})
	close(ready)
	first := []string{<-seen, <-seen}
	slices.Sort(first)
	until(t, "the handler to have been told", func() bool { st, _ := s.State(shelf); return st.Delivered })
	l.put("c")
	if diff := cmp.Diff([]string{"a false", "b false", "c true"}, append(first, <-seen)); diff != "" {
		t.Errorf("objects, and whether the first list had been told (-want +got):\n%s", diff)
	}
}

func TestReasons(t *testing.T) {
	tests := map[string]struct {
		list    http.HandlerFunc
		resolve func(schema.GroupVersionKind) (schema.GroupVersionResource, error)
		want    string
	}{
		"a kind that the mapper does not know": {
			resolve: func(gvk schema.GroupVersionKind) (schema.GroupVersionResource, error) {
				return schema.GroupVersionResource{}, fmt.Errorf("mapping: %w", &meta.NoKindMatchError{GroupKind: gvk.GroupKind()})
			},
			want: hubv1.ReasonKindNotServed,
		},
		"a kind that the server does not know": {list: http.NotFound, want: hubv1.ReasonKindNotServed},
		"a mapper that cannot ask": {
			resolve: func(schema.GroupVersionKind) (schema.GroupVersionResource, error) {
				return schema.GroupVersionResource{}, errors.New("connection refused")
			},
			want: hubv1.ReasonUnreachable,
		},
		"a right that is missing":     {list: refuse(403, metav1.StatusReasonForbidden), want: hubv1.ReasonForbidden},
		"a token that is not taken":   {list: refuse(401, metav1.StatusReasonUnauthorized), want: hubv1.ReasonUnauthorized},
		"a server that is overloaded": {list: refuse(429, metav1.StatusReasonTooManyRequests), want: hubv1.ReasonThrottled},
		"a server that fails":         {list: refuse(500, metav1.StatusReasonInternalError), want: hubv1.ReasonServerError},
		"a list that hangs":           {list: hang, want: hubv1.ReasonUnreachable},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLibrary("a")
			l.list = tc.list
			var mu sync.Mutex
			healed := false
			s, _ := start(t, l, func(o *informer.Options) {
				o.ListTimeout = 300 * time.Millisecond
				o.Resolve = func(gvk schema.GroupVersionKind) (schema.GroupVersionResource, error) {
					mu.Lock()
					defer mu.Unlock()
					if tc.resolve != nil && !healed {
						return tc.resolve(gvk)
					}
					return resolveShelf(gvk)
				}
			})
			until(t, tc.want, reason(s, tc.want))
			if st, _ := s.State(shelf); st.Synced || st.Message == "" || st.Since.IsZero() {
				t.Errorf("state %+v", st)
			}
			mu.Lock()
			healed = true
			mu.Unlock()
			l.set(func(l *library) { l.list = nil })
			until(t, "repair", func() bool { s.Restart(); return synced(s)() })
			until(t, "no reason", reason(s, ""))
		})
	}
}

func TestOneHungKindHoldsUpNoOther(t *testing.T) {
	l := newLibrary("a")
	hung := schema.GroupVersionKind{Group: "lib.example.com", Version: "v1", Kind: "Vault"}
	s, _ := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "vaults") {
			hang(w, r)
			return
		}
		l.ServeHTTP(w, r)
	}), func(o *informer.Options) {
		o.Resolve = func(gvk schema.GroupVersionKind) (schema.GroupVersionResource, error) {
			if gvk == hung {
				return gvk.GroupVersion().WithResource("vaults"), nil
			}
			return resolveShelf(gvk)
		}
	})
	s.Start(t.Context(), hung)
	until(t, "the other kind", synced(s))
	if st, ok := s.State(hung); !ok || st.Synced {
		t.Errorf("state of the hung kind %+v, %v", st, ok)
	}
}

func TestABrokenWatchGoesOnWhereItEnded(t *testing.T) {
	l := newLibrary("a")
	l.watch = func(w http.ResponseWriter, r *http.Request) { // every watch is cut after a moment
		ctx, cancel := context.WithTimeout(r.Context(), 700*time.Millisecond)
		defer cancel()
		l.follow(w, r.WithContext(ctx))
		panic(http.ErrAbortHandler)
	}
	s, reported := start(t, l, nil)
	until(t, "the first list", synced(s))
	for i := range 3 {
		name := fmt.Sprintf("n%d", i)
		l.put(name)
		until(t, name, func() bool { return reported.has("+" + name) })
		_, before := l.opened()
		until(t, "another watch", func() bool { _, now := l.opened(); return len(now) > len(before) })
	}
	lists, watches := l.opened()
	if lists != 1 {
		t.Errorf("listed %d times", lists)
	}
	if last := watches[len(watches)-1]; last != "13" {
		t.Errorf("last watch was opened at %s: %v", last, watches)
	}
}

func TestAnExpiredWatchListsAgainAndReportsDeletedObjects(t *testing.T) {
	l := newLibrary("a", "b")
	s, reported := start(t, l, nil)
	until(t, "the first list", synced(s))
	until(t, "the watch", func() bool { _, w := l.opened(); return len(w) == 1 })
	l.set(func(l *library) {
		delete(l.shelves, "b")
		l.shelves["c"] = 20
		l.version = 20
		l.watch = func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("resourceVersion") == "10" {
				refuse(410, metav1.StatusReasonExpired)(w, r)
				return
			}
			l.follow(w, r)
		}
	})
	s.Restart()
	until(t, "the news", func() bool { return reported.has("-b") && reported.has("+c") })
	if reported.has("~a") || reported.has("-a") {
		t.Errorf("told of an object that did not change: %v", reported.events)
	}
	if lists, _ := l.opened(); lists != 2 {
		t.Errorf("listed %d times", lists)
	}
}

func TestAKindThatIsListedOnceMoreTellsOfEveryObject(t *testing.T) {
	l := newLibrary("a", "b")
	s, reported := start(t, l, nil)
	until(t, "the first list", synced(s))
	until(t, "the watch", func() bool { _, w := l.opened(); return len(w) == 1 })
	s.Relist(shelf)
	until(t, "the news", func() bool { return reported.has("~a") && reported.has("~b") })
	until(t, "the watch", func() bool { _, w := l.opened(); return len(w) == 2 })
	if lists, _ := l.opened(); lists != 2 || reported.has("-a") {
		t.Errorf("listed %d times, told %v", lists, reported.events)
	}
	s.Restart()
	until(t, "the watch", func() bool { _, w := l.opened(); return len(w) == 3 })
	if lists, _ := l.opened(); lists != 2 {
		t.Errorf("listed %d times, though nobody asked for the last one", lists)
	}
}

func TestAListThatFailsIsAskedForAgain(t *testing.T) {
	l := newLibrary("a")
	s, reported := start(t, l, nil)
	until(t, "the first list", synced(s))
	l.set(func(l *library) { l.list = refuse(500, metav1.StatusReasonInternalError) })
	s.Relist(shelf)
	until(t, "the failure", reason(s, hubv1.ReasonServerError))
	if diff := cmp.Diff([]string{"a"}, names(s)); diff != "" {
		t.Errorf("objects meanwhile (-want +got):\n%s", diff)
	}
	l.set(func(l *library) { l.list = nil })
	until(t, "the news", func() bool { return reported.has("~a") })
}

func TestObjectsStayWhileTheServerIsAway(t *testing.T) {
	l := newLibrary("a")
	s, reported := start(t, l, nil)
	until(t, "the first list", synced(s))
	l.set(func(l *library) { l.watch = http.NotFound; l.list = http.NotFound })
	s.Restart()
	until(t, "the reason", reason(s, hubv1.ReasonKindNotServed))
	if st, _ := s.State(shelf); !st.Synced || reported.has("-a") || len(names(s)) != 1 {
		t.Errorf("state %+v, objects %v", st, names(s))
	}
	l.set(func(l *library) { l.watch = nil; l.list = nil; delete(l.shelves, "a") })
	s.Restart()
	until(t, "the delete", func() bool { return reported.has("-a") })
}

func TestAnIdleWatchIsOpenedAgain(t *testing.T) {
	l := newLibrary("a")
	s, _ := start(t, l, func(o *informer.Options) { o.IdleTimeout = 50 * time.Millisecond })
	until(t, "three watches", func() bool { _, w := l.opened(); return len(w) >= 3 })
	if lists, _ := l.opened(); lists != 1 || !synced(s)() {
		t.Errorf("listed %d times", lists)
	}
}

func TestAWatchThatDoesNotOpenIsUnreachable(t *testing.T) {
	l := newLibrary("a")
	l.watch = hang
	s, _ := start(t, l, func(o *informer.Options) { o.ListTimeout = 200 * time.Millisecond })
	until(t, "the reason", reason(s, hubv1.ReasonUnreachable))
	if !synced(s)() {
		t.Error("the list does not count")
	}
	l.set(func(l *library) { l.watch = nil })
	s.Restart()
	until(t, "repair", reason(s, ""))
}

func TestAServerWithAnOlderVersionIsListedAgain(t *testing.T) {
	l := newLibrary("a", "b")
	s, reported := start(t, l, nil)
	until(t, "the first list", synced(s))
	l.set(func(l *library) {
		delete(l.shelves, "b")
		l.version, l.shelves["a"] = 4, 4
		l.watch = func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("resourceVersion") == "10" {
				_ = json.NewEncoder(w).Encode(map[string]any{"type": "BOOKMARK", "object": item("", 5)})
				w.(http.Flusher).Flush()
			}
			l.follow(w, r)
		}
	})
	s.Restart()
	until(t, "the news", func() bool { return reported.has("-b") && reported.has("~a") })
}

func TestARefusedObjectCostsOnlyItself(t *testing.T) {
	tests := map[string]func(){
		"an error": nil,
		"a panic":  func() { panic("boom") },
	}
	for name, explode := range tests {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			bad := ""
			l := newLibrary("a", "b")
			s, reported := start(t, l, func(o *informer.Options) {
				o.Transform = func(u *unstructured.Unstructured) (metav1.Object, error) {
					mu.Lock()
					defer mu.Unlock()
					if u.GetName() != bad {
						return u, nil
					}
					if explode != nil {
						explode()
					}
					return nil, errors.New("unreadable")
				}
			})
			until(t, "the first list", synced(s))
			mu.Lock()
			bad = "b"
			mu.Unlock()
			l.put("b")
			until(t, "the note", func() bool { st, _ := s.State(shelf); return strings.HasPrefix(st.Refused, "b: ") })
			l.put("c")
			until(t, "the next object", func() bool { return reported.has("+c") })
			if o, ok := s.Get(shelf, "b"); !ok || o.GetResourceVersion() != "10" {
				t.Errorf("the former copy is %v, %v", o, ok)
			}
		})
	}
}

func TestStopLeavesNothingBehind(t *testing.T) {
	l := newLibrary("a")
	hung := newLibrary("a")
	hung.list = hang
	s, reported := start(t, l, nil)
	h, _ := start(t, hung, nil)
	until(t, "the first list", synced(s))
	s.Stop(shelf)
	h.Stop(shelf)
	until(t, "the goroutines to end", func() bool {
		buf := make([]byte, 1<<20)
		return !strings.Contains(string(buf[:runtime.Stack(buf, true)]), "informer.(*")
	})
	if _, ok := s.State(shelf); ok || reported.has("-a") {
		t.Errorf("a stopped kind is still there, or its objects were called gone: %v", reported.events)
	}
	s.Start(t.Context(), shelf)
	until(t, "another start", synced(s))
}

func TestAKindEndsWithItsContextAndCanBeStartedAgain(t *testing.T) {
	l := newLibrary("a")
	other := schema.GroupVersionKind{Group: "lib.example.com", Version: "v1", Kind: "Book"}
	s, _ := start(t, l, nil)
	ctx, cancel := context.WithCancel(t.Context())
	s.Start(ctx, other)
	s.Start(ctx, other) // a second Start has no effect
	until(t, "the first list", func() bool { st, _ := s.State(other); return st.Synced })
	cancel()
	s.Start(t.Context(), other)
	until(t, "another start", func() bool { st, _ := s.State(other); return st.Synced })
}
