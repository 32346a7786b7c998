package faultproxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hanse-dev/hanse/lab/pki"
)

// short is a time in which a request on loopback certainly succeeds. The tests also wait this long to see that
// something does not happen.
const short = 300 * time.Millisecond

// bench is a proxy in front of a fake API server, with clients for both.
type bench struct {
	t      *testing.T
	proxy  *Proxy
	base   string
	ca     *pki.CA
	events chan string // the events that the fake API server sends to watches
	server *httptest.Server
}

// seen is the response of the fake API server: the identity that it found in the request.
type seen struct {
	Authorization, User string
	Groups              []string
	Extra               string
	Vouched             bool // true if the request came with a front-proxy certificate
}

func newBench(t *testing.T) *bench {
	t.Helper()
	dir := t.TempDir()
	ca, err := pki.Authority(dir, "ca")
	check(t, err)
	frontCA, err := pki.Authority(dir, "front-ca")
	check(t, err)
	serving, err := ca.Server("server", nil)
	check(t, err)
	front, err := frontCA.Client("front", "front-proxy-client")
	check(t, err)
	b := &bench{t: t, ca: ca, events: make(chan string, 10)}

	b.server = httptest.NewUnstartedServer(http.HandlerFunc(b.serve))
	b.server.TLS = &tls.Config{Certificates: []tls.Certificate{load(t, serving)}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: frontCA.Pool()}
	b.server.EnableHTTP2 = true
	b.server.StartTLS()
	t.Cleanup(b.server.Close)

	b.proxy, err = Start(Config{
		Address: "127.0.0.1:0", Upstream: b.server.URL, CA: ca.Pool(),
		Server: load(t, serving), FrontProxy: load(t, front), Log: io.Discard,
	})
	check(t, err)
	t.Cleanup(func() { _ = b.proxy.Close() })
	b.base = "https://" + b.proxy.listener.Addr().String()
	return b
}

func (b *bench) serve(w http.ResponseWriter, r *http.Request) {
	if truth(r.URL.Query().Get("watch")) {
		w.WriteHeader(http.StatusOK)
		for {
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
				return
			case event := <-b.events:
				_, _ = io.WriteString(w, event+"\n")
			}
		}
	}
	_ = json.NewEncoder(w).Encode(seen{
		Authorization: r.Header.Get("Authorization"), User: r.Header.Get("X-Remote-User"),
		Groups: r.Header["X-Remote-Group"], Extra: r.Header.Get("X-Remote-Extra-Scopes"), Vouched: len(r.TLS.PeerCertificates) > 0,
	})
}

// client returns a client that shares no connections with other clients.
func (b *bench) client(certs ...tls.Certificate) *http.Client {
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: b.ca.Pool(), Certificates: certs}}
	b.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// response is the response to a request of get. The test closes its body at the end.
type response struct {
	code   int
	header http.Header
	body   io.Reader
}

// get requests a path and fails after the time d.
func (b *bench) get(client *http.Client, path string, d time.Duration) (response, error) {
	ctx, cancel := context.WithTimeout(b.t.Context(), d)
	b.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base+path, nil)
	check(b.t, err)
	res, err := client.Do(req)
	if err != nil {
		return response{}, err
	}
	b.t.Cleanup(func() { _ = res.Body.Close() })
	return response{code: res.StatusCode, header: res.Header, body: res.Body}, nil
}

func (b *bench) works(client *http.Client, path string) {
	b.t.Helper()
	res, err := b.get(client, path, 10*time.Second)
	check(b.t, err)
	if res.code != http.StatusOK {
		b.t.Fatalf("GET %s: %d", path, res.code)
	}
	_, err = io.Copy(io.Discard, res.body)
	check(b.t, err)
}

func (b *bench) hangs(client *http.Client, path string) {
	b.t.Helper()
	if res, err := b.get(client, path, short); !errors.Is(err, context.DeadlineExceeded) {
		b.t.Fatalf("GET %s answered: %v, %v", path, res, err)
	}
}

func TestIdentityIsWhatTheClientProved(t *testing.T) {
	b := newBench(t)
	cert, err := b.ca.Client("alice", "alice", "dev", "ops")
	check(t, err)
	tests := map[string]struct {
		certs  []tls.Certificate
		header map[string]string
		want   seen
	}{
		"a bearer token passes through and nobody vouches for it": {
			header: map[string]string{"Authorization": "Bearer t"}, want: seen{Authorization: "Bearer t"},
		},
		"a client certificate becomes a user and its groups": {
			certs: []tls.Certificate{load(t, cert)}, want: seen{User: "alice", Groups: []string{"dev", "ops"}, Vouched: true},
		},
		"a forged identity is stripped": {
			header: map[string]string{"X-Remote-User": "admin", "X-Remote-Group": "system:masters", "X-Remote-Extra-Scopes": "all"}, want: seen{},
		},
		"a forged identity does not add to a proven one": {
			certs:  []tls.Certificate{load(t, cert)},
			header: map[string]string{"X-Remote-Group": "system:masters", "X-Remote-Extra-Scopes": "all"},
			want:   seen{User: "alice", Groups: []string{"dev", "ops"}, Vouched: true},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.base+"/version", nil)
			check(t, err)
			for k, v := range test.header {
				req.Header.Set(k, v)
			}
			res, err := b.client(test.certs...).Do(req)
			check(t, err)
			defer func() { _ = res.Body.Close() }()
			var got seen
			check(t, json.NewDecoder(res.Body).Decode(&got))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestForeignCertificateIsRefused(t *testing.T) {
	b := newBench(t)
	other, err := pki.Authority(t.TempDir(), "other")
	check(t, err)
	cert, err := other.Client("mallory", "mallory", "system:masters")
	check(t, err)
	client, pair := b.client(), load(t, cert)
	client.Transport.(*http.Transport).TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return &pair, nil // although the proxy does not request a certificate of this CA
	}
	if _, err := b.get(client, "/version", 5*time.Second); err == nil {
		t.Error("the proxy accepted a certificate of another authority")
	}
}

func TestDelayHoldsEachRequest(t *testing.T) {
	b := newBench(t)
	b.proxy.Set(Fault{Mode: Delay, Wait: short})
	start := time.Now()
	b.works(b.client(), "/version")
	if took := time.Since(start); took < short {
		t.Errorf("it took %s", took)
	}
}

func TestBlackholeHoldsOldAndNewConnectionsAndLosesNothing(t *testing.T) {
	b := newBench(t)
	old := b.client()
	b.works(old, "/version")
	watch, err := b.get(old, "/api/v1/pods?watch=true", time.Minute)
	check(t, err)
	b.proxy.Set(Fault{Mode: Blackhole})
	b.hangs(old, "/version")
	b.hangs(b.client(), "/version")
	b.events <- "during"
	line := lines(watch.body)
	select {
	case got := <-line:
		t.Fatalf("a watch delivered %q", got)
	case <-time.After(short):
	}
	b.proxy.Set(Fault{Mode: None})
	if got := <-line; got != "during" {
		t.Errorf("after the fault the watch delivers %q", got)
	}
	b.works(old, "/version")
}

func TestDropNeverAnswersAndDoesNotComeBack(t *testing.T) {
	b := newBench(t)
	client := b.client()
	b.works(client, "/version")
	b.proxy.Set(Fault{Mode: Drop, Percent: 100})
	b.hangs(client, "/version")
	failed := make(chan error, 1)
	go func() {
		_, err := b.get(client, "/version", time.Minute)
		failed <- err
	}()
	b.hangs(client, "/version") // by now the request above has also reached the proxy
	b.proxy.Set(Fault{Mode: None})
	if err := <-failed; err == nil {
		t.Error("a dropped request was answered")
	}
	b.works(client, "/version")
}

func TestResetClosesWithRST(t *testing.T) {
	b := newBench(t)
	conn, err := tls.Dial("tcp", b.proxy.listener.Addr().String(), &tls.Config{RootCAs: b.ca.Pool()})
	check(t, err)
	b.proxy.Set(Fault{Mode: Reset})
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the open connection ended with %v", err)
	}
	if _, err := b.get(b.client(), "/version", 5*time.Second); err == nil {
		t.Error("a new connection got through")
	}
	b.proxy.Set(Fault{Mode: None})
	b.works(b.client(), "/version")
}

func TestResetAtAnIntervalLetsWorkGoOnBetween(t *testing.T) {
	b := newBench(t)
	b.proxy.Set(Fault{Mode: Reset, Wait: short})
	for range 2 {
		conn, err := net.Dial("tcp", b.proxy.listener.Addr().String())
		check(t, err)
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the connection ended with %v", err)
		}
	}
}

func TestResetAtEveryNthRequest(t *testing.T) {
	b := newBench(t)
	b.proxy.Set(Fault{Mode: Reset, Requests: 3})
	client := b.client()
	b.works(client, "/version")
	b.works(client, "/version")
	if _, err := b.get(client, "/version", 5*time.Second); err == nil {
		t.Error("the third request was answered")
	}
	b.works(client, "/version")
}

func TestStatusAnswersLikeAnAPIServer(t *testing.T) {
	b := newBench(t)
	b.proxy.Set(Fault{Mode: Status, Code: 429, Percent: 100, RetryAfter: 5 * time.Second})
	res, err := b.get(b.client(), "/api/v1/pods", 5*time.Second)
	check(t, err)
	var body struct{ Kind, Reason string }
	check(t, json.NewDecoder(res.body).Decode(&body))
	got := fmt.Sprint(res.code, " ", res.header.Get("Retry-After"), " ", body.Kind, " ", body.Reason)
	if want := "429 5 Status TooManyRequests"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStatusOfAShareHitsAboutThatShare(t *testing.T) {
	b := newBench(t)
	b.proxy.Set(Fault{Mode: Status, Code: 503, Percent: 50})
	client, failed := b.client(), 0
	for range 200 {
		res, err := b.get(client, "/version", 5*time.Second)
		check(t, err)
		if res.code == http.StatusServiceUnavailable {
			failed++
		}
	}
	if failed < 60 || failed > 140 {
		t.Errorf("%d of 200 requests failed", failed)
	}
}

func TestHangListLeavesTheRestAlone(t *testing.T) {
	b := newBench(t)
	client := b.client()
	b.proxy.Set(Fault{Mode: HangList, Resource: "pods"})
	b.hangs(client, "/api/v1/namespaces/a/pods")
	b.hangs(client, "/api/v1/pods?watch=true&sendInitialEvents=true")
	for _, path := range []string{"/api/v1/namespaces/a/pods/b", "/api/v1/nodes", "/api/v1", "/apis"} {
		b.works(client, path)
	}
	if res, err := b.get(client, "/api/v1/pods?watch=true", 5*time.Second); err != nil || res.code != 200 {
		t.Errorf("a plain watch: %v, %v", res, err)
	}
}

func TestHangWatchAcceptsAndDeliversLater(t *testing.T) {
	b := newBench(t)
	client := b.client()
	b.proxy.Set(Fault{Mode: HangWatch})
	res, err := b.get(client, "/api/v1/pods?watch=true", time.Minute)
	check(t, err)
	line := lines(res.body)
	b.events <- "held"
	b.works(client, "/api/v1/pods")
	select {
	case got := <-line:
		t.Fatalf("the watch delivered %q", got)
	case <-time.After(short):
	}
	b.proxy.Set(Fault{Mode: None})
	if got := <-line; got != "held" {
		t.Errorf("after the fault it delivers %q", got)
	}
}

func TestHangWatchLetsTheListOfAWatchPass(t *testing.T) {
	b := newBench(t)
	b.proxy.Set(Fault{Mode: HangWatch})
	res, err := b.get(b.client(), "/api/v1/pods?watch=true&sendInitialEvents=true", time.Minute)
	check(t, err)
	line := lines(res.body)
	end := `bookmark "k8s.io/initial-events-end":"true"`
	for _, event := range []string{"first", end, "after"} {
		b.events <- event
	}
	if got := []string{<-line, <-line}; !cmp.Equal(got, []string{"first", end}) {
		t.Errorf("the list was %q", got)
	}
	select {
	case got := <-line:
		t.Errorf("the watch delivered %q", got)
	case <-time.After(short):
	}
}

func TestBinaryEventsAreCutByTheirLength(t *testing.T) {
	w := &watchWriter{binary: true}
	data := []byte("\x00\x00\x00\x02a\n\x00\x00\x00\x01b\x00\x00")
	var events []string
	for {
		event, rest, whole := w.cut(data)
		if !whole {
			break
		}
		events, data = append(events, string(event)), rest
	}
	if diff := cmp.Diff([]string{"\x00\x00\x00\x02a\n", "\x00\x00\x00\x01b"}, events); diff != "" || len(data) != 2 {
		t.Errorf("%s, %d bytes left", diff, len(data))
	}
}

func TestServerThatIsDownLooksLikeOne(t *testing.T) {
	b := newBench(t)
	b.server.Close()
	conn, err := tls.Dial("tcp", b.proxy.listener.Addr().String(), &tls.Config{RootCAs: b.ca.Pool()})
	check(t, err)
	_, err = io.WriteString(conn, "GET /version HTTP/1.1\r\nHost: x\r\n\r\n")
	check(t, err)
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection ended with %v", err)
	}
}

func TestClientThatGivesUpOneRequestKeepsItsConnection(t *testing.T) {
	b := newBench(t)
	client := b.client()
	watch, err := b.get(client, "/api/v1/pods?watch=true", time.Minute)
	check(t, err)
	b.proxy.Set(Fault{Mode: Delay, Wait: 2 * short})
	b.hangs(client, "/version")
	b.proxy.Set(Fault{Mode: None})
	b.works(client, "/version")
	b.events <- "alive"
	if got := <-lines(watch.body); got != "alive" {
		t.Errorf("the watch delivers %q", got)
	}
}

// lines returns the lines of a stream. The channel is closed at the end of the stream.
func lines(stream io.Reader) <-chan string {
	out := make(chan string, 10)
	go func() {
		defer close(out)
		for scanner := bufio.NewScanner(stream); scanner.Scan(); {
			out <- strings.TrimSpace(scanner.Text())
		}
	}()
	return out
}

func load(t *testing.T, cert pki.Cert) tls.Certificate {
	t.Helper()
	loaded, err := cert.TLS()
	check(t, err)
	return loaded
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
