package command

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// consoleName is the DNS name in the certificate of the console.
const consoleName = "hanse-hub-console." + hubv1.SystemNamespace + ".svc"

// hostPrefix is a prefix of cookie names. Browsers accept a cookie with this prefix only over TLS. Some browsers also
// accept it without TLS from a server on this machine.
const hostPrefix = "__Host-"

// consoleProxy serves the console to browsers of this machine, at a port of this machine.
func consoleProxy(port int, transport http.RoundTripper) http.Handler {
	hub := &url.URL{Scheme: "https", Host: consoleName}
	// Browsers share cookies between all ports of a machine. The proxy therefore adds the port to the names of the
	// console's cookies.
	prefix := fmt.Sprintf("port-%d-", port)
	proxy := &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // flush at once, because an open page gets its changes as a stream
		ErrorLog:      log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(hub)
			r.Out.Host = r.In.Host // the console compares the host with the Origin header
			r.Out.Header.Del("Cookie")
			for _, cookie := range r.In.Cookies() {
				if name, ok := strings.CutPrefix(cookie.Name, prefix); ok {
					r.Out.AddCookie(&http.Cookie{Name: hostPrefix + name, Value: cookie.Value})
				}
			}
		},
		ModifyResponse: func(r *http.Response) error {
			cookies := r.Cookies()
			r.Header.Del("Set-Cookie")
			for _, cookie := range cookies {
				if name, ok := strings.CutPrefix(cookie.Name, hostPrefix); ok {
					cookie.Name, cookie.Secure = prefix+name, false
					r.Header.Add("Set-Cookie", cookie.String())
				}
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, fmt.Sprintf("hansectl does not reach the console: %v. Reload the page.", err), http.StatusBadGateway)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !loopback(r.Host, port) {
			http.Error(w, fmt.Sprintf("open http://127.0.0.1:%d", port), http.StatusForbidden)
			return
		}
		proxy.ServeHTTP(w, r)
	})
}

// loopback reports whether the host in a request is this machine. This check prevents DNS rebinding: while a page is
// open, its owner points the DNS name of the page to this machine. Without the check, the page could then read the
// console.
func loopback(host string, port int) bool {
	if _, _, err := net.SplitHostPort(host); err != nil {
		host = net.JoinHostPort(host, "80")
	}
	return host == fmt.Sprintf("127.0.0.1:%d", port) || host == fmt.Sprintf("localhost:%d", port)
}
