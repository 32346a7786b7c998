package chaos

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/hanse-dev/hanse/test/fleet"
)

// liar is a proxy in front of the fault proxy of a member. While it lies, its answers are damaged, or are no answers of
// an API server. It tells no lie that a member could also mean: an empty list would be such a lie.
type liar struct {
	*httptest.Server
	lie atomic.Value // the name of a lie, or ""
}

func newLiar(c *fleet.Cluster) (*liar, error) {
	ca, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("reading the CA of %s: %w", c.Name, err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	to, err := url.Parse(c.ProxyServer)
	if err != nil {
		return nil, fmt.Errorf("reading the address of %s: %w", c.Name, err)
	}
	l := &liar{}
	l.lie.Store("")
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			if l.lie.Load() != "" {
				r.Out.Header.Del("Accept-Encoding") // so that the answer is a text that can be damaged
			}
		},
		Transport:      &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}},
		FlushInterval:  -1,
		ModifyResponse: l.damage,
		// The hub sees the reset of a connection as a reset.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(io.Discard, "", 0),
	}
	l.Server = httptest.NewUnstartedServer(proxy)
	l.Config.ErrorLog = log.New(io.Discard, "", 0)
	l.EnableHTTP2 = true
	l.StartTLS()
	return l, nil
}

// damage changes an answer to a lie.
func (l *liar) damage(res *http.Response) error {
	lie := l.lie.Load().(string)
	watch := res.Request.URL.Query().Get("watch") != ""
	switch {
	case lie == "":
		return nil
	case lie == "watch" && watch:
		body := res.Body
		res.ContentLength = -1
		res.Header.Del("Content-Length")
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(io.LimitReader(body, 700), strings.NewReader("garbage{{{\n"+`{"type":"ADDED","object":{"kind":"Nothing"}}`+"\n")), body}
		return nil
	case lie == "watch" || watch:
		return nil
	}
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Errorf("reading an answer of the member: %w", err)
	}
	_ = res.Body.Close()
	switch lie {
	case "truncated":
		raw = raw[:len(raw)/2]
	case "html":
		raw = []byte("<html><body>Sign in</body></html>")
		res.StatusCode = http.StatusOK
		res.Header.Set("Content-Type", "text/html")
	case "empty":
		raw = []byte("{}")
		res.Header.Set("Content-Type", "application/json")
	}
	res.Body = io.NopCloser(bytes.NewReader(raw))
	res.ContentLength = int64(len(raw))
	res.Header.Set("Content-Length", strconv.Itoa(len(raw)))
	return nil
}

// kubeconfig changes a kubeconfig so that its requests go through the liar.
func (l *liar) kubeconfig(raw []byte) ([]byte, error) {
	config, err := clientcmd.Load(raw)
	if err != nil {
		return nil, err
	}
	for _, c := range config.Clusters {
		c.Server, c.CertificateAuthorityData = l.URL, certificateOf(l.Server)
	}
	return clientcmd.Write(*config)
}

// certificateOf returns the certificate of a test server, which is its own CA.
func certificateOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}
