//go:build !race

package informer_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/hanse-dev/hanse/test/heap"
)

// TestRefusedObjectsOfAListStayNowhere lists objects with names of 300 kB, which are refused, and looks at the heap
// while the list goes on.
func TestRefusedObjectsOfAListStayNowhere(t *testing.T) {
	const pages, each = 20, 20
	before := heap.Live()
	last := make(chan struct{})
	startWith(t, ours, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		page := 0
		if _, _ = fmt.Sscan(r.URL.Query().Get("continue"), &page); page == pages {
			close(last)
			<-r.Context().Done()
			return
		}
		_, _ = fmt.Fprintf(w, `{"apiVersion":"lib.example.com/v1","kind":"ShelfList","metadata":{"resourceVersion":"9","continue":"%d"},"items":[{}`, page+1)
		for i := range each {
			_, _ = fmt.Fprintf(w, `,{"metadata":{"name":"%d-%d-`, page, i)
			_, _ = io.WriteString(w, strings.Repeat("n", 300_000)+`"}}`)
		}
		_, _ = io.WriteString(w, "]}")
	}), nil)
	<-last
	// The client may still hold two pages: the one that is transformed, and the one that is read.
	if grown := heap.Live() - before; grown > 3*each*300_000*2 {
		t.Errorf("the heap grew by %d MiB during the list", grown>>20)
	}
}
