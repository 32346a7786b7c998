// Package tracing makes the spans of changes: one trace follows a change of a hub object from the user's write to the
// members and back, and is sent to an OTLP endpoint.
//
// Queues contain keys only, and several replicas work on one change, so the parts of the hub do not pass on a trace.
// Each part computes the trace id from the UID and the generation of the hub object. So all parts get the same id
// (change.go). The id alone decides whether a trace is sampled. A span is made after its step, and only if the step
// changed something.
//
// A Tracer that is nil makes no spans, and costs no allocation.
package tracing

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
)

const (
	// requestWithin and batchWithin limit one request and all tries to send one batch.
	requestWithin, batchWithin = 5 * time.Second, 10 * time.Second
	// closeWithin limits how long the end of the process waits until the last spans are sent.
	closeWithin = 2 * time.Second
	// queued is the maximum number of spans that wait for the endpoint. More spans are dropped.
	queued = 8192
	// batched is the maximum number of spans in a request.
	batched = 512
)

// Options of the spans of this process.
type Options struct {
	// Endpoint is the URL of an OTLP receiver for HTTP, such as https://collector.example.com:4318; empty turns tracing
	// off.
	Endpoint string
	// CAFile has the PEM certificates of the CAs of the endpoint; empty means those of the system.
	CAFile string
	// Sampling is the share of changes that are traced, 0 to 1.
	Sampling float64
}

// Process describes the process that makes spans.
type Process struct {
	// HubID is the UID of the hub's namespace kube-system. All replicas have the same.
	HubID string
	// Version and Instance are of this replica.
	Version, Instance string
	// Proxy of connections to the endpoint; nil if there is none.
	Proxy  func(*http.Request) (*url.URL, error)
	Logger logr.Logger
}

// Tracer makes the spans of changes. A nil Tracer makes none.
type Tracer struct {
	tracer   trace.Tracer
	provider *sdktrace.TracerProvider
	hub      string
	sampler  sdktrace.Sampler
}

// Validate returns an error that names the wrong flag.
func (o Options) Validate() error {
	if !(o.Sampling >= 0 && o.Sampling <= 1) {
		return fmt.Errorf("--otlp-sampling is a ratio from 0 to 1: have %v", o.Sampling)
	}
	if o.Endpoint == "" {
		if o.CAFile != "" {
			return errors.New("--otlp-ca-file needs --otlp-endpoint")
		}
		return nil
	}
	_, err := o.url()
	return err
}

// url returns the address to which spans are posted.
func (o Options) url() (*url.URL, error) {
	u, err := url.Parse(o.Endpoint)
	switch {
	case err != nil:
		return nil, fmt.Errorf("--otlp-endpoint is not a URL, such as https://collector.example.com:4318: have %q", o.Endpoint)
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, errors.New("--otlp-endpoint is http or https, a host and a path only, such as https://collector.example.com:4318")
	case u.Scheme == "http" && o.CAFile != "":
		return nil, errors.New("--otlp-ca-file needs an --otlp-endpoint with https")
	}
	u.Path = strings.TrimRight(u.Path, "/") + "/v1/traces"
	return u, nil
}

// New returns a Tracer that sends spans to the endpoint; nil if there is no endpoint. It does not connect. If the
// endpoint does not answer, only spans are lost.
func New(o Options, p Process) (*Tracer, error) {
	if err := o.Validate(); err != nil || o.Endpoint == "" {
		return nil, err
	}
	u, err := o.url()
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		Proxy: p.Proxy, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: requestWithin, IdleConnTimeout: time.Minute, MaxConnsPerHost: 2,
	}
	if o.CAFile != "" {
		if transport.TLSClientConfig.RootCAs, err = authorities(o.CAFile); err != nil {
			return nil, fmt.Errorf("reading --otlp-ca-file: %w", err)
		}
	}
	exporter := otlptracehttp.NewUnstarted(
		otlptracehttp.WithEndpointURL(u.String()),
		otlptracehttp.WithHTTPClient(&http.Client{Transport: transport, Timeout: requestWithin, CheckRedirect: noRedirect}),
		otlptracehttp.WithCompression(otlptracehttp.GzipCompression),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
			Enabled: true, InitialInterval: time.Second, MaxInterval: requestWithin, MaxElapsedTime: batchWithin,
		}),
	)
	return NewWith(&sender{SpanExporter: exporter, log: p.Logger.WithValues("endpoint", u.String()), now: time.Now}, o.Sampling, p), nil
}

// NewWith returns a Tracer that passes batches of spans to an exporter.
func NewWith(exporter sdktrace.SpanExporter, sampling float64, p Process) *Tracer {
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter, sdktrace.WithMaxQueueSize(queued), sdktrace.WithMaxExportBatchSize(batched),
			sdktrace.WithBatchTimeout(time.Second), sdktrace.WithExportTimeout(batchWithin)),
		sdktrace.WithSampler(sdktrace.AlwaysSample()), // Change decides
		sdktrace.WithIDGenerator(ids{}),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "hanse-hub"),
			attribute.String("service.version", p.Version),
			attribute.String("service.instance.id", p.Instance),
			attribute.String("k8s.cluster.uid", p.HubID),
		)),
	)
	return &Tracer{
		tracer: provider.Tracer("github.com/hanse-dev/hanse"), provider: provider, hub: p.HubID,
		sampler: sdktrace.TraceIDRatioBased(sampling),
	}
}

// Close sends the last spans, for at most 2 s.
func (t *Tracer) Close(ctx context.Context) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, closeWithin)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // the spans are lost, as during an outage of the endpoint
}

// Enabled reports whether spans are made at all.
func (t *Tracer) Enabled() bool { return t != nil }

func authorities(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no PEM certificate", file)
	}
	return pool, nil
}

// noRedirect keeps spans from other hosts than the configured one.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// mostReason is the maximum length of an error of the endpoint in the log, in characters.
const mostReason = 256

// sender sends spans. It logs the begin and the end of an outage of the endpoint, and not each lost batch.
type sender struct {
	sdktrace.SpanExporter
	log logr.Logger
	now func() time.Time

	mu      sync.Mutex
	failing bool      // the last log line reported an outage
	logged  time.Time // time of the last log line
}

// ExportSpans implements sdktrace.SpanExporter.
func (s *sender) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := s.SpanExporter.ExportSpans(ctx, spans)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if failing := err != nil; failing == s.failing || !s.logged.IsZero() && now.Sub(s.logged) < pace.RepeatAfter {
		return nil
	}
	s.failing, s.logged = err != nil, now
	if err != nil {
		s.log.Info("Losing spans: the OTLP endpoint does not take them; dispatch is not affected", "reason", plain(err.Error()))
	} else {
		s.log.Info("Sending spans again: the OTLP endpoint takes them")
	}
	return nil
}

// plain returns a text of the endpoint for the log: bounded, and on one line.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, hubv1.CutMessage(text, mostReason))
}
