package tunnel

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/agent"
	"github.com/hanse-dev/hanse/member/connect"
	"github.com/hanse-dev/hanse/member/handshake"
)

// world is a hub that listens for agents, and the API server of one member.
type world struct {
	*testing.T
	server  *Server
	hubKey  tls.Certificate
	api     *httptest.Server
	arrived atomic.Int32
}

const agentToken = "canary-of-the-agent"

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, hubKey: newKey(t)}
	w.api = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_ = json.NewEncoder(out).Encode(map[string]any{"path": r.URL.Path, "query": r.URL.RawQuery, "headers": r.Header, "body": len(body)})
		if r.URL.Query().Has("watch") {
			_ = http.NewResponseController(out).Flush()
			<-r.Context().Done()
		}
	}))
	t.Cleanup(w.api.Close)
	var err error
	w.server, err = Listen(Options{Address: "127.0.0.1:0", Certificate: w.hubKey, NewLane: connect.NewLane, Logger: logr.Discard()})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.server.Start(ctx); err != nil {
			t.Errorf("the server ended: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return w
}

func newKey(t *testing.T) tls.Certificate {
	t.Helper()
	pem, err := handshake.NewKey()
	must(t, err)
	certificate, err := handshake.Certificate(pem)
	must(t, err)
	return certificate
}

func fingerprint(c tls.Certificate) string { return handshake.Fingerprint(c.Leaf) }

// open lets agents with the keys open the lanes of a member.
func (w *world) open(keys ...tls.Certificate) member.Lanes {
	var prints []string
	for _, k := range keys {
		prints = append(prints, fingerprint(k))
	}
	return w.server.Open("eu", prints, func() { w.arrived.Add(1) })
}

// withToken adds the credentials of an agent, as its kubeconfig does.
type withToken struct{}

func (withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+agentToken)
	return http.DefaultTransport.RoundTrip(r)
}

// runAgent runs an agent until the returned function is called. The log has the lines of the agent.
func (w *world) runAgent(key tls.Certificate, instance string, edits ...func(*agent.Options)) (stop func(), log func() string) {
	w.Helper()
	var mu sync.Mutex
	var lines strings.Builder
	to, err := url.Parse(w.api.URL)
	must(w.T, err)
	options := agent.Options{
		Name: "eu", Hub: w.server.Address(), HubKeys: []string{fingerprint(w.hubKey)}, Certificate: key, Server: to, Transport: withToken{}, Instance: instance,
		Logger: funcr.New(func(_, args string) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintln(&lines, args)
		}, funcr.Options{Verbosity: 9}),
	}
	for _, edit := range edits {
		edit(&options)
	}
	ctx, cancel := context.WithCancel(w.Context())
	var running sync.WaitGroup
	running.Go(func() { agent.New(options).Run(ctx) })
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	w.Cleanup(stop)
	return stop, func() string {
		mu.Lock()
		defer mu.Unlock()
		return lines.String()
	}
}

func (w *world) ask(lanes member.Lanes, lane member.Lane, method, path string, body io.Reader, header ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(w.Context(), method, "http://eu"+path, body)
	must(w.T, err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return lanes.RoundTrip(lane, req)
}

// refuses checks that a request through the lanes fails with this error.
func (w *world) refuses(lanes member.Lanes, want error) {
	w.Helper()
	resp, err := w.ask(lanes, member.LaneReads, http.MethodGet, "/version", nil)
	if err == nil {
		_ = resp.Body.Close()
	}
	if !errors.Is(err, want) {
		w.Errorf("a request gives %v, want %v", err, want)
	}
}

// answers waits until the lanes answer.
func (w *world) answers(lanes member.Lanes) {
	w.Helper()
	for _, lane := range []member.Lane{member.LaneRequests, member.LaneWatches, member.LaneReads} {
		w.eventually(string(lane), func() error {
			resp, err := w.ask(lanes, lane, http.MethodGet, "/version", nil)
			if err != nil {
				return err
			}
			return resp.Body.Close()
		})
	}
}

func (w *world) eventually(what string, f func() error) {
	w.Helper()
	deadline := time.After(40 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			w.Fatalf("%s: %v", what, err)
		case <-tick.C:
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestRequestsReachTheAPIServerWithTheCredentialsOfTheAgent(t *testing.T) {
	w, key := newWorld(t), newKey(t)
	lanes := w.open(key)
	_, log := w.runAgent(key, "one")
	w.answers(lanes)
	if w.arrived.Load() != 3 {
		t.Errorf("%d lanes arrived", w.arrived.Load())
	}
	resp, err := w.ask(lanes, member.LaneRequests, http.MethodPatch, "/api/v1/namespaces/x/configmaps/a?fieldManager=hanse", strings.NewReader("{}"),
		"Content-Type", "application/apply-patch+yaml", "Accept", "application/json", "X-Other", "dropped")
	must(t, err)
	var got struct {
		Path, Query string
		Headers     http.Header
		Body        int
	}
	must(t, json.NewDecoder(resp.Body).Decode(&got))
	must(t, resp.Body.Close())
	if got.Path != "/api/v1/namespaces/x/configmaps/a" || got.Query != "fieldManager=hanse" || got.Body != 2 || got.Headers.Get("Authorization") != "Bearer "+agentToken ||
		got.Headers.Get("Content-Type") != "application/apply-patch+yaml" || got.Headers.Get("Accept") != "application/json" || got.Headers.Get("X-Other") != "" {
		t.Errorf("the API server got %+v", got)
	}
	for _, tc := range [][]string{
		{http.MethodPost, "/api/v1/namespaces/x/pods/p/exec"}, {http.MethodGet, "/api/v1/nodes/n/proxy/metrics"}, {http.MethodGet, "/metrics"},
		{http.MethodGet, "/version", "Impersonate-User", "admin"}, {http.MethodGet, "/version", "Authorization", "Bearer x"},
	} {
		resp, err := w.ask(lanes, member.LaneReads, tc[0], tc[1], nil, tc[2:]...)
		must(t, err)
		if must(t, resp.Body.Close()); resp.StatusCode != http.StatusForbidden {
			t.Errorf("%v is answered with %s", tc, resp.Status)
		}
	}
	resp, err = w.ask(lanes, member.LaneRequests, http.MethodPost, "/api/v1/namespaces/x/configmaps", io.MultiReader(bytes.NewReader(make([]byte, 4<<20))))
	if err == nil {
		_ = resp.Body.Close()
	}
	if err == nil && resp.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a body of 4 MiB is answered with %s", resp.Status)
	}
	for _, secret := range []string{agentToken, "PRIVATE KEY"} {
		if strings.Contains(log(), secret) {
			t.Errorf("the log of the agent has %q", secret)
		}
	}
}

func TestAKeyThatIsRemovedEndsItsLanesAtOnce(t *testing.T) {
	w, key := newWorld(t), newKey(t)
	lanes := w.open(key)
	_, log := w.runAgent(key, "one")
	w.answers(lanes)
	watch, err := w.ask(lanes, member.LaneWatches, http.MethodGet, "/api/v1/pods?watch=1", nil)
	must(t, err)
	begin := time.Now()
	if again := w.open(newKey(t)); again != lanes {
		t.Error("other keys make other lanes")
	}
	if _, err := io.ReadAll(watch.Body); err == nil || time.Since(begin) > time.Second {
		t.Errorf("the watch ended after %s with %v", time.Since(begin), err)
	}
	must(t, watch.Body.Close())
	w.refuses(lanes, member.ErrAgentAway)
	w.eventually("the agent's log", func() error {
		if text := log(); !strings.Contains(text, "KeyUnknown") || !strings.Contains(text, fingerprint(key)) {
			return fmt.Errorf("it has %s", text)
		}
		return nil
	})
	w.open()
	w.refuses(lanes, member.ErrNoKey)
	w.open(key)
	w.answers(lanes)
	w.server.Close("eu")
	w.refuses(lanes, member.ErrNotConnected)
}

func TestASecondAgentWaitsUntilTheFirstOneEnds(t *testing.T) {
	w, key := newWorld(t), newKey(t)
	lanes := w.open(key)
	stop, _ := w.runAgent(key, "one")
	w.answers(lanes)
	_, log := w.runAgent(key, "two")
	w.eventually("the second agent's log", func() error {
		if !strings.Contains(log(), "Standby") {
			return fmt.Errorf("it has %s", log())
		}
		return nil
	})
	if w.arrived.Load() != 3 {
		t.Errorf("%d lanes arrived, although the first agent is connected", w.arrived.Load())
	}
	stop()
	w.answers(lanes)
	w.eventually("all lanes of the second agent", func() error {
		if n := w.arrived.Load(); n != 6 {
			return fmt.Errorf("%d lanes arrived", n)
		}
		return nil
	})
}

func TestStrangersGetOneAnswerAndNoLane(t *testing.T) {
	w, key, stranger := newWorld(t), newKey(t), newKey(t)
	lanes := w.open(key)
	answer := func(c tls.Certificate, name, method, path string) string {
		conn, err := tls.Dial("tcp", w.server.Address(), &tls.Config{InsecureSkipVerify: true, ServerName: name, Certificates: []tls.Certificate{c}})
		must(t, err)
		defer func() { _ = conn.Close() }()
		_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: %s\r\n%s: i\r\n\r\n", method, path, handshake.Protocol, handshake.InstanceHeader)
		must(t, err)
		text, _ := io.ReadAll(io.LimitReader(conn, 1<<10))
		return string(text)
	}
	post, path := http.MethodPost, handshake.LanePath+"requests"
	known, unknown := answer(stranger, "eu"+handshake.ServerSuffix, post, path), answer(stranger, "us"+handshake.ServerSuffix, post, path)
	if !strings.Contains(known, "403") || bodyOf(known) != strings.ReplaceAll(bodyOf(unknown), " us ", " eu ") {
		t.Errorf("a stranger learns which members there are:\n%s\n%s", known, unknown)
	}
	for _, tc := range [][]string{
		{"eu" + handshake.ServerSuffix, http.MethodGet, path}, {"eu" + handshake.ServerSuffix, post, "/v1/lanes/other"}, {"eu" + handshake.ServerSuffix, post, "/metrics"}, {"eu.example.com", post, path},
	} {
		if got := answer(key, tc[0], tc[1], tc[2]); !strings.Contains(got, "404") {
			t.Errorf("%v is answered with %s", tc, got)
		}
	}
	conn, err := tls.Dial("tcp", w.server.Address(), &tls.Config{InsecureSkipVerify: true, ServerName: "eu" + handshake.ServerSuffix})
	if err == nil { // in TLS 1.3, the client sees the refusal at its first read
		_, err = conn.Read(make([]byte, 1))
		_ = conn.Close()
	}
	if err == nil || errors.Is(err, io.EOF) {
		t.Errorf("a client without a key gets %v", err)
	}
	w.refuses(lanes, member.ErrAgentAway)
}

// bodyOf returns the body of an answer.
func bodyOf(answer string) string {
	_, body, _ := strings.Cut(answer, "\r\n\r\n")
	return body
}

func TestSlowStrangersTakeNoMoreThanTheirConnections(t *testing.T) {
	w, key := newWorld(t), newKey(t)
	lanes := w.open(key)
	var idle []net.Conn
	for range perAddress {
		conn, err := net.Dial("tcp", w.server.Address())
		must(t, err)
		idle = append(idle, conn)
	}
	t.Cleanup(func() {
		for _, conn := range idle {
			_ = conn.Close()
		}
	})
	one, err := net.Dial("tcp", w.server.Address())
	must(t, err)
	must(t, one.SetReadDeadline(time.Now().Add(4*time.Second)))
	if _, err := one.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !strings.Contains(fmt.Sprint(err), "reset") {
		t.Errorf("one connection more gives %v", err)
	}
	_ = one.Close()
	w.runAgent(key, "one") // it gets through as soon as the idle connections time out
	w.answers(lanes)
}

func TestAnAgentTalksToNoOtherHub(t *testing.T) {
	w, key := newWorld(t), newKey(t)
	lanes := w.open(key)
	other := newKey(t)
	_, log := w.runAgent(key, "one", func(o *agent.Options) { o.HubKeys = []string{fingerprint(other)} })
	w.eventually("the agent's log", func() error {
		if text := log(); !strings.Contains(text, fingerprint(w.hubKey)) || !strings.Contains(text, fingerprint(other)) {
			return fmt.Errorf("it has %s", text)
		}
		return nil
	})
	w.refuses(lanes, member.ErrAgentAway)
}
