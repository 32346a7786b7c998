// Package agent connects a member to the hub, so that the hub need not reach the member. It opens three connections
// (lanes) to the hub. On each of them, the hub sends HTTP/2 requests, and the agent passes them on to the API server of
// its cluster, with its own credentials.
//
//   - The hub gets no credentials for the member. All requests have the rights of the agent's account.
//   - A filter refuses requests that the hub does not need, such as exec and impersonation (filter.go).
//   - The agent and the hub know each other by the fingerprints of their keys (package handshake). Names, dates and
//     authorities of certificates do not count.
//   - The agent stores nothing and knows no kind of Hanse.
package agent

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/handshake"
)

const (
	openTimeout  = 10 * time.Second
	pingAfter    = 10 * time.Second
	pingTimeout  = 5 * time.Second
	maxStreams   = 1000
	firstPause   = 500 * time.Millisecond
	longestPause = 30 * time.Second
	// stable is how long a lane must last before the next failure counts as the first one.
	stable = 30 * time.Second
)

// Options of an Agent.
type Options struct {
	// Name is the name of the MemberCluster.
	Name string
	// Hub is the host:port at which the hub listens for agents. HubKeys are the fingerprints of the hub's key, such as the
	// present and the next one. The agent talks to no server with another key.
	Hub     string
	HubKeys []string
	// Proxy is the HTTP proxy through which the agent connects to the hub, by CONNECT. nil: it connects directly.
	Proxy *url.URL
	// Certificate has the key of the agent.
	Certificate tls.Certificate
	// Server is the URL of the API server. Transport adds the credentials of the agent's account to each request.
	Server    *url.URL
	Transport http.RoundTripper
	// Join asks for the approval of a key that the hub does not know. Unset: the agent only waits for it.
	Join *Join
	// Instance distinguishes this process from other agents with the same key.
	Instance string
	Logger   logr.Logger
}

// Agent is the connection of one member to the hub.
type Agent struct {
	options Options
	proxy   http.Handler
	opened  signal
	open    atomic.Int32 // lanes that are open now
}

// Ready reports whether all lanes are open.
func (a *Agent) Ready() bool { return a.open.Load() == int32(len(allLanes)) }

var allLanes = []member.Lane{member.LaneRequests, member.LaneWatches, member.LaneReads}

// New returns an agent. It connects when Run is called.
func New(o Options) *Agent {
	return &Agent{options: o, proxy: newProxy(o.Server, o.Transport, o.Logger)}
}

// Run keeps the three lanes open until ctx ends.
func (a *Agent) Run(ctx context.Context) {
	var lanes sync.WaitGroup
	for _, lane := range allLanes {
		lanes.Go(func() { a.keep(ctx, lane) })
	}
	lanes.Wait()
}

// keep opens a lane again and again, with growing pauses after failures.
func (a *Agent) keep(ctx context.Context, lane member.Lane) {
	logger := a.options.Logger.WithValues("lane", lane)
	failures, last := 0, ""
	for ctx.Err() == nil {
		begin, opened := time.Now(), a.opened.wait()
		err := a.openLane(ctx, lane)
		if errors.Is(err, errKeyUnknown) && a.options.Join != nil && lane == member.LaneRequests {
			err = a.join(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		if time.Since(begin) > stable {
			failures, last = 0, ""
		}
		if text := err.Error(); text != last { // the same failure is logged once
			logger.Info("The lane to the hub is not open", "hub", a.options.Hub, "reason", text)
			last = text
		}
		failures++
		pause := pauseAfter(failures)
		if errors.Is(err, errPending) {
			pause, failures = pendingPause, 0
		}
		if !errors.Is(err, errKeyUnknown) && !errors.Is(err, errPending) {
			opened = nil // another lane tells nothing about this one
		}
		select {
		case <-ctx.Done():
		case <-opened: // the hub has accepted the key on another lane
		case <-time.After(pause):
		}
	}
}

// pauseAfter returns a random pause, so that the agents of a hub that was away do not all come back at the same time.
func pauseAfter(failures int) time.Duration {
	longest := min(firstPause<<min(failures-1, 10), longestPause)
	return longest/4 + rand.N(longest*3/4)
}

var errEnded = errors.New("the lane ended")

// openLane opens one lane and serves the hub's requests on it. It returns when the lane has ended. The error says why.
func (a *Agent) openLane(ctx context.Context, lane member.Lane) error {
	conn, err := a.connect(ctx, lane)
	if err != nil {
		return err
	}
	a.options.Logger.Info("Opened a lane to the hub", "lane", lane, "hub", a.options.Hub)
	a.open.Add(1)
	defer a.open.Add(-1)
	a.opened.raise()
	a.serve(ctx, conn)
	return errEnded
}

// connect opens the connection of a lane. The hub has then accepted the agent's key.
func (a *Agent) connect(ctx context.Context, lane member.Lane) (net.Conn, error) {
	return a.dial(ctx, func(conn net.Conn) (net.Conn, error) { return a.upgrade(conn, lane) })
}

// dial opens a connection to the hub and uses it, within openTimeout.
func (a *Agent) dial(ctx context.Context, use func(net.Conn) (net.Conn, error)) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	plain, err := a.reach(ctx)
	if err != nil {
		return nil, fmt.Errorf("connecting to the hub: %w", err)
	}
	conn := tls.Client(plain, &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: a.options.Name + handshake.ServerSuffix, Certificates: []tls.Certificate{a.options.Certificate},
		InsecureSkipVerify: true, // VerifyConnection compares the key instead of names, dates and authorities
		VerifyConnection:   a.verifyHub,
	})
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = plain.Close()
		return nil, fmt.Errorf("connecting to the hub: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	used, err := use(conn)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return used, nil
}

// verifyHub checks that the server has a key of the hub. It also runs for a resumed session.
func (a *Agent) verifyHub(state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("the hub shows no key")
	}
	shown := state.PeerCertificates[0]
	if key := handshake.Fingerprint(shown); !slices.Contains(a.options.HubKeys, key) {
		return fmt.Errorf("the server at %s shows the key %s, and --hub-key is %q: either a proxy inspects TLS (its issuer is %.64q), or the key of the hub was replaced",
			a.options.Hub, key, a.options.HubKeys, shown.Issuer.String())
	}
	return nil
}

// maxAnswer limits the headers and the text of the hub's answer to the request for a lane, in bytes.
const maxAnswer = 8 << 10

// upgrade asks the hub to take the connection as a lane. The result is the connection behind the hub's answer.
func (a *Agent) upgrade(conn net.Conn, lane member.Lane) (net.Conn, error) {
	req, err := http.NewRequest(http.MethodPost, "http://"+a.options.Name+handshake.ServerSuffix+handshake.LanePath+string(lane), nil)
	if err != nil {
		return nil, fmt.Errorf("asking the hub for a lane: %w", err)
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", handshake.Protocol)
	req.Header.Set(handshake.InstanceHeader, a.options.Instance)
	if err := req.Write(conn); err != nil {
		return nil, fmt.Errorf("asking the hub for a lane: %w", err)
	}
	reader := bufio.NewReader(io.LimitReader(conn, maxAnswer))
	resp, err := http.ReadResponse(reader, req)
	if err != nil {
		return nil, fmt.Errorf("reading the hub's answer: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusSwitchingProtocols {
		begun, err := reader.Peek(reader.Buffered()) // the hub sends requests right behind its answer
		return &begunConn{Conn: conn, rest: io.MultiReader(bytes.NewReader(begun), conn)}, err
	}
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode == http.StatusForbidden {
		return nil, fmt.Errorf("%w: it answers %s: %s", errKeyUnknown, resp.Status, member.Line(string(text), 512))
	}
	return nil, fmt.Errorf("the hub answers %s: %s", resp.Status, member.Line(string(text), 512))
}

// begunConn is a connection whose first bytes were already read.
type begunConn struct {
	net.Conn
	rest io.Reader
}

// Read implements io.Reader.
func (c *begunConn) Read(p []byte) (int, error) { return c.rest.Read(p) }

// serve answers the hub's requests on a lane until the lane or ctx ends.
func (a *Agent) serve(ctx context.Context, conn net.Conn) {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true) // conn is encrypted already
	server := &http.Server{
		Handler: a.proxy, Protocols: protocols, MaxHeaderBytes: maxHeader, ErrorLog: log.New(discard{}, "", 0),
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams, SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		ReadHeaderTimeout: openTimeout, // until the hub begins to speak HTTP/2
	}
	lane := &laneListener{conn: conn, ended: make(chan struct{})}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	_ = server.Serve(lane)
	_ = server.Close()
	_ = conn.Close()
}

// laneListener is a listener with one connection. Its second Accept returns when this connection is closed.
type laneListener struct {
	conn  net.Conn
	taken bool
	ended chan struct{}
	once  sync.Once
}

// Accept implements net.Listener. Only one goroutine calls it.
func (l *laneListener) Accept() (net.Conn, error) {
	if !l.taken {
		l.taken = true
		return &laneConn{Conn: l.conn, listener: l}, nil
	}
	<-l.ended
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (l *laneListener) Close() error { return nil }

// Addr implements net.Listener.
func (l *laneListener) Addr() net.Addr { return l.conn.LocalAddr() }

// laneConn hides that the connection is one of package tls. Otherwise, net/http would look for HTTP/2 in its handshake.
type laneConn struct {
	net.Conn
	listener *laneListener
}

// Close implements net.Conn.
func (c *laneConn) Close() error {
	c.listener.once.Do(func() { close(c.listener.ended) })
	return c.Conn.Close()
}
