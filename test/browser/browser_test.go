package browser

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// faulty is a page with one fault of each kind that the methods of Tab must find.
const faulty = `<!doctype html><html lang="en"><head><title>Faulty</title><style>
  :focus-visible { outline: 3px solid; } .blind:focus-visible { outline: none; } .far { position: absolute; left: -1000em; } .wide { width: 3000px; } .pale { color: #bbb; }
</style></head><body><main>
  <h1 class="pale">Faulty</h1> <a href="/good">good</a> <a href="/blind" class="blind">blind</a> <a href="/far" class="far">far</a>
  <button id="never" tabindex="-1">never</button> <a href="/hidden" hidden>hidden</a> <p class="wide">wide</p>
  <img src="https://example.com/x.png" alt="x">
</main></body></html>`

func TestATabFindsTheFaultsOfAPage(t *testing.T) {
	if testing.Short() {
		t.Skip("short: it needs a browser")
	}
	Needed(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self' 'unsafe-inline'")
		_, _ = io.WriteString(w, faulty)
	}))
	defer server.Close()
	b, err := Start(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Stop() })
	tab := b.Open(t)
	tab.Visit(server.URL)

	var found []string
	for _, barrier := range tab.Barriers() {
		found = append(found, barrier.ID)
	}
	if !slices.Contains(found, "color-contrast") {
		t.Errorf("axe-core finds %v, and no text that is too pale", found)
	}
	want := []string{
		"a /blind has the focus, and does not show it", "a /far has the focus outside the window", "button never is not reached by Tab",
	}
	faults := tab.Unreached()
	slices.Sort(faults)
	if diff := cmp.Diff(want, slices.Compact(faults)); diff != "" {
		t.Errorf("by keyboard (-want +got):\n%s", diff)
	}
	if !tab.ScrollsSideways() {
		t.Error("a page that is wider than its window does not scroll sideways")
	}
	if diff := cmp.Diff([]string{"img-src https://example.com/x.png"}, tab.Refused()); diff != "" {
		t.Errorf("refused by the policy (-want +got):\n%s", diff)
	}
}
