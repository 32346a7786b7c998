package console

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/wait"
)

// followed is a stream of events that a browser has opened. The browser has read the first event. If the console has
// refused the stream, followed has the refusal.
type followed struct {
	status     int
	retryAfter string
	lines      *bufio.Scanner
}

// follow opens a stream of events, and waits for its first event.
func (b *browser) follow(ctx context.Context, base string) followed {
	b.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/live?scope=*", nil)
	must(b.T, err)
	if base != b.server.URL {
		for i, value := range b.cookies() {
			r.AddCookie(cookie(i, value, time.Time{}))
		}
	}
	answer, err := b.http.Do(r)
	must(b.T, err)
	b.Cleanup(func() { _ = answer.Body.Close() })
	f := followed{answer.StatusCode, answer.Header.Get("Retry-After"), bufio.NewScanner(answer.Body)}
	if f.status == http.StatusOK {
		b.event(f.lines, "open")
	}
	return f
}

// event reads the next event of a stream. It fails the test if the event has another name.
func (b *browser) event(lines *bufio.Scanner, name string) {
	b.Helper()
	for lines.Scan() {
		if event, ok := strings.CutPrefix(lines.Text(), "event: "); ok && event != "beat" {
			if event != name {
				b.Fatalf("the event is %q, want %q", event, name)
			}
			return
		}
	}
	b.Fatalf("the stream ended before the event %q: %v", name, lines.Err())
}

// opened returns the number of open streams.
func (l *Live) opened() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.streams)
}

// awaitStreams waits until n streams are open.
func (w *world) awaitStreams(n int) {
	w.Helper()
	err := wait.PollUntilContextTimeout(w.Context(), time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		return w.console.Live.opened() == n, nil
	})
	if err != nil {
		w.Fatalf("%d streams are open, want %d: %v", w.console.Live.opened(), n, err)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

func TestAThousandPagesAreOpenAndNoMore(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var users []*browser
	for range maxStreams/maxStreamsPerUser + 1 {
		users = append(users, w.signedIn(w.token(nil, reads())))
	}
	before := heap()
	refused := func(b *browser) {
		t.Helper()
		f := b.follow(ctx, w.server.URL)
		if f.status != http.StatusServiceUnavailable || f.retryAfter == "" {
			t.Errorf("one stream too many: %d, to be tried again after %q seconds", f.status, f.retryAfter)
		}
	}
	last := users[len(users)-1]
	for i, user := range users[:len(users)-1] {
		for range maxStreamsPerUser {
			user.follow(ctx, w.server.URL)
		}
		if i == 0 {
			refused(user)
		}
		if n := w.console.Live.opened(); n == maxStreams/2 {
			// The measured memory includes the test's browsers, which run in the same process.
			if used := heap() - before; used > 100<<20 {
				t.Errorf("%d streams take %d MiB", n, used>>20)
			} else {
				t.Logf("%d streams take %d KiB", n, used>>10)
			}
		}
	}
	refused(last)
	if r := last.get("/"); r.StatusCode != http.StatusOK {
		t.Errorf("a page beside the streams: %s", r.Status)
	}
	cancel()
	w.awaitStreams(0)
	if f := last.follow(t.Context(), w.server.URL); f.status != http.StatusOK {
		t.Errorf("a stream after the others: %d", f.status)
	}
}

func TestAStreamLastsLongerThanTheLimitOfOtherRequests(t *testing.T) {
	w := newWorld(t)
	b := w.signedIn(w.token(nil, reads()))
	w.console.Live.sendWithin = tellEvery / 2
	plain := httptest.NewUnstartedServer(w.server.Config.Handler) // HTTP/1.1 without TLS
	plain.Config.ReadTimeout = tellEvery / 2
	plain.Start()
	t.Cleanup(func() { plain.CloseClientConnections(); plain.Close() })
	for _, base := range []string{plain.URL, w.server.URL} {
		f := b.follow(t.Context(), base)
		for range 3 { // each event takes tellEvery
			w.console.Live.Changed(w.ns)
			b.event(f.lines, "changed")
		}
	}
}

// pipes is a listener whose connections have no buffer, so that a write blocks until the other side reads.
type pipes struct {
	net.Listener

	dialed chan net.Conn
}

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p.dialed
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func TestAStreamThatNoBrowserReadsIsEnded(t *testing.T) {
	w := newWorld(t)
	w.console.Live.sendWithin = time.Second
	b := w.signedIn(w.token(nil, reads()))
	p := pipes{w.server.Listener, make(chan net.Conn)}
	server := &http.Server{Handler: w.server.Config.Handler, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(p) }()
	t.Cleanup(func() { close(p.dialed) })
	b.http.Transport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		p.dialed <- theirs
		return ours, nil
	}}
	b.follow(t.Context(), "http://pipe")
	w.awaitStreams(1)
	go func() { // send many events, because the test's browser buffers some
		for t.Context().Err() == nil && w.console.Live.opened() > 0 {
			w.console.Live.ChangedEverywhere()
			w.console.Live.notify()
		}
	}()
	w.awaitStreams(0)
}

// gate delays all requests with one token to the API server, until the test closes the channel open.
type gate struct {
	next    http.RoundTripper
	token   string
	entered chan struct{}
	open    chan struct{}
}

func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") == "Bearer "+g.token {
		select {
		case g.entered <- struct{}{}:
		case <-g.open:
		}
		select {
		case <-g.open:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return g.next.RoundTrip(r)
}

func TestAUserWithManySlowRequestsDelaysNoOtherUser(t *testing.T) {
	w := newWorld(t)
	page := "/?namespace=" + w.ns // a page without the objects of other tests
	slow, other := w.signedIn(w.token(nil, reads())), w.signedIn(w.elsewhere().token(nil, reads()))
	var s session
	must(t, w.console.unseal(sessionPurpose, strings.Join(slow.cookies(), ""), &s))
	g := &gate{w.console.users.transport, s.Token, make(chan struct{}), make(chan struct{})}
	w.console.users.transport = g
	w.console.waitForSlot = time.Minute // the slow pages wait until all requests have arrived
	var reading sync.WaitGroup
	for range 20 {
		reading.Go(func() {
			if r := slow.get(page); r.StatusCode != http.StatusOK {
				t.Errorf("a slow page: %s", r.Status)
			}
		})
	}
	for range maxPerUser {
		<-g.entered
	}
	for range 5 {
		if r := other.get(page); r.StatusCode != http.StatusOK {
			t.Errorf("a page of another user: %s", r.Status)
		}
	}
	if f := other.follow(t.Context(), w.server.URL); f.status != http.StatusOK {
		t.Errorf("a stream of another user: %d", f.status)
	}
	w.signedIn(w.token(nil, reads()))
	select {
	case <-g.entered:
		t.Errorf("more than %d pages of a user are made at a time", maxPerUser)
	default:
	}
	close(g.open)
	reading.Wait()
}

func TestAUserWhoAsksForTooMuchIsToldWhenToTryAgain(t *testing.T) {
	w := newWorld(t)
	page := "/?namespace=" + w.ns
	b := w.signedIn(w.token(nil, reads()))
	var s session
	must(t, w.console.unseal(sessionPurpose, strings.Join(b.cookies(), ""), &s))
	g := &gate{w.console.users.transport, s.Token, make(chan struct{}), make(chan struct{})}
	w.console.users.transport = g
	var reading sync.WaitGroup
	defer reading.Wait()
	defer close(g.open)
	for range maxPerUser {
		reading.Go(func() { b.get(page) })
		<-g.entered
	}
	w.console.waitForSlot = time.Millisecond
	r := b.get(page)
	if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" || !strings.Contains(r.text, "reload the page") {
		t.Errorf("a third page: %s: %s", r.Status, r.text)
	}
}

// value returns the value of a counter or of a gauge.
func value(t *testing.T, of prometheus.Collector) float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(of)
	families, err := registry.Gather()
	must(t, err)
	m := families[0].GetMetric()[0]
	return m.GetCounter().GetValue() + m.GetGauge().GetValue()
}

func TestAnswersAndOpenPagesAreCounted(t *testing.T) {
	w := newWorld(t)
	b := w.signedIn(w.token(nil, reads()))
	count := func(page, code string) float64 { return value(t, answers.WithLabelValues(page, code)) }
	pages, assets, unknown, streams := count("/", "2xx"), count("/assets/{name}", "2xx"), count("other", "4xx"), value(t, openStreams)
	b.get("/")
	b.get("/assets/console.js")
	b.get("/nothing/" + w.ns)
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		return count("/", "2xx") == pages+1 && count("/assets/{name}", "2xx") == assets+1 && count("other", "4xx") == unknown+1, nil
	}) // the server counts a request only after it has sent the response
	if err != nil {
		t.Errorf("have %v pages, %v assets and %v unknown: %v", count("/", "2xx"), count("/assets/{name}", "2xx"), count("other", "4xx"), err)
	}
	b.follow(t.Context(), w.server.URL)
	if n := value(t, openStreams); n != streams+1 {
		t.Errorf("%v open pages after %v", n, streams)
	}
}
