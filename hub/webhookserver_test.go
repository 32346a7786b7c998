package hub

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

func TestAnEndingWebhookSendsItsClientsToAnotherReplica(t *testing.T) {
	certificate := httptest.NewTLSServer(http.NotFoundHandler())
	defer certificate.Close()
	first := startWebhook(t, "first", certificate.TLS.Certificates[0])
	second := startWebhook(t, "second", certificate.TLS.Certificates[0])

	var dials atomic.Int32 // as a Service does: while the first replica is an endpoint, connections go to it
	transport := &http.Transport{
		ForceAttemptHTTP2: true,
		TLSClientConfig:   &tls.Config{RootCAs: certificate.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			address := first.address
			if dials.Add(1) > 1 {
				address = second.address
			}
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		},
	}
	defer transport.CloseIdleConnections()
	ask := func() string {
		t.Helper()
		answer, err := (&http.Client{Transport: transport}).Post("https://hub/validate", "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatalf("a request while a replica ends: %v", err)
		}
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.ProtoMajor != 2 {
			t.Fatalf("reading an answer of HTTP/%d: %v", answer.ProtoMajor, err)
		}
		return string(body)
	}

	for range 2 {
		if by := ask(); by != "first" {
			t.Fatalf("the %s replica answered before the first one ends", by)
		}
	}
	first.end()
	for !first.ending.Load() {
		select {
		case err := <-first.ended:
			t.Fatalf("the replica ended before it said so: %v", err)
		default:
		}
	}
	if by := ask(); by != "first" {
		t.Errorf("the %s replica answered on a connection to the first one, which has not left yet", by)
	}
	for range 100 {
		if by := ask(); by != "second" {
			t.Errorf("the %s replica answered after the first one said that it ends", by)
		}
	}
	if err := <-first.ended; err != nil {
		t.Errorf("the first replica ended with %v", err)
	}
}

type startedWebhook struct {
	*webhookServer
	address string
	end     context.CancelFunc
	ended   <-chan error
}

func startWebhook(t *testing.T, name string, certificate tls.Certificate) startedWebhook {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address, port := l.Addr().String(), l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s := &webhookServer{Server: webhook.NewServer(webhook.Options{Host: "127.0.0.1", Port: port, TLSOpts: []func(*tls.Config){func(c *tls.Config) {
		c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &certificate, nil }
	}}})}
	s.Register("/validate", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) }))
	ctx, end := context.WithCancel(t.Context())
	t.Cleanup(end)
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	for s.StartedChecker()(nil) != nil {
		select {
		case err := <-ended:
			t.Fatalf("the %s replica did not start: %v", name, err)
		default:
		}
	}
	return startedWebhook{webhookServer: s, address: address, end: end, ended: ended}
}
