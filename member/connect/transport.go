package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/credential"
)

const (
	requestTimeout = answer.Timeout    // timeout of a get or a write
	peerTimeout    = 5 * time.Second   // timeout of a new connection, or of a ping
	idleTimeout    = 3 * probeInterval // an unused connection is closed after this time
	drainTime      = requestTimeout + peerTimeout
	// streamWindow and connectionWindow are how many bytes of an answer, and of all answers on a connection, the hub takes
	// before it reads them. They are in memory and outside of every budget. Go would take 1 GiB on a connection.
	streamWindow     = 512 << 10
	connectionWindow = 3 << 20
	firstWindow      = 1<<16 - 1 // part of connectionWindow that HTTP/2 gives each connection
	maxHeader        = 256 << 10 // bytes of the headers of an answer
	// largeFor is how long the link's state reports that an answer was too large. It equals the pause between two regular
	// reads of discovery. If the answer of discovery is the one that is too large, the report therefore stays.
	largeFor = looksSeldom
)

var (
	errLineClosed = fmt.Errorf("the link was ended: %w", member.ErrNotConnected)
	errRedirect   = errors.New("the server answered with a redirect, which is not followed")
)

// proxyFunc returns the proxy for a request; nil means a direct connection.
type proxyFunc func(*http.Request) (*url.URL, error)

// pool has the network connections to one member with one set of credentials. client-go's cache of transports is not
// used, because it is global: a pool must end, with all its connections, when its link or its credentials end.
type pool struct {
	// Writes, watches and other reads have separate connections. If the hub reads large answers slowly, or a member sends
	// many that never end, they fill the window of the connection, and everything else on it waits.
	requests, watches, reads roundTripper
	dialer                   *net.Dialer
	endLanes                 func() // aborts the requests on lanes; nil without lanes

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
}

// roundTripper is the part of an http.Transport that a pool uses.
type roundTripper interface {
	http.RoundTripper
	CloseIdleConnections()
}

func newPool(to member.Connection, proxy proxyFunc) (*pool, error) {
	if to.Lanes != nil {
		return poolOfLanes(to.Lanes), nil
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(to.CA))
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: to.ServerName}
	if c := to.Credentials; c.Certificate != "" {
		pair, err := tls.X509KeyPair([]byte(c.Certificate), []byte(c.Key))
		if err != nil {
			return nil, errors.New("the client certificate and key do not match")
		}
		config.Certificates = []tls.Certificate{pair}
	}
	p := &pool{conns: map[net.Conn]struct{}{}, dialer: &net.Dialer{
		Timeout:         peerTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: probeInterval, Interval: peerTimeout, Count: 3},
	}}
	p.requests, p.watches, p.reads = p.transport(config.Clone(), proxy), p.transport(config.Clone(), proxy), p.transport(config.Clone(), proxy)
	return p, nil
}

// transport returns a transport that notices a dead connection within 15 s, even if no packet reports its end. It pings
// an idle connection as often as a link is probed. If no answer comes, it closes the connection with all its streams.
func (p *pool) transport(config *tls.Config, proxy proxyFunc) *http.Transport {
	return &http.Transport{
		Proxy:                  proxy,
		DialContext:            p.dial,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    peerTimeout,
		ForceAttemptHTTP2:      true,
		HTTP2:                  http2(),
		IdleConnTimeout:        idleTimeout,
		MaxIdleConnsPerHost:    8,
		MaxResponseHeaderBytes: maxHeader,
		DisableCompression:     true, // package answer decompresses, and limits the size before and after
	}
}

// http2 returns the limits and pings of a connection to a member.
func http2() *http.HTTP2Config {
	return &http.HTTP2Config{
		SendPingTimeout: probeInterval, PingTimeout: peerTimeout,
		MaxReceiveBufferPerStream: streamWindow, MaxReceiveBufferPerConnection: connectionWindow - firstWindow,
	}
}

func (p *pool) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := p.dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	counted := &pooledConn{Conn: conn, pool: p}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = conn.Close()
		return nil, errLineClosed
	}
	p.conns[counted] = struct{}{}
	return counted, nil
}

// close closes every connection, which aborts its requests.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	conns := p.conns
	p.conns = map[net.Conn]struct{}{}
	p.mu.Unlock()
	if p.endLanes != nil {
		p.endLanes()
	}
	for conn := range conns {
		_ = conn.(*pooledConn).Conn.Close()
	}
	p.closeIdle()
}

func (p *pool) closeIdle() {
	for _, t := range []roundTripper{p.requests, p.watches, p.reads} {
		t.CloseIdleConnections()
	}
}

// drain waits for the running requests, and then closes the pool. Watches are aborted and start again on another pool.
func (p *pool) drain() {
	p.closeIdle()
	time.AfterFunc(drainTime, p.close)
}

// pooledConn is a connection that removes itself from its pool when it is closed.
type pooledConn struct {
	net.Conn
	pool *pool
}

// Close implements net.Conn.
func (c *pooledConn) Close() error {
	c.pool.mu.Lock()
	delete(c.pool.conns, c)
	c.pool.mu.Unlock()
	return c.Conn.Close()
}

// session is one set of credentials with the connections that use them.
type session struct {
	to         member.Connection
	credential credential.Credential
	pool       *pool
}

// openSession returns a session for the connection. If only the token differs from the previous session, both share
// their connections. openSession itself does not connect.
func openSession(to member.Connection, before *session, proxy proxyFunc) (*session, error) {
	known := credential.Of(to.Credentials.Token, to.Credentials.Certificate)
	if before != nil {
		same := to
		same.Credentials.Token = before.to.Credentials.Token
		if same == before.to {
			return &session{to: to, credential: known, pool: before.pool}, nil
		}
	}
	p, err := newPool(to, proxy)
	if err != nil {
		return nil, err
	}
	return &session{to: to, credential: known, pool: p}, nil
}

// line is the HTTP transport of a cluster's clients. It sends requests with the credentials and connections of its
// session. When the credentials change, the line gets another session, and the clients stay valid.
type line struct {
	session atomic.Pointer[session]
	share   *answer.Budget // memory limit for the answers of the cluster
	// retained is the memory limit for the data that is kept of the cluster.
	retained *answer.Retained
	// delivered is the time of the last watch event, in nanoseconds since 1970. It is zero if no event has arrived.
	delivered atomic.Int64

	mu       sync.Mutex
	large    string    // names the answer that exceeded a limit; empty if none did
	largeAt  time.Time // when an answer last exceeded a limit
	onLarger func()    // called for the first answer that is too large; may be nil
}

func newLine(s *session) *line {
	l := &line{share: answer.NewShare()}
	l.retained = answer.NewRetained(l.tooLarge)
	l.session.Store(s)
	return l
}

// tooLarge records a response that exceeded a limit. While more such responses come, the first one stays recorded, so
// that the message does not change. The record is dropped if no such response comes for the time largeFor.
func (l *line) tooLarge(what string, err error) {
	l.mu.Lock()
	first := l.large == ""
	if first {
		l.large = printable(what) + ": " + printable(err.Error())
	}
	l.largeAt = time.Now()
	tell := l.onLarger
	l.mu.Unlock()
	if first && tell != nil {
		tell()
	}
}

// lastTooLarge returns a text about a response that exceeded a limit within the last ten minutes (largeFor). The result
// is empty if there was none.
func (l *line) lastTooLarge() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.largeAt) > largeFor {
		l.large = ""
	}
	return l.large
}

func (l *line) tellOfLarge(tell func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.onLarger = tell
}

// lastDelivered returns the time of the last watch event. The result is zero if no event has arrived.
func (l *line) lastDelivered() time.Time {
	if at := l.delivered.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// close makes every later request of the clients of this line fail. A line is the HTTP transport of a cluster's
// clients.
func (l *line) close() { l.session.Store(nil) }

func (l *line) requestTransport() http.RoundTripper { return &lineTransport{line: l} }
func (l *line) readTransport() http.RoundTripper    { return &lineTransport{line: l, use: reading} }
func (l *line) watchTransport() http.RoundTripper {
	return &lineTransport{line: l, use: watching, counts: true}
}
func (l *line) probeTransport() http.RoundTripper { return &lineTransport{line: l, use: watching} }

// use says what the requests of a client are for.
type use int

const (
	writing  use = iota // single reads and writes
	reading             // lists, facts, views and logs
	watching            // watches, and the lists before them
)

// transportFor returns the connections for a request, and whether the request is a watch.
func (p *pool) transportFor(u use, req *http.Request) (t http.RoundTripper, watch bool) {
	switch {
	case u == writing:
		return p.requests, false
	case u == watching && req.URL.Query().Has("watch"):
		return p.watches, true
	}
	return p.reads, false
}

type lineTransport struct {
	line *line
	use  use
	// counts is true if an event of this watch sets line.delivered, which is the time of the cluster's last watch event.
	// It is false for the watch of a probe: its event may come from another cluster at the same address, and the probe
	// must first compare the cluster's ID.
	counts bool
}

// RoundTrip adds the current token, follows no redirect, and limits the size of the response.
func (t *lineTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	s := t.line.session.Load()
	if s == nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, errLineClosed
	}
	req = req.Clone(req.Context())
	req.Header.Set("Accept-Encoding", "gzip")
	if s.to.Credentials.Token != "" {
		req.Header.Set("Authorization", "Bearer "+s.to.Credentials.Token)
	}
	transport, watch := s.pool.transportFor(t.use, req)
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		_ = resp.Body.Close()
		return nil, errRedirect
	}
	if err := answer.Bound(resp, t.line.share, watch); err != nil {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%w: %w", errStrange, err)
	}
	resp.Body = &observedBody{ReadCloser: resp.Body, line: t.line, what: req.Method + " " + req.URL.Path, delivers: watch && t.counts && resp.StatusCode == http.StatusOK}
	return resp, nil
}

// observedBody is the body of a response. It records in the line, which is the HTTP transport of the cluster's clients,
// when an event of a watch arrives, and when the response exceeds a limit.
type observedBody struct {
	io.ReadCloser
	line     *line
	what     string
	delivers bool
}

// Read implements io.Reader.
func (b *observedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 && b.delivers {
		b.line.delivered.Store(time.Now().UnixNano())
	}
	if answer.IsTooLarge(err) {
		b.line.tooLarge(b.what, err)
	}
	return n, err
}
