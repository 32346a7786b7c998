// Package tracing makes OpenTelemetry spans of changes. One trace follows a change of a hub object from the user's
// write to the members and back. The spans are sent to an OTLP endpoint.
//
// Queues contain only keys, and several replicas work on one change. The hub therefore cannot pass a trace context from
// part to part. Instead, each part computes the trace ID from the UID and the generation of the hub object (change.go).
// The ID alone decides whether a trace is sampled. A span is made when its step has ended, and only if the step has
// changed something.
//
// A nil Tracer makes no spans, and allocates no memory.
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
	// requestWithin is the timeout of one request. batchWithin is the timeout of all attempts to send one batch.
	requestWithin, batchWithin = 5 * time.Second, 10 * time.Second
	// closeWithin is how long the process waits at its end until the last spans are sent.
	closeWithin = 2 * time.Second
	// queued is the maximum number of spans that wait to be sent. Further spans are dropped.
	queued = 8192
	// batched is the maximum number of spans in one request.
	batched = 512
)

// Options configure the spans of this process.
type Options struct {
	// Endpoint is the URL of an OTLP receiver over HTTP, such as https://collector.example.com:4318. If it is empty,
	// tracing is off.
	Endpoint string
	// CAFile has the PEM certificates of the endpoint's CAs. If it is empty, the CAs of the system are used.
	CAFile string
	// Sampling is the share of changes that are traced, from 0 to 1.
	Sampling float64
}

// Process describes the process that makes the spans.
type Process struct {
	// HubID is the UID of the hub's namespace kube-system. It is the same in all replicas.
	HubID string
	// Version and Instance describe this replica.
	Version, Instance string
	// Proxy returns the proxy for connections to the endpoint. If the field is nil, no proxy is used.
	Proxy  func(*http.Request) (*url.URL, error)
	Logger logr.Logger
}

// Tracer makes the spans of changes. A nil Tracer makes no spans.
type Tracer struct {
	tracer   trace.Tracer
	provider *sdktrace.TracerProvider
	hub      string
	sampler  sdktrace.Sampler
}

// Validate returns an error that names the flag with an invalid value.
func (o Options) Validate() error {
	if !(o.Sampling >= 0 && o.Sampling <= 1) {
		return fmt.Errorf("--otlp-sampling must be a ratio from 0 to 1: have %v", o.Sampling)
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

// url returns the URL to which spans are posted.
func (o Options) url() (*url.URL, error) {
	u, err := url.Parse(o.Endpoint)
	switch {
	case err != nil:
		return nil, fmt.Errorf("--otlp-endpoint is not a URL, such as https://collector.example.com:4318: have %q", o.Endpoint)
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.User != nil, u.RawQuery != "", u.Fragment != "":
		return nil, errors.New("--otlp-endpoint must be an http or https URL with a host and a path only, such as https://collector.example.com:4318")
	case u.Scheme == "http" && o.CAFile != "":
		return nil, errors.New("--otlp-ca-file needs an --otlp-endpoint with https")
	}
	u.Path = strings.TrimRight(u.Path, "/") + "/v1/traces"
	return u, nil
}

// New returns a Tracer that sends spans to the endpoint. It returns nil if no endpoint is configured. New does not
// connect. If the endpoint does not answer later, spans are lost, and the hub works as usual.
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
		sdktrace.WithSampler(sdktrace.AlwaysSample()), // sample all spans: Change decides what is traced
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
	_ = t.provider.Shutdown(ctx) // remaining spans are lost, as during an outage of the endpoint
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

// noRedirect refuses redirects, so that spans are sent only to the configured host.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// maxReason is the maximum length of an error of the endpoint in the log, in characters.
const maxReason = 256

// sender sends spans. It logs the begin and the end of an outage of the endpoint, but not each lost batch.
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
		s.log.Info("Losing spans, because the OTLP endpoint does not accept them; dispatch is not affected", "reason", plain(err.Error()))
	} else {
		s.log.Info("The OTLP endpoint accepts spans again")
	}
	return nil
}

// plain returns a text of the endpoint for the log, cut and on one line.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, hubv1.CutMessage(text, maxReason))
}
