// Package collector is an OTLP receiver that runs in the process of a test. It stores the spans that it receives over
// HTTP.
package collector

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a received span.
type Span struct {
	Name              string
	Trace, ID, Parent string // in hexadecimal digits; Parent is empty for a root span
	Began, Ended      time.Time
	Failed            bool
	Attributes        map[string]any // attributes of the span and of its process
}

// Collector receives and stores spans.
type Collector struct {
	// URL is the address to which a process exports its spans.
	URL string

	mu    sync.Mutex
	spans []Span
}

// Start starts a Collector that ends with the test.
func Start(tb testing.TB) *Collector {
	tb.Helper()
	c := &Collector{}
	server := httptest.NewServer(http.HandlerFunc(c.serve))
	tb.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// Spans returns the received spans of a trace, sorted by their start. It returns all received spans if trace is empty.
func (c *Collector) Spans(trace string) []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := slices.DeleteFunc(slices.Clone(c.spans), func(s Span) bool { return trace != "" && s.Trace != trace })
	slices.SortStableFunc(out, func(a, b Span) int { return a.Began.Compare(b.Began) })
	return out
}

func (c *Collector) serve(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPost || req.URL.Path != "/v1/traces" {
		http.NotFound(w, req)
		return
	}
	var body io.Reader = req.Body
	if req.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(req.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = unpacked
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var batch collectorv1.ExportTraceServiceRequest
	if err := proto.Unmarshal(raw, &batch); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, process := range batch.GetResourceSpans() {
		for _, scope := range process.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, read(s, process.GetResource().GetAttributes()))
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func read(s *tracev1.Span, process []*commonv1.KeyValue) Span {
	out := Span{
		Name: s.GetName(), Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
		Began: time.Unix(0, int64(s.GetStartTimeUnixNano())), Ended: time.Unix(0, int64(s.GetEndTimeUnixNano())),
		Failed: s.GetStatus().GetCode() == tracev1.Status_STATUS_CODE_ERROR, Attributes: map[string]any{},
	}
	for _, kv := range slices.Concat(process, s.GetAttributes()) {
		switch v := kv.GetValue().GetValue().(type) {
		case *commonv1.AnyValue_StringValue:
			out.Attributes[kv.GetKey()] = v.StringValue
		case *commonv1.AnyValue_IntValue:
			out.Attributes[kv.GetKey()] = v.IntValue
		case *commonv1.AnyValue_BoolValue:
			out.Attributes[kv.GetKey()] = v.BoolValue
		}
	}
	return out
}
