package browser

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/duration"
)

// aged is a page that shows an age on each line. The test sets the page's clock, which is one day ahead of the hub's
// clock.
const aged = `<!doctype html><html lang="en"><head><title>Aged</title><script src="/clock.js"></script><script src="/assets/console.js" defer></script></head>
<body><main id="main" data-scope=""><p class="asof">As of <time datetime="2026-11-27T12:00:00Z">then</time></p>%s</main></body></html>`

func TestAgesOfAPageGrowWithoutARequest(t *testing.T) {
	if testing.Short() {
		t.Skip("short: it needs a browser")
	}
	Needed(t)
	made := time.Date(2026, time.November, 27, 12, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	ages := []time.Duration{
		-time.Minute, 0, 119 * time.Second, 2 * time.Minute, 9*time.Minute + 59*time.Second, 10 * time.Minute, 179 * time.Minute, 3 * time.Hour, 7*time.Hour + 59*time.Minute,
		8 * time.Hour, 47 * time.Hour, 2 * day, 8*day - time.Second, 8 * day, 729 * day, 730 * day, 731 * day, 8*365*day - time.Second, 8 * 365 * day,
	}
	var lines strings.Builder
	for _, age := range ages {
		fmt.Fprintf(&lines, `<p><time class="age" datetime="%s">old</time></p>`, made.Add(-age).Format(time.RFC3339))
	}
	var requests atomic.Int32
	mux := http.NewServeMux()
	mux.Handle("/assets/", http.StripPrefix("/assets/", http.FileServer(http.Dir("../../hub/console/assets"))))
	mux.HandleFunc("/clock.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = io.WriteString(w, `window.clock = Date.parse("2026-11-28T12:00:00Z"); Date.now = () => clock;`)
	})
	mux.HandleFunc("/aged", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self'")
		_, _ = fmt.Fprintf(w, aged, lines.String())
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/favicon.ico" { // a browser may request this file at any time
			requests.Add(1)
		}
		mux.ServeHTTP(w, r)
	}))
	defer server.Close()
	b, err := Start(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Stop() })
	tab := b.Open(t)
	tab.Visit(server.URL + "/aged")
	before, passed := requests.Load(), time.Duration(0)
	for _, more := range []time.Duration{0, time.Second, 59 * time.Second, time.Hour, 30 * time.Hour, 400 * day} {
		passed += more
		Eval[int](tab, fmt.Sprintf(`window.clock += %d`, more.Milliseconds()))
		var want []string
		for _, age := range ages {
			want = append(want, duration.HumanDuration(max(age+passed, 0)))
		}
		Eval[bool](tab, `document.dispatchEvent(new Event("visibilitychange"))`)
		if diff := cmp.Diff(want, Eval[[]string](tab, `[...document.querySelectorAll("time.age")].map((t) => t.textContent)`)); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", passed, diff)
		}
	}
	Eval[int](tab, fmt.Sprintf(`window.clock += %d`, (10*365*day).Milliseconds()))
	tab.Wait("the ages grow by themselves", `document.querySelector("time.age").textContent === "11y"`)
	if after := requests.Load(); after != before {
		t.Errorf("the page made %d requests meanwhile", after-before)
	}
	if refused := tab.Refused(); len(refused) > 0 {
		t.Errorf("refused by the policy: %v", refused)
	}
}
