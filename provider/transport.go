package provider

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	dialTimeout    = 5 * time.Second
	headersTimeout = 10 * time.Second // until an answer begins, that of a watch too
	bodyTimeout    = time.Minute      // until an answer ends, but for watches
	pingInterval   = 10 * time.Second // of HTTP/2, on an idle connection
	idleTimeout    = 30 * time.Second
	maxNamed       = 5 // resources that a message names
	// host is the host of all requests of a cluster's clients. The transport replaces it, so that clients stay valid when
	// the address of the member changes. No name ends in .invalid.
	host = "member.hanse.invalid"
)

var (
	errLeft     = errors.New("the cluster left the fleet, or is no longer served")
	errRedirect = errors.New("the server answered with a redirect, which is not followed")
	errForeign  = errors.New("a client of a cluster sends requests to this cluster only")
)

// session is one connection with the network connections that use it. Sessions that differ in the token share them.
type session struct {
	to   connection
	base *url.URL
	pool *pool
}

type pool struct {
	http *http.Transport
	ctx  context.Context // ends with the pool, and with it all requests and connections
	end  context.CancelFunc
}

// newSession returns a session. If only the token differs from the session before, both share their connections.
// newSession itself does not connect.
func newSession(to connection, before *session) (*session, error) {
	base, err := url.Parse(to.server)
	if err != nil {
		return nil, fmt.Errorf("parsing the address: %w", err)
	}
	if before != nil && before.to.server == to.server && before.to.ca == to.ca {
		return &session{to: to, base: base, pool: before.pool}, nil
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(to.ca))
	p := &pool{}
	p.ctx, p.end = context.WithCancel(context.Background())
	p.http = &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         p.dial,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		TLSHandshakeTimeout: dialTimeout, IdleConnTimeout: idleTimeout, ForceAttemptHTTP2: true,
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingInterval, PingTimeout: dialTimeout},
	}
	return &session{to: to, base: base, pool: p}, nil
}

// dial opens a connection that is closed with the pool.
func (p *pool) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &pooledConn{Conn: conn, stop: context.AfterFunc(p.ctx, func() { _ = conn.Close() })}, nil
}

type pooledConn struct {
	net.Conn
	stop func() bool
}

// Close implements net.Conn.
func (c *pooledConn) Close() error {
	c.stop()
	return c.Conn.Close()
}

func (s *session) close() {
	s.pool.end()
	s.pool.http.CloseIdleConnections()
}

// send sends a request for path and query of req to the member. It bounds how long the answer takes.
func (s *session) send(req *http.Request) (*http.Response, error) {
	watch := req.URL.Query().Get("watch") != "" || strings.Contains(req.URL.Path, "/watch/")
	ctx, cancel := context.WithCancelCause(req.Context())
	stop := context.AfterFunc(s.pool.ctx, func() { cancel(errLeft) })
	timer := time.AfterFunc(headersTimeout, func() { cancel(fmt.Errorf("no answer within %s", headersTimeout)) })
	end := func() { stop(); timer.Stop(); cancel(nil) }

	out := req.Clone(ctx)
	out.URL.Scheme, out.URL.Host, out.Host = s.base.Scheme, s.base.Host, ""
	out.URL.Path, out.URL.RawPath = strings.TrimRight(s.base.Path, "/")+req.URL.Path, ""
	out.Header.Set("Authorization", "Bearer "+s.to.token)
	resp, err := s.pool.http.RoundTrip(out)
	if err != nil {
		defer end()
		if cause := context.Cause(ctx); cause != nil && req.Context().Err() == nil {
			return nil, cause
		}
		return nil, err
	}
	if resp.StatusCode >= 300 && resp.StatusCode < 400 && resp.StatusCode != http.StatusNotModified {
		_ = resp.Body.Close()
		end()
		return nil, errRedirect
	}
	if watch {
		timer.Stop()
	} else {
		timer.Reset(bodyTimeout)
	}
	resp.Body = &body{ReadCloser: resp.Body, end: end}
	return resp, nil
}

// body ends the bounds of a request with its answer.
type body struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}

// transport is the HTTP transport of all clients of a cluster. It stays when the credentials change.
type transport struct {
	cluster string
	session atomic.Pointer[session]
	// broken is why requests are refused at once: the last probe of the member failed. nil: it succeeded.
	broken atomic.Pointer[faultError]

	mu      sync.Mutex
	lacking map[string]struct{} // resources that the consumer may not list or watch
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	s, broken := t.session.Load(), t.broken.Load()
	var refused error
	switch {
	case s == nil:
		refused = errLeft
	case req.URL.Host != host:
		refused = errForeign
	case broken != nil:
		refused = broken
	}
	if refused != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, fmt.Errorf("cluster %s: %w", t.cluster, refused)
	}
	resp, err := s.send(req)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", t.cluster, err)
	}
	t.learn(req, resp.StatusCode)
	return resp, nil
}

// learn remembers which resources the consumer may not list or watch.
func (t *transport) learn(req *http.Request, status int) {
	resource := listed(req.URL.Path)
	if req.Method != http.MethodGet || resource == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case status == http.StatusForbidden:
		if t.lacking == nil {
			t.lacking = map[string]struct{}{}
		}
		t.lacking[resource] = struct{}{}
	case status == http.StatusOK:
		delete(t.lacking, resource)
	}
}

func (t *transport) lacks(resource string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.lacking[resource]
	return ok
}

// listed returns the resource that a path lists or watches, like deployments.apps, or "".
func listed(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	group := ""
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		group, parts = "."+parts[1], parts[3:]
	default:
		return ""
	}
	if len(parts) == 3 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	if len(parts) != 1 {
		return ""
	}
	return parts[0] + group
}

// fault returns what the consumer lacks rights for, or nil.
func (t *transport) fault() *faultError {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.lacking) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(t.lacking))
	if len(names) > maxNamed {
		names = append(names[:maxNamed], fmt.Sprintf("and %d more", len(t.lacking)-maxNamed))
	}
	return faultf(ReasonLacksRights, "the cluster grants no list and watch of %s: add a rule to consumers of the chart hanse-member, or watch less",
		strings.Join(names, ", "))
}
