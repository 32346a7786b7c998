package tunnel

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hanse-dev/hanse/member/agent"
)

// TestAnAgentConnectsThroughAProxy runs an agent behind an HTTP proxy with a password.
func TestAnAgentConnectsThroughAProxy(t *testing.T) {
	w, key := newWorld(t), newKey(t)
	const password = "canary-of-the-proxy"
	var connected atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte("me:"+password)) {
			http.Error(out, "who are you?", http.StatusProxyAuthRequired)
			return
		}
		if r.Method != http.MethodConnect || r.Host != w.server.Address() {
			http.Error(out, "no", http.StatusForbidden)
			return
		}
		onward, err := net.Dial("tcp", r.Host)
		must(t, err)
		conn, _, err := http.NewResponseController(out).Hijack()
		must(t, err)
		connected.Add(1)
		_, _ = fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(onward, conn); _ = onward.Close() }()
		go func() { _, _ = io.Copy(conn, onward); _ = conn.Close() }()
	}))
	t.Cleanup(proxy.Close)
	through := func(user *url.Userinfo) func(*agent.Options) {
		return func(o *agent.Options) {
			o.Proxy = &url.URL{Scheme: "http", Host: proxy.Listener.Addr().String(), User: user}
		}
	}
	lanes := w.open(key)
	stop, log := w.runAgent(key, "one", through(url.UserPassword("me", "guess")))
	w.eventually("the log of an agent without the password", func() error {
		if !strings.Contains(log(), "407") || !strings.Contains(log(), "must allow CONNECT") {
			return fmt.Errorf("it has %s", log())
		}
		return nil
	})
	stop()
	_, log = w.runAgent(key, "two", through(url.UserPassword("me", password)))
	w.answers(lanes)
	if connected.Load() != 3 {
		t.Errorf("%d lanes go through the proxy", connected.Load())
	}
	if strings.Contains(log(), password) {
		t.Error("the log has the password of the proxy")
	}
}
