// Package faultproxy is a proxy in front of an API server. On request, the proxy misbehaves: for example, it delays,
// drops or resets requests.
//
// The proxy verifies clients as the API server does, and passes their identity on. It passes a bearer token through. It
// passes a verified client certificate on as X-Remote-User and X-Remote-Group, over a connection with the front-proxy
// certificate. Therefore the same RBAC and the same audit log apply, and a client verifies certificates as usual.
//
// If the API server is down, the proxy resets the client's connection, because a client without a proxy would also see
// a reset. An error response of the proxy would look like one of the API server.
package faultproxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Config has the settings of a proxy.
type Config struct {
	Address    string // host:port to listen on
	Upstream   string // the API server, https://host:port
	CA         *x509.CertPool
	Server     tls.Certificate // the certificate for clients
	FrontProxy tls.Certificate // the client certificate for the API server when the proxy passes an identity on
	Log        io.Writer
}

// Proxy is a running fault proxy.
type Proxy struct {
	listener *listener
	server   *http.Server
	forward  map[bool]*httputil.ReverseProxy // by whether the client has a verified certificate
	active   atomic.Pointer[active]
}

// active is the present fault and a channel that is closed when the fault ends.
type active struct {
	Fault
	over     chan struct{}
	requests atomic.Int64
}

type connKey struct{}

// Start starts a proxy, which serves until Close.
func Start(cfg Config) (*Proxy, error) {
	upstream, err := url.Parse(cfg.Upstream)
	if err != nil {
		return nil, fmt.Errorf("starting fault proxy for %s: %w", cfg.Upstream, err)
	}
	tcp, err := net.Listen("tcp", cfg.Address)
	if err != nil {
		return nil, fmt.Errorf("starting fault proxy for %s: %w", cfg.Upstream, err)
	}
	p := &Proxy{}
	p.active.Store(&active{Fault: Fault{Mode: None}, over: make(chan struct{})})
	p.listener = &listener{TCPListener: tcp.(*net.TCPListener), proxy: p, conns: map[*conn]struct{}{}}
	logger := log.New(cfg.Log, "", log.LstdFlags)
	p.forward = map[bool]*httputil.ReverseProxy{
		false: newForward(upstream, &tls.Config{RootCAs: cfg.CA}, logger),
		true:  newForward(upstream, &tls.Config{RootCAs: cfg.CA, Certificates: []tls.Certificate{cfg.FrontProxy}}, logger),
	}
	p.server = &http.Server{ // no timeouts: a client must be able to hang in a fault for ever
		Handler:  p,
		ErrorLog: logger,
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{cfg.Server},
			ClientAuth:   tls.VerifyClientCertIfGiven,
			ClientCAs:    cfg.CA,
			MinVersion:   tls.VersionTLS12,
		},
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c.(*tls.Conn).NetConn())
		},
	}
	go func() { _ = p.server.ServeTLS(p.listener, "", "") }() // returns when the proxy is closed
	return p, nil
}

func newForward(upstream *url.URL, config *tls.Config, logger *log.Logger) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Transport:     &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DisableCompression: true},
		FlushInterval: -1, // flush at once, because watches need it
		ErrorLog:      logger,
		Rewrite:       func(r *httputil.ProxyRequest) { rewrite(r, upstream) },
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, _ error) {
			if r.Context().Err() == nil { // false if the client has cancelled the request
				r.Context().Value(connKey{}).(*conn).reset()
			}
			panic(http.ErrAbortHandler)
		},
	}
}

// rewrite sets the address of the API server, and replaces a client's identity headers with the verified identity.
func rewrite(r *httputil.ProxyRequest, upstream *url.URL) {
	r.SetURL(upstream)
	for header := range r.Out.Header {
		if strings.HasPrefix(strings.ToLower(header), "x-remote-") {
			r.Out.Header.Del(header)
		}
	}
	if cert := proven(r.In); cert != nil {
		r.Out.Header.Set("X-Remote-User", cert.Subject.CommonName)
		r.Out.Header["X-Remote-Group"] = cert.Subject.Organization
	}
}

// proven returns the client's verified certificate, or nil if the client has none.
func proven(r *http.Request) *x509.Certificate {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return nil
	}
	return r.TLS.VerifiedChains[0][0]
}

// ServeHTTP forwards a request, or applies the present fault to it.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req, fault := classify(r), p.active.Load()
	switch {
	case fault.Mode == Delay:
		wait(r.Context(), fault.over, fault.Wait)
	case fault.Mode == Drop && rand.IntN(100) < fault.Percent:
		wait(r.Context(), fault.over, forever)
		panic(http.ErrAbortHandler)
	case fault.Mode == Status && rand.IntN(100) < fault.Percent:
		answer(w, fault.Fault)
		return
	case fault.Requests > 0 && fault.requests.Add(1)%int64(fault.Requests) == 0:
		p.listener.resetAll()
		panic(http.ErrAbortHandler)
	case fault.hangs(req):
		wait(r.Context(), fault.over, forever)
	}
	if req.watch {
		w = &watchWriter{ResponseWriter: w, ctx: r.Context(), proxy: p, listing: req.initialEvents}
	}
	p.forward[proven(r) != nil].ServeHTTP(w, r)
}

const forever = 365 * 24 * time.Hour

// wait returns after d. It returns earlier if the client closes the connection or the fault ends.
func wait(ctx context.Context, over <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-over:
	case <-timer.C:
	}
}

// answer sends the fault's response, such as that of an overloaded API server.
func answer(w http.ResponseWriter, f Fault) {
	reasons := map[int]string{429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}
	w.Header().Set("Content-Type", "application/json")
	details := ""
	if seconds := int(f.RetryAfter.Seconds()); seconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(seconds))
		details = fmt.Sprintf(`"details":{"retryAfterSeconds":%d},`, seconds)
	}
	w.WriteHeader(f.Code)
	_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"fault injected by the lab",%s"reason":%q,"code":%d}`,
		details, reasons[f.Code], f.Code) // an error means that the client is gone
}

// Set replaces the present fault. Requests that waited for the end of the old fault continue. If the mode of the old
// fault was drop, the proxy aborts these requests instead.
func (p *Proxy) Set(f Fault) {
	next := &active{Fault: f, over: make(chan struct{})}
	close(p.active.Swap(next).over)
	if f.Mode != Reset || f.Requests > 0 {
		return
	}
	p.listener.resetAll()
	if f.Wait > 0 {
		go p.resetEvery(next)
	}
}

func (p *Proxy) resetEvery(fault *active) {
	tick := time.NewTicker(fault.Wait)
	defer tick.Stop()
	for {
		select {
		case <-fault.over:
			return
		case <-tick.C:
			p.listener.resetAll()
		}
	}
}

// Fault returns the present fault.
func (p *Proxy) Fault() Fault { return p.active.Load().Fault }

// awaitEnd waits while the present fault has this mode. It returns at once if the fault has another mode. An error
// means that ctx ended first.
func (p *Proxy) awaitEnd(ctx context.Context, mode Mode) error {
	for {
		fault := p.active.Load()
		if fault.Mode != mode {
			return nil
		}
		select {
		case <-fault.over:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Close ends the fault and closes all connections and the listener.
func (p *Proxy) Close() error {
	p.Set(Fault{Mode: None})
	return p.server.Close()
}
