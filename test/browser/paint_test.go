package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestTheFirstPaintOfEachVisitIsMeasured(t *testing.T) {
	if testing.Short() {
		t.Skip("short: it needs a browser")
	}
	Needed(t)
	const slow = 300 * time.Millisecond
	mux := http.NewServeMux()
	mux.HandleFunc("GET /signin", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `<!doctype html><form method="post" action="/signin"><input id="token" name="token"></form>`)
	})
	mux.HandleFunc("POST /signin", func(w http.ResponseWriter, r *http.Request) {
		if r.PostFormValue("token") == "secret" {
			http.Redirect(w, r, "/", http.StatusSeeOther)
		}
	})
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/fault" {
			w.WriteHeader(http.StatusBadGateway)
		}
		if r.URL.Path == "/slow" {
			<-time.After(slow)
		}
		fmt.Fprint(w, `<!doctype html><main id="main" data-scope="*"><p>Content</p></main>`)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	b, err := Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Stop() }()
	all, err := b.FirstPaints(t.Context(), server.URL, "secret", []string{"/", "/slow"}, 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(all["/"]) != 2 || len(all["/slow"]) != 2 || min(all["/slow"][0], all["/slow"][1]) < slow || all["/"][0] <= 0 {
		t.Errorf("the first paints are %v, want two of each page, and those of /slow after %s", all, slow)
	}
	if _, err := b.FirstPaints(t.Context(), server.URL, "secret", []string{"/fault"}, 1); err == nil || !strings.Contains(err.Error(), "502") {
		t.Errorf("an answer that is no page: %v", err)
	}
}
