//go:build !race

package discovery_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	memory "github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/member/discovery"
	"github.com/hanse-dev/hanse/test/heap"
)

// hostileMember serves definitions and schemas. It sends the definitions as pages of 50, and its schemas have many
// fields.
type hostileMember struct {
	pages      int
	definition func(i int) string // the JSON of the metadata of a definition
	fields     int
	watched    chan struct{}
}

// ServeHTTP implements http.Handler.
func (h *hostileMember) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	page := 0
	_, _ = fmt.Sscan(r.URL.Query().Get("continue"), &page)
	switch {
	case strings.HasPrefix(r.URL.Path, "/openapi/v3/apis/"):
		w.Header().Set("ETag", strings.Repeat("e", 100_000))
		group := strings.Split(r.URL.Path, "/")[4]
		var fields []string
		for i := range h.fields {
			fields = append(fields, fmt.Sprintf(`"%s-%d-%s":{"type":"string"}`, group, i, strings.Repeat("f", 150)))
		}
		_, _ = fmt.Fprintf(w, `{"components":{"schemas":{"W":{"type":"object","x-kubernetes-group-version-kind":[{"group":%q,"version":"v1","kind":"Widget"}],"properties":{%s}}}}}`,
			group, strings.Join(fields, ","))
	case r.URL.Query().Has("watch"):
		w.(http.Flusher).Flush()
		select {
		case h.watched <- struct{}{}:
		default:
		}
		<-r.Context().Done()
	default:
		next, items := "", []string{}
		if page < h.pages {
			next = fmt.Sprint(page + 1)
			for i := range 50 {
				items = append(items, `{"metadata":`+h.definition(50*page+i)+`}`)
			}
		}
		_, _ = fmt.Fprintf(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"5","continue":%q},"items":[%s]}`,
			next, strings.Join(items, ","))
	}
}

func kindsOf(t *testing.T, h *hostileMember, retained *memory.Retained) *discovery.Kinds {
	t.Helper()
	h.watched = make(chan struct{}, 1)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	config := &rest.Config{Host: server.URL, QPS: -1}
	kinds, err := discovery.NewForConfig(ctx, config, config, retained, func(schema.GroupKind) {}, func() {})
	must(t, err)
	return kinds
}

func TestTheTextsOfAHostileMembersDefinitionsDoNotStay(t *testing.T) {
	long := strings.Repeat("x", 50_000)
	for name, definition := range map[string]string{
		"a long name":            `{"name":"d%[1]d-` + long + `"}`,
		"a long uid":             `{"name":"d%[1]d","uid":"%[1]d-` + long + `"}`,
		"a long resourceVersion": `{"name":"d%[1]d","resourceVersion":"1%[1]d` + strings.Repeat("9", 50_000) + `"}`,
		"a long annotation":      `{"name":"d%[1]d","annotations":{"a":"%[1]d` + long + `"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			h := &hostileMember{pages: 8, definition: func(i int) string { return fmt.Sprintf(definition, i) }}
			before := heap.Live()
			kinds := kindsOf(t, h, nil)
			kinds.Use(schema.GroupVersionKind{Group: "shop.example.com", Version: "v1", Kind: "Widget"}, true)
			<-h.watched
			if grown := heap.Live() - before; grown > 400<<10+4<<20 { // of 20 MB
				t.Errorf("%d KiB stay", grown>>10)
			}
		})
	}
}

func TestSchemasOfAMemberFitIntoItsBudgetOrAreReported(t *testing.T) {
	var reported atomic.Pointer[string]
	h := &hostileMember{fields: 20_000, definition: func(int) string { return "{}" }}
	kinds := kindsOf(t, h, memory.NewRetained(func(what string, err error) {
		text := what + ": " + err.Error()
		reported.Store(&text)
	}))
	before, most := heap.Live(), 40
	for i := 0; reported.Load() == nil; i++ {
		if i == most {
			t.Fatalf("%d kinds fit", most)
		}
		gvk := schema.GroupVersionKind{Group: fmt.Sprintf("g%d.example.com", i), Version: "v1", Kind: "Widget"}
		kinds.Use(gvk, true)
		kinds.Fit(t.Context(), thing(gvk, nil))
	}
	if want := "the schema of Widget: the data that the hub keeps of the cluster is larger than 64 MiB, which is 1/16 of GOMEMLIMIT"; *reported.Load() != want {
		t.Errorf("reported %q, want %q", *reported.Load(), want)
	}
	if grown := heap.Live() - before; grown > 70<<20 {
		t.Errorf("%d MiB stay", grown>>20)
	}
	kinds.Use(schema.GroupVersionKind{Group: "g0.example.com", Version: "v1", Kind: "Widget"}, false)
	reported.Store(nil)
	gvk := schema.GroupVersionKind{Group: "other.example.com", Version: "v1", Kind: "Widget"}
	kinds.Use(gvk, true)
	if kinds.Fit(t.Context(), thing(gvk, nil)); reported.Load() != nil {
		t.Errorf("after another kind is no longer in use: %s", *reported.Load())
	}
}

func TestASchemaOfTooManyFieldsIsReported(t *testing.T) {
	var reported atomic.Pointer[string]
	h := &hostileMember{fields: 60_000, definition: func(int) string { return "{}" }}
	kinds := kindsOf(t, h, memory.NewRetained(func(what string, err error) {
		text := what + ": " + err.Error()
		reported.Store(&text)
	}))
	gvk := schema.GroupVersionKind{Group: "shop.example.com", Version: "v1", Kind: "Widget"}
	kinds.Use(gvk, true)
	kinds.Fit(t.Context(), thing(gvk, nil))
	want := "the schema of Widget: the schema has more than 50000 fields, so the hub does not check the fields of such objects"
	if got := reported.Load(); got == nil || *got != want {
		t.Errorf("reported %v, want %q", got, want)
	}
}
