package informer_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/informer"
)

func TestAnObjectThatNoServerStoresIsNotTaken(t *testing.T) {
	long := strings.Repeat("x", 2<<20)
	tests := map[string]struct {
		object metav1.ObjectMeta
		want   string // text in the error; empty if the object is accepted
	}{
		"an ordinary one":        {object: metav1.ObjectMeta{Name: "web", Namespace: "shop", UID: "5f0c2a1e-8a55-4a51-9d4d-0a4ad6b7d1a0", ResourceVersion: "7"}},
		"a long uid":             {object: metav1.ObjectMeta{UID: types.UID(long)}, want: "metadata.uid of more than 128 characters"},
		"a long resourceVersion": {object: metav1.ObjectMeta{ResourceVersion: long}, want: "metadata.resourceVersion of more than 128 characters"},
		"a long name":            {object: metav1.ObjectMeta{Name: long}, want: "metadata.name of more than 253 characters"},
		"a long namespace":       {object: metav1.ObjectMeta{Namespace: long}, want: "metadata.namespace of more than 253 characters"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := informer.CheckObject(&tc.object)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// seen records which objects Transform got.
type seen struct {
	mu    sync.Mutex
	kinds map[string]string // apiVersion and kind by name
}

func (s *seen) transform(u *unstructured.Unstructured) (metav1.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds[u.GetName()] = u.GetAPIVersion() + " " + u.GetKind()
	return &metav1.ObjectMeta{Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion()}, nil
}

func (s *seen) of(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kinds[name]
}

// odd returns an object whose apiVersion and kind differ from the requested ones.
func odd(name string, version int) map[string]any {
	o := item(name, version)
	o["apiVersion"], o["kind"] = strings.Repeat("v", 3000)+"/"+strings.Repeat("w", 3000), strings.Repeat("k", 3000)
	return o
}

// serveOnce answers a list with the objects, and a watch with the events.
func serveOnce(objects, events []any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "true" {
			_ = json.NewEncoder(w).Encode(map[string]any{
				"apiVersion": "lib.example.com/v1", "kind": "ShelfList", "items": objects, "metadata": map[string]any{"resourceVersion": "10"},
			})
			return
		}
		for _, e := range events {
			_ = json.NewEncoder(w).Encode(map[string]any{"type": "ADDED", "object": e})
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

func TestTransformSeesTheKindThatWasAskedForWhateverTheServerSays(t *testing.T) {
	for name, client := range map[string]newClient{"with client-go's client": theirs, "with the client of this package": ours} {
		t.Run(name, func(t *testing.T) {
			got := &seen{kinds: map[string]string{}}
			s, _ := startWith(t, client, serveOnce([]any{odd("listed", 9)}, []any{odd("watched", 11)}), func(o *informer.Options) {
				o.Transform = got.transform
			})
			until(t, "both objects", func() bool { return len(names(s)) == 2 })
			for _, name := range []string{"listed", "watched"} {
				if kind := got.of(name); kind != "lib.example.com/v1 Shelf" {
					t.Errorf("the object %s is of kind %.80q", name, kind)
				}
			}
		})
	}
}

func TestTransformSeesNoObjectThatNoServerWouldStore(t *testing.T) {
	long := strings.Repeat("x", 3000)
	edits := map[string]func(metadata map[string]any){
		"name":            func(m map[string]any) { m["name"] = long },
		"namespace":       func(m map[string]any) { m["namespace"] = long },
		"uid":             func(m map[string]any) { m["uid"] = long },
		"resourceVersion": func(m map[string]any) { m["resourceVersion"] = strings.Repeat("9", 3000) },
	}
	for field, edit := range edits {
		for place, serve := range map[string]func(bad any) http.HandlerFunc{
			"a list":   func(bad any) http.HandlerFunc { return serveOnce([]any{item("good", 9), bad}, nil) },
			"an event": func(bad any) http.HandlerFunc { return serveOnce([]any{item("good", 9)}, []any{bad}) },
		} {
			t.Run(field+" in "+place, func(t *testing.T) {
				bad := item("bad", 11)
				edit(bad["metadata"].(map[string]any))
				s, _ := start(t, serve(bad), nil)
				until(t, "the refusal", func() bool {
					state, _ := s.State(shelf)
					return strings.Contains(state.Refused, "metadata."+field+" of more than") && len(state.Refused) < 600
				})
				until(t, "the end of the list", synced(s)) // a refusal is told while the list is read
				if diff := cmp.Diff([]string{"good"}, names(s)); diff != "" {
					t.Errorf("stored (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestAListWithALongVersionOrTokenIsRefused(t *testing.T) {
	tests := map[string]struct {
		metadata map[string]any
		reason   string
	}{
		"a resourceVersion": {map[string]any{"resourceVersion": strings.Repeat("9", 3000)}, hubv1.ReasonServerError},
		"a token":           {map[string]any{"resourceVersion": "9", "continue": strings.Repeat("c", 9000)}, hubv1.ReasonAnswerTooLarge},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s, _ := start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "lib.example.com/v1", "kind": "ShelfList", "items": []any{}, "metadata": tc.metadata})
			}), nil)
			until(t, "the refusal", reason(s, tc.reason))
		})
	}
}
