//go:build !race

package cache_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/hanse-dev/hanse/member/cache"
	"github.com/hanse-dev/hanse/test/heap"
)

// TestAHostileMemberCannotFillTheMemory lists objects whose texts are as long as the pages allow, page after page.
func TestAHostileMemberCannotFillTheMemory(t *testing.T) {
	const pages, each = 4, 20
	long := strings.Repeat("k", 300_000)
	tests := map[string]string{
		"a long kind":        `"kind":"%[1]s` + long + `","apiVersion":"v1","metadata":{"name":"%[1]s"}`,
		"a long apiVersion":  `"kind":"K","apiVersion":"%[1]s` + long + `/v1","metadata":{"name":"%[1]s"}`,
		"a long name":        `"metadata":{"name":"%[1]s` + long + `"}`,
		"a long uid":         `"metadata":{"name":"%[1]s","uid":"%[1]s` + long + `"}`,
		"a long annotation":  `"metadata":{"name":"%[1]s","annotations":{"hanse.dev/owner":"%[1]s` + long + `"}}`,
		"a long condition":   `"metadata":{"name":"%[1]s"},"status":{"conditions":[{"type":"Ready","status":"False","reason":"%[1]s` + long + `"}]}`,
		"a long status":      `"metadata":{"name":"%[1]s"},"status":{"phase":"%[1]s` + long + `"}`,
		"a long status name": `"metadata":{"name":"%[1]s"},"status":{"%[1]s` + long + `":1}`,
	}
	for name, object := range tests {
		t.Run(name, func(t *testing.T) {
			before := heap.Live()
			done := make(chan struct{})
			ob := observed(t, func(w http.ResponseWriter, r *http.Request) {
				page := 0
				_, _ = fmt.Sscan(r.URL.Query().Get("continue"), &page)
				switch {
				case r.URL.Query().Has("watch"):
					w.(http.Flusher).Flush()
					close(done)
					<-r.Context().Done()
				case page == pages:
					_, _ = io.WriteString(w, list(""))
				default:
					var items []string
					for i := range each {
						items = append(items, "{"+fmt.Sprintf(object, fmt.Sprintf("w-%d-%d", page, i))+"}")
					}
					_, _ = io.WriteString(w, list(fmt.Sprint(page+1), items...))
				}
			}, func(*cache.Options) {})
			<-done
			// The objects have 24 MB. Each record has at most 8 KiB.
			if grown := heap.Live() - before; grown > pages*each*8<<10+4<<20 {
				t.Errorf("%d MiB stay", grown>>20)
			}
			if state, _ := ob.State(widget); !state.Synced {
				t.Errorf("state %+v", state)
			}
		})
	}
}
