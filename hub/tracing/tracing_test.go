package tracing

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/test/collector"
)

var id = hubv1.ObjectIdentity{Group: "test.hanse.dev", Kind: "Widget", Namespace: "shop", Name: "web"}

// widget returns the hub object at a generation. If parent is not empty, the object has the traceparent annotation.
func widget(generation int64, parent string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetUID("widget")
	u.SetGeneration(generation)
	u.SetResourceVersion("100")
	if parent != "" {
		u.SetAnnotations(map[string]string{hubv1.TraceParentAnnotation: parent})
	}
	return u
}

// replica returns the Tracer of one replica of a hub, and the exporter with its spans.
func replica(t *testing.T, hub string, sampling float64) (*Tracer, *tracetest.InMemoryExporter) {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	tracer := NewWith(spans, sampling, Process{HubID: hub})
	t.Cleanup(func() { tracer.Close(context.WithoutCancel(t.Context())) })
	return tracer, spans
}

// flush waits until all spans are exported.
func flush(t *testing.T, tracer *Tracer) {
	t.Helper()
	if err := tracer.provider.ForceFlush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

const (
	usersTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	usersSpan   = "00f067aa0ba902b7"
	usersParent = "00-" + usersTrace + "-" + usersSpan + "-01"
)

func TestReplicasDeriveTheSameIDs(t *testing.T) {
	leader, _ := replica(t, "hub", 1)
	other, _ := replica(t, "hub", 1)
	anotherHub, _ := replica(t, "hub-2", 1)
	base := leader.Change(id, widget(3, ""))
	if !base.trace.IsValid() || !base.id.IsValid() {
		t.Fatalf("ids %s and %s are invalid", base.trace, base.id)
	}
	annotated, deleted := widget(3, ""), widget(3, "")
	annotated.SetAnnotations(map[string]string{"example.com/note": "new"})
	annotated.SetResourceVersion("200")
	deleted.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	young, later := widget(0, ""), widget(0, "")
	later.SetResourceVersion("200")
	gone := leader.Deletion(id, "widget")
	tests := map[string]struct {
		a, b Change
		same bool
	}{
		"two replicas agree on a generation":                       {base, other.Change(id, widget(3, "")), true},
		"an annotation is no new change of a kind with generation": {base, other.Change(id, annotated), true},
		"the next generation is another change":                    {base, other.Change(id, widget(4, "")), false},
		"an object of the same name with another UID is another":   {base, other.Deletion(id, "other"), false},
		"another hub has other traces":                             {base, anotherHub.Change(id, widget(3, "")), false},
		"the deletion is another change":                           {base, gone, false},
		"an object that is being deleted is in the deletion":       {gone, other.Change(id, deleted), true},
		"a kind without generation changes with its version":       {leader.Change(id, young), leader.Change(id, later), false},
		"a kind without generation at one version":                 {leader.Change(id, young), other.Change(id, widget(0, "")), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if same := tc.a.trace == tc.b.trace && tc.a.id == tc.b.id; same != tc.same {
				t.Errorf("same ids: %t, want %t", same, tc.same)
			}
		})
	}
}

func TestATargetCarriesOutADeletionOnlyIfItIsWithdrawnForIt(t *testing.T) {
	tracer, _ := replica(t, "hub", 1)
	withdrawn := func(reason string) *hubv1.BindingTarget {
		return &hubv1.BindingTarget{Name: "eu", State: hubv1.TargetAbsent, Absent: &hubv1.Absence{Reason: reason, UID: "widget"}}
	}
	present := &hubv1.BindingTarget{Name: "eu", State: hubv1.TargetPresent}
	terminating, another := widget(3, ""), widget(1, "")
	terminating.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	another.SetUID("another")
	deletion, generation := tracer.Deletion(id, "widget"), tracer.Change(id, widget(3, ""))
	tests := map[string]struct {
		target   *hubv1.BindingTarget
		template *unstructured.Unstructured
		want     Change
	}{
		"a present copy":                                        {present, widget(3, ""), generation},
		"a present copy of an unknown object":                   {present, nil, Change{}},
		"a present copy of an object that is being deleted":     {present, terminating, Change{}},
		"a present copy of an object that is replaced":          {present, another, Change{}},
		"a copy on a cluster that is no longer chosen":          {withdrawn(hubv1.ReasonNotSelected), widget(3, ""), generation},
		"the same of an unknown object":                         {withdrawn(hubv1.ReasonNotSelected), nil, Change{}},
		"the same of an object that is being deleted":           {withdrawn(hubv1.ReasonNotSelected), terminating, Change{}},
		"a copy of a deleted object":                            {withdrawn(hubv1.ReasonObjectDeleted), nil, deletion},
		"a copy of a deleted object that another has replaced":  {withdrawn(hubv1.ReasonObjectDeleted), another, deletion},
		"a copy of an object that the watch still shows a time": {withdrawn(hubv1.ReasonObjectDeleted), widget(3, ""), deletion},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tracer.TargetChange(id, "widget", tc.target, tc.template); got != tc.want {
				t.Errorf("trace %s, want %s", got.trace, tc.want.trace)
			}
		})
	}
}

func TestTheUsersTraceIsTheParent(t *testing.T) {
	tests := map[string]struct {
		parent         string
		used, recorded bool
	}{
		"a sampled parent":                        {usersParent, true, true},
		"a parent that is not sampled":            {"00-" + usersTrace + "-" + usersSpan + "-00", true, false},
		"no parent":                               {"", false, false},
		"a text that is none":                     {"yesterday", false, false},
		"a trace id of zeros":                     {"00-00000000000000000000000000000000-" + usersSpan + "-01", false, false},
		"a span id of zeros":                      {"00-" + usersTrace + "-0000000000000000-01", false, false},
		"upper case, which W3C forbids":           {strings.ToUpper(usersParent), false, false},
		"version ff, which W3C forbids":           {"ff-" + usersTrace + "-" + usersSpan + "-01", false, false},
		"a text of a megabyte with a valid begin": {"01-" + usersTrace + "-" + usersSpan + "-01-" + strings.Repeat("x", 1<<20), false, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tracer, spans := replica(t, "hub", 0) // only the sampled flag of the user's trace can select a change
			c := tracer.Change(id, widget(1, tc.parent))
			if used := c.trace.String() == usersTrace; used != tc.used || c.Traced() != tc.recorded {
				t.Fatalf("the user's trace is used: %t, want %t; traced: %t, want %t", used, tc.used, c.Traced(), tc.recorded)
			}
			c.Root(time.Unix(10, 0), time.Unix(11, 0))
			c.Record(Step{Name: SpanDecide, Began: time.Unix(10, 0), Ended: time.Unix(11, 0)})
			flush(t, tracer)
			got := spans.GetSpans()
			if !tc.recorded {
				if len(got) > 0 {
					t.Fatalf("%d spans of a change that is not traced", len(got))
				}
				return
			}
			if len(got) != 2 || got[0].Parent.SpanID().String() != usersSpan || got[1].Parent.SpanID() != got[0].SpanContext.SpanID() || got[1].SpanContext.TraceID().String() != usersTrace {
				t.Errorf("spans %v", got)
			}
		})
	}
}

func TestStagesAgreeOnSampling(t *testing.T) {
	leader, _ := replica(t, "hub", 0.25)
	other, _ := replica(t, "hub", 0.25)
	const changes = 4000
	traced := 0
	for i := range changes {
		uid := types.UID(fmt.Sprint(i))
		a, b := leader.Deletion(id, uid), other.Deletion(id, uid)
		if a.Traced() != b.Traced() {
			t.Fatalf("replicas disagree on change %d", i)
		}
		if a.Traced() {
			traced++
		}
	}
	if traced < changes/5 || traced > changes*3/10 {
		t.Errorf("%d of %d changes are traced, want about a quarter", traced, changes)
	}
}

func TestSpansOfOneChange(t *testing.T) {
	endpoint := collector.Start(t)
	leader, err := New(Options{Endpoint: endpoint.URL + "/", Sampling: 1}, Process{HubID: "hub", Version: "v1", Instance: "a", Logger: logr.Discard()})
	must(t, err)
	other, err := New(Options{Endpoint: endpoint.URL, Sampling: 1}, Process{HubID: "hub", Version: "v1", Instance: "b", Logger: logr.Discard()})
	must(t, err)
	at := func(s int64) time.Time { return time.Unix(1000+s, 0) }
	c := leader.Change(id, widget(7, ""))
	c.Record(Step{Name: SpanDecide, Began: at(1), Ended: at(2), Reason: "Scheduled"})
	other.Change(id, widget(7, "")).Record(Step{
		Name: SpanDispatch, Began: at(3), Ended: at(6), Cluster: "eu", Reason: "AdmissionDenied", Failed: true,
		Parts: []Step{{Name: SpanRender, Began: at(4), Ended: at(5), Cluster: "eu"}},
	})
	c.Root(at(0), at(2)) // made after its children, which is allowed
	leader.Close(t.Context())
	other.Close(t.Context())

	spans := endpoint.Spans("")
	if len(spans) != 4 {
		t.Fatalf("%d spans, want 4: %v", len(spans), spans)
	}
	root, decide, dispatch, render := spans[0], spans[1], spans[2], spans[3]
	if root.Name != SpanChange || root.Parent != "" || !root.Began.Equal(at(0)) || !root.Ended.Equal(at(2)) || root.Attributes["hanse.object.generation"] != int64(7) ||
		root.Attributes["hanse.object.kind"] != "Widget.test.hanse.dev" || root.Attributes["k8s.namespace.name"] != "shop" || root.Attributes["hanse.object.name"] != "web" {
		t.Errorf("root %+v", root)
	}
	if decide.Name != SpanDecide || decide.Parent != root.ID || decide.Attributes["service.instance.id"] != "a" || decide.Attributes["hanse.reason"] != "Scheduled" || decide.Failed {
		t.Errorf("decide %+v", decide)
	}
	if dispatch.Name != SpanDispatch || dispatch.Parent != root.ID || dispatch.Attributes["service.instance.id"] != "b" || dispatch.Attributes["k8s.cluster.name"] != "eu" || !dispatch.Failed {
		t.Errorf("dispatch %+v", dispatch)
	}
	if render.Name != SpanRender || render.Parent != dispatch.ID || render.Failed {
		t.Errorf("render %+v", render)
	}
	for _, s := range spans {
		if s.Trace != root.Trace {
			t.Errorf("%s is in trace %s, want %s", s.Name, s.Trace, root.Trace)
		}
	}
}

// TestAnEndpointThatHangs uses an endpoint that accepts connections and never answers.
func TestAnEndpointThatHangs(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var held atomic.Int32
	go func() {
		var open []net.Conn
		for {
			conn, err := listener.Accept()
			if err != nil {
				for _, c := range open {
					_ = c.Close()
				}
				return
			}
			open = append(open, conn)
			held.Add(1)
		}
	}()
	t.Cleanup(func() { _ = listener.Close() })
	tracer, err := New(Options{Endpoint: "http://" + listener.Addr().String(), Sampling: 1}, Process{HubID: "hub", Logger: logr.Discard()})
	must(t, err)
	began := time.Now()
	const changes = 4 * queued // many more than can wait
	for i := range changes {
		tracer.Deletion(id, types.UID(fmt.Sprint(i))).Record(Step{Name: SpanWrite, Began: began, Ended: began})
	}
	if took := time.Since(began); took > requestWithin {
		t.Errorf("%d spans took %s: the endpoint holds them up", changes, took)
	}
	began = time.Now()
	tracer.Close(t.Context())
	if took := time.Since(began); took > closeWithin+time.Second {
		t.Errorf("the end took %s, want %s", took, closeWithin)
	}
	if held.Load() == 0 {
		t.Error("the endpoint was not called")
	}
}

func TestAnOutageIsLoggedOnceAndNoMoreThanOnceAMinute(t *testing.T) {
	var log bytes.Buffer
	sent, now := &exporter{}, time.Unix(1000, 0)
	s := &sender{SpanExporter: sent, now: func() time.Time { return now }, log: funcr.New(func(_, args string) { fmt.Fprintln(&log, args) }, funcr.Options{})}
	for i, step := range []struct {
		after time.Duration
		fails bool
		lines int // number of log lines so far
	}{
		{0, false, 0}, {0, true, 1}, {2 * pace.RepeatAfter, true, 1}, {0, false, 2}, {time.Second, true, 2}, {time.Second, false, 2}, {time.Second, true, 2}, {pace.RepeatAfter, true, 3},
	} {
		now = now.Add(step.after)
		if sent.err = nil; step.fails {
			sent.err = errors.New("no route to host")
		}
		if err := s.ExportSpans(t.Context(), nil); err != nil {
			t.Errorf("%v reaches the library, which would log it each time", err)
		}
		if got := strings.Count(log.String(), "\n"); got != step.lines {
			t.Errorf("after step %d, the log has %d lines, want %d:\n%s", i, got, step.lines, log.String())
		}
	}
}

func TestTheTextOfTheEndpointInTheLogIsShortAndPlain(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, "\x1b[31mfake line\r\n"+strings.Repeat("x", 1<<20))
	}))
	t.Cleanup(server.Close)
	var reason string
	log := funcr.NewJSON(func(line string) { reason = line }, funcr.Options{})
	tracer, err := New(Options{Endpoint: server.URL, Sampling: 1}, Process{Logger: log})
	must(t, err)
	tracer.Deletion(id, "widget").Root(time.Now(), time.Now())
	tracer.Close(t.Context())
	if n := len(reason); n > 600 || !strings.Contains(reason, "fake line") || strings.Contains(reason, "u001b") || strings.Contains(reason, `\r`) {
		t.Errorf("a line of %d bytes: %.600s", n, reason)
	}
}

type exporter struct {
	tracetest.NoopExporter
	err error
}

// ExportSpans implements sdktrace.SpanExporter.
func (e *exporter) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return e.err }

func TestTLS(t *testing.T) {
	got := make(chan string, 10)
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.URL.Path }))
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	tracer, err := New(Options{Endpoint: server.URL + "/otlp", CAFile: ca, Sampling: 1}, Process{Logger: logr.Discard()})
	must(t, err)
	tracer.Deletion(id, "widget").Root(time.Now(), time.Now())
	tracer.Close(t.Context())
	select {
	case path := <-got:
		if path != "/otlp/v1/traces" {
			t.Errorf("posted to %s", path)
		}
	default:
		t.Error("nothing was posted")
	}
}

func TestOptions(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	must(t, os.WriteFile(empty, []byte("no certificate"), 0o600))
	tests := map[string]struct {
		options Options
		want    string // part of the error; empty: there is no error
	}{
		"off":                               {Options{Sampling: 1}, ""},
		"plain HTTP":                        {Options{Endpoint: "http://collector:4318", Sampling: 1}, ""},
		"a path":                            {Options{Endpoint: "https://collector.example.com/otlp", Sampling: 0.1}, ""},
		"a CA without an endpoint":          {Options{CAFile: empty, Sampling: 1}, "needs --otlp-endpoint"},
		"a CA for plain HTTP":               {Options{Endpoint: "http://collector:4318", CAFile: empty, Sampling: 1}, "with https"},
		"a file without a certificate":      {Options{Endpoint: "https://collector:4318", CAFile: empty, Sampling: 1}, "has no PEM certificate"},
		"a file that is not there":          {Options{Endpoint: "https://collector:4318", CAFile: empty + "2", Sampling: 1}, "reading --otlp-ca-file"},
		"host and port without a scheme":    {Options{Endpoint: "collector:4317", Sampling: 1}, "--otlp-endpoint"},
		"a scheme that is not HTTP":         {Options{Endpoint: "grpc://collector:4317", Sampling: 1}, "--otlp-endpoint must be an http or https URL"},
		"a password, which is not repeated": {Options{Endpoint: "https://me:secret@collector:4318", Sampling: 1}, "--otlp-endpoint must be an http or https URL"},
		"a ratio above 1":                   {Options{Sampling: 1.5}, "--otlp-sampling"},
		"a ratio below 0":                   {Options{Sampling: -1}, "--otlp-sampling"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tracer, err := New(tc.options, Process{Logger: logr.Discard()})
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret")):
				t.Errorf("%v, want %q", err, tc.want)
			case tracer.Enabled() != (err == nil && tc.options.Endpoint != ""):
				t.Errorf("enabled: %t", tracer.Enabled())
			}
			tracer.Close(t.Context())
		})
	}
}

func TestTracingThatIsOffDoesNotAllocate(t *testing.T) {
	var off *Tracer
	template, now, log := widget(3, usersParent), time.Now(), logr.Discard()
	if n := testing.AllocsPerRun(100, func() {
		c := off.Change(id, template)
		if c.Traced() {
			t.Error("traced")
		}
		c.Root(now, now)
		c.Record(Step{Name: SpanDispatch, Began: now, Ended: now, Cluster: "eu", Reason: "Applied"})
		_ = c.Log(log)
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func BenchmarkChange(b *testing.B) {
	for name, sampling := range map[string]float64{"off": -1, "not sampled": 0, "sampled": 1} {
		b.Run(name, func(b *testing.B) {
			var tracer *Tracer
			if sampling >= 0 {
				tracer = NewWith(tracetest.NewNoopExporter(), sampling, Process{HubID: "hub"})
				b.Cleanup(func() { tracer.Close(context.WithoutCancel(b.Context())) })
			}
			template, now := widget(3, ""), time.Now()
			b.ReportAllocs()
			for b.Loop() {
				tracer.Change(id, template).Record(Step{Name: SpanWrite, Began: now, Ended: now, Cluster: "eu"})
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// docs/tracing.md says which variables of the OpenTelemetry SDK have an effect.
func TestFewVariablesOfTheSDKHaveAnEffect(t *testing.T) {
	for name, value := range map[string]string{
		"OTEL_RESOURCE_ATTRIBUTES": "team=fleet,service.version=other", "OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=hanse",
		"OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT": "4",
		// without an effect
		"OTEL_SERVICE_NAME": "other", "OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "none", "OTEL_TRACES_SAMPLER": "always_off",
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://127.0.0.1:1/other",
		"OTEL_EXPORTER_OTLP_TRACES_COMPRESSION": "none", "OTEL_EXPORTER_OTLP_TIMEOUT": "1", "OTEL_BSP_MAX_QUEUE_SIZE": "1", "OTEL_BSP_SCHEDULE_DELAY": "3600000",
	} {
		t.Setenv(name, value)
	}
	if tracer, err := New(Options{Sampling: 1}, Process{HubID: "hub"}); tracer != nil || err != nil {
		t.Fatalf("without the flag, tracing is %t: %v", tracer.Enabled(), err)
	}
	otlp := collector.Start(t)
	var headers atomic.Value
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		headers.Store(req.Header.Clone())
		http.Redirect(w, req, otlp.URL, http.StatusTemporaryRedirect)
	}))
	defer endpoint.Close()
	tracer, err := New(Options{Endpoint: endpoint.URL, Sampling: 1}, Process{HubID: "hub", Version: "v1", Logger: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	tracer.Change(id, widget(1, "")).Root(time.Now(), time.Now())
	flush(t, tracer)
	got, _ := headers.Load().(http.Header)
	if got.Get("X-Tenant") != "hanse" || got.Get("Content-Encoding") != "gzip" {
		t.Errorf("the endpoint got the headers %v", got)
	}
	tracer.Close(t.Context())

	tracer, err = New(Options{Endpoint: otlp.URL, Sampling: 1}, Process{HubID: "hub", Version: "v1", Logger: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	defer tracer.Close(context.WithoutCancel(t.Context()))
	tracer.Change(id, widget(2, "")).Root(time.Now(), time.Now())
	flush(t, tracer)
	spans := otlp.Spans("")
	if len(spans) != 1 {
		t.Fatalf("got %d spans, want 1", len(spans))
	}
	for name, want := range map[string]string{"team": "fleet", "service.name": "hanse-hub", "service.version": "v1", "hanse.object.kind": "Widg"} {
		if got := spans[0].Attributes[name]; got != want {
			t.Errorf("%s is %v, want %s", name, got, want)
		}
	}
}
