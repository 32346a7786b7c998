package agent

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/hanse-dev/hanse/member"
)

// maxProxyAnswer limits the answer of a proxy to CONNECT, in bytes.
const maxProxyAnswer = 8 << 10

var errProxy = errors.New("not possible")

// reach opens a TCP connection to the hub, through the proxy if there is one.
func (a *Agent) reach(ctx context.Context) (net.Conn, error) {
	dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: pingAfter, Interval: pingTimeout, Count: 3}}
	if a.options.Proxy == nil {
		return dialer.DialContext(ctx, "tcp", a.options.Hub)
	}
	proxy := a.options.Proxy
	conn, err := dialer.DialContext(ctx, "tcp", proxyAddress(proxy))
	if err != nil {
		return nil, fmt.Errorf("connecting to the proxy: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	through, err := a.throughProxy(ctx, conn, proxy)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return through, nil
}

// proxyAddress returns host:port of a proxy.
func proxyAddress(proxy *url.URL) string {
	if proxy.Port() != "" {
		return proxy.Host
	}
	return net.JoinHostPort(proxy.Hostname(), map[string]string{"http": "80", "https": "443"}[proxy.Scheme])
}

// throughProxy asks the proxy to connect to the hub. The error has no credentials of the proxy.
func (a *Agent) throughProxy(ctx context.Context, conn net.Conn, proxy *url.URL) (net.Conn, error) {
	switch proxy.Scheme {
	case "http":
	case "https":
		secured := tls.Client(conn, &tls.Config{MinVersion: tls.VersionTLS12, ServerName: proxy.Hostname()})
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, fmt.Errorf("connecting to the proxy %s: %w", proxy.Host, err)
		}
		conn = secured
	default:
		return nil, fmt.Errorf("the proxy %s has the scheme %q, which is %w: want http or https", proxy.Host, proxy.Scheme, errProxy)
	}
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: a.options.Hub}, Host: a.options.Hub, Header: http.Header{}}
	if user := proxy.User; user != nil {
		password, _ := user.Password()
		req.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
	}
	if err := req.Write(conn); err != nil {
		return nil, fmt.Errorf("asking the proxy %s: %w", proxy.Host, err)
	}
	reader := bufio.NewReader(io.LimitReader(conn, maxProxyAnswer))
	resp, err := http.ReadResponse(reader, req)
	if err != nil {
		return nil, fmt.Errorf("reading the answer of the proxy %s: %w", proxy.Host, err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the proxy %s answers %s to a connection to %s, which is %w: it must allow CONNECT to this host and port",
			proxy.Host, member.Line(resp.Status, 64), a.options.Hub, errProxy)
	}
	if reader.Buffered() > 0 { // the hub sends nothing before the handshake
		return nil, fmt.Errorf("the proxy %s sends data of its own, which is %w", proxy.Host, errProxy)
	}
	return conn, nil
}
