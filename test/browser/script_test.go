package browser

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// scripted is a page that loads the script of the console.
const scripted = `<!doctype html><html lang="en"><head><title>Page</title><script src="/assets/console.js" defer></script></head><body>
<p id="offline" role="status" hidden></p><main id="main" data-scope="*"><p>answer %d</p></main></body></html>`

func TestAnOpenPageIsReadAgainAfterTheHubWasBusy(t *testing.T) {
	if testing.Short() {
		t.Skip("short: it needs a browser")
	}
	Needed(t)
	var answers atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		n := answers.Add(1)
		if n == 2 {
			w.Header().Set("Retry-After", "5")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprintf(w, scripted, n)
	})
	mux.HandleFunc("GET /assets/console.js", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, "../../hub/console/assets/console.js")
	})
	mux.HandleFunc("GET /live", func(w http.ResponseWriter, r *http.Request) { // sends a single change
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "event: open\ndata:\n\nevent: changed\ndata:\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.CloseClientConnections)
	b, err := Start(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Stop() })
	tab := b.Open(t)
	tab.Visit(server.URL)
	tab.Wait("the page says that the hub is busy", `document.getElementById("offline").textContent.includes("The hub is busy")`)
	tab.Wait("the page is read again", `document.getElementById("main").textContent.includes("answer 3") && document.getElementById("offline").hidden`)
}
