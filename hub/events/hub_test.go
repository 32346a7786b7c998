package events

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/apiserver"
	"github.com/hanse-dev/hanse/test/receiver"
)

var hubConfig *rest.Config

func TestMain(m *testing.M) { os.Exit(apiserver.Run(m, apiserver.Hub(), &hubConfig)) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is a hub that sends notifications to the sinks of one test.
type world struct {
	*testing.T
	admin client.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	apiserver.Needed(t)
	scheme := runtime.NewScheme()
	must(t, errors.Join(clientgoscheme.AddToScheme(scheme), hubv1.AddToScheme(scheme)))
	admin, err := client.New(hubConfig, client.Options{Scheme: scheme})
	must(t, err)
	return &world{t, admin}
}

// replica runs a replica of the hub until the test ends. leads is true for only one replica.
func (w *world) replica(name string, leads bool) events.EventRecorder {
	w.Helper()
	yes := true
	mgr, err := manager.New(hubConfig, manager.Options{
		Scheme: w.admin.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: config.Controller{SkipNameValidation: &yes},
	})
	must(w.T, err)
	n := New(Options{
		Client: mgr.GetClient(), Scheme: mgr.GetScheme(), Events: &events.FakeRecorder{}, Namespace: "default", Hub: "hub-1", Replica: name,
	})
	n.limits = quick
	ctx, cancel := context.WithCancel(w.Context())
	if leads {
		must(w.T, n.SetupWithManager(ctx, mgr))
	} else {
		must(w.T, mgr.Add(n))
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	w.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.Errorf("the manager ended: %v", err)
		}
	})
	return n.Recorder()
}

// running returns the number of running senders.
func (r recorder) running() int {
	r.notifier.mu.Lock()
	defer r.notifier.mu.Unlock()
	return len(r.notifier.senders)
}

// sink creates a NotificationSink for a server, and a Secret with this key. Both are deleted after the test.
func (w *world) sink(name string, s *httptest.Server, key string, filter hubv1.NotificationFilter) {
	w.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, StringData: map[string]string{"signingKey": key}}
	sink := &hubv1.NotificationSink{ObjectMeta: metav1.ObjectMeta{Name: name}}
	sink.Spec.URL, sink.Spec.CABundle, sink.Spec.Filter = s.URL+"/hooks/token", base64.StdEncoding.EncodeToString([]byte(caOf(s))), filter
	sink.Spec.SecretRef.Name = name
	for _, o := range []client.Object{secret, sink} {
		must(w.T, w.admin.Create(w.Context(), o))
		w.Cleanup(func() { must(w.T, client.IgnoreNotFound(w.admin.Delete(context.WithoutCancel(w.Context()), o))) })
	}
}

// becomes waits until the condition Ready has a reason, and returns the sink.
func (w *world) becomes(name, reason string) *hubv1.NotificationSink {
	w.Helper()
	var sink hubv1.NotificationSink
	eventually(w.T, "sink "+name+" is "+reason, func() bool {
		must(w.T, w.admin.Get(w.Context(), client.ObjectKey{Name: name}, &sink))
		c := meta.FindStatusCondition(sink.Status.Conditions, hubv1.ConditionReady)
		return c != nil && c.Reason == reason && c.ObservedGeneration == sink.Generation
	})
	return &sink
}

// received returns a server, and a channel with the type and subject of each received event.
func received(t *testing.T, answer *atomic.Int32) (*httptest.Server, chan string) {
	t.Helper()
	got := make(chan string, 100)
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		if code := answer.Load(); code != 0 {
			w.WriteHeader(int(code))
			return
		}
		body, _ := io.ReadAll(r.Body)
		var e receiver.Event
		if err := json.Unmarshal(body, &e); err != nil {
			t.Errorf("%q: %v", body, err)
		}
		got <- e.Type + " " + e.Subject
	}), got
}

func receives(t *testing.T, got chan string, want string) {
	t.Helper()
	if is := <-got; is != want {
		t.Errorf("got %q, want %q", is, want)
	}
}

func TestANewSinkGetsAFirstEventAndThenTheEventsOfAllReplicas(t *testing.T) {
	w := newWorld(t)
	a, b := w.replica("a", true), w.replica("b", false)
	server, got := received(t, &atomic.Int32{})
	w.sink("chat", server, ofStandard, hubv1.NotificationFilter{MinSeverity: hubv1.SeverityWarning})
	receives(t, got, "dev.hanse.SinkChanged NotificationSink.hanse.dev/chat")
	w.becomes("chat", hubv1.ReasonDelivered)
	a.Eventf(&widget, nil, corev1.EventTypeNormal, "Applied", "Apply", "applied to %d clusters", 3)
	a.Eventf(&widget, nil, corev1.EventTypeWarning, "ApplyFailed", "Apply", "failed on %d cluster", 1)
	receives(t, got, "dev.hanse.ApplyFailed Widget.example.com/shop/web")
	b.Eventf(&cluster, nil, corev1.EventTypeWarning, "ClusterUnreachable", "Connect", "it is away")
	receives(t, got, "dev.hanse.ClusterUnreachable MemberCluster.hanse.dev/eu-fra-1")
}

func TestASinkThatIsMendedBecomesReady(t *testing.T) {
	w := newWorld(t)
	w.replica("a", true)
	var answer atomic.Int32
	answer.Store(http.StatusServiceUnavailable)
	server, got := received(t, &answer)
	w.sink("mended", server, "no key", hubv1.NotificationFilter{})
	sink := w.becomes("mended", hubv1.ReasonSigningKeyInvalid)
	if sink.Status.FailingReplica != "a" || sink.Status.LastFailedTime == nil {
		t.Errorf("the status is %+v", sink.Status)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mended"}}
	must(t, w.admin.Patch(t.Context(), secret, client.RawPatch("application/merge-patch+json", []byte(fmt.Sprintf(`{"stringData":{"signingKey":%q}}`, ofStandard)))))
	w.becomes("mended", hubv1.ReasonDeliveryFailed)
	answer.Store(0)
	receives(t, got, "dev.hanse.SinkChanged NotificationSink.hanse.dev/mended")
	sink = w.becomes("mended", hubv1.ReasonDelivered)
	if sink.Status.Delivered != 1 || sink.Status.Dropped != 0 || sink.Status.LastDeliveredTime == nil || sink.Status.FailingReplica != "" {
		t.Errorf("the status is %+v", sink.Status)
	}
	before := sink.DeepCopy()
	sink.Spec.URL = server.URL + "/hooks/other"
	must(t, w.admin.Patch(t.Context(), sink, client.MergeFrom(before)))
	receives(t, got, "dev.hanse.SinkChanged NotificationSink.hanse.dev/mended")
	w.becomes("mended", hubv1.ReasonDelivered)
}

// The first notification is lost if the leader ends before the delivery.
func TestANewLeaderTriesASinkThatIsNotReady(t *testing.T) {
	w := newWorld(t)
	server, got := received(t, &atomic.Int32{})
	long := metav1.NewTime(time.Now().Add(-time.Hour))
	for name, left := range map[string]struct {
		is, replica string
		at          *metav1.Time
		reason      string
	}{
		"pending": {"Unknown", "", nil, hubv1.ReasonDeliveryPending},
		"failed":  {"False", "gone", &long, hubv1.ReasonDeliveryFailed},
		"works":   {"True", "", nil, hubv1.ReasonDelivered},
	} {
		w.sink(name, server, ofStandard, hubv1.NotificationFilter{Kinds: []string{"Widget"}})
		var sink hubv1.NotificationSink
		must(t, w.admin.Get(t.Context(), client.ObjectKey{Name: name}, &sink))
		sink.Status.ObservedGeneration, sink.Status.FailingReplica, sink.Status.LastFailedTime = sink.Generation, left.replica, left.at
		meta.SetStatusCondition(&sink.Status.Conditions, metav1.Condition{
			Type: hubv1.ConditionReady, Status: metav1.ConditionStatus(left.is), Reason: left.reason, ObservedGeneration: sink.Generation,
		})
		must(t, w.admin.Status().Update(t.Context(), &sink))
	}
	w.replica("a", true)
	w.becomes("pending", hubv1.ReasonDelivered)
	w.becomes("failed", hubv1.ReasonDelivered)
	reported := map[string]bool{<-got: true, <-got: true}
	for _, name := range []string{"pending", "failed"} {
		if want := "dev.hanse.SinkChanged NotificationSink.hanse.dev/" + name; !reported[want] {
			t.Errorf("there is no %s in %v", want, reported)
		}
	}
	if len(got) != 0 {
		t.Errorf("a sink that works got %s", <-got)
	}
}

// The recorder drops events if its queue is full. A first notification may be among them.
func TestAFirstNotificationIsRepeatedUntilASinkIsTried(t *testing.T) {
	sink := &hubv1.NotificationSink{}
	sink.Name, sink.Generation, sink.Status.ObservedGeneration = "chat", 1, 1
	record := events.NewFakeRecorder(10)
	g := greeter{limits: standard, record: record}
	for _, tc := range []struct {
		is       metav1.ConditionStatus
		reported int
		again    time.Duration
	}{
		{metav1.ConditionUnknown, 1, time.Minute},
		{metav1.ConditionFalse, 1, time.Hour},
		{metav1.ConditionTrue, 0, time.Hour},
	} {
		sink.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: tc.is}}
		result, err := g.Reconcile(t.Context(), sink)
		if err != nil || len(record.Events) != tc.reported || result.RequeueAfter != tc.again {
			t.Errorf("while Ready is %s: %d events, again after %s: %v", tc.is, len(record.Events), result.RequeueAfter, err)
		}
		for len(record.Events) > 0 {
			<-record.Events
		}
	}
}

func TestADeletedSinkGetsNothing(t *testing.T) {
	w := newWorld(t)
	record := w.replica("a", true).(recorder)
	var answer atomic.Int32
	server, got := received(t, &answer)
	other, others := received(t, &atomic.Int32{})
	w.sink("gone", server, ofStandard, hubv1.NotificationFilter{Kinds: []string{"Widget"}})
	w.sink("stays", other, ofStandard, hubv1.NotificationFilter{Kinds: []string{"Widget"}})
	receives(t, got, "dev.hanse.SinkChanged NotificationSink.hanse.dev/gone")
	receives(t, others, "dev.hanse.SinkChanged NotificationSink.hanse.dev/stays")
	answer.Store(http.StatusServiceUnavailable)
	record.Eventf(&widget, nil, corev1.EventTypeWarning, "ApplyFailed", "Apply", "failed")
	receives(t, others, "dev.hanse.ApplyFailed Widget.example.com/shop/web")
	w.becomes("gone", hubv1.ReasonDeliveryFailed)
	must(t, w.admin.Delete(t.Context(), &hubv1.NotificationSink{ObjectMeta: metav1.ObjectMeta{Name: "gone"}}))
	eventually(t, "one sender is left", func() bool { return record.running() == 1 })
	answer.Store(0)
	record.Eventf(&widget, nil, corev1.EventTypeWarning, "Degraded", "Observe", "degraded")
	receives(t, others, "dev.hanse.Degraded Widget.example.com/shop/web")
	if len(got) != 0 {
		t.Errorf("the deleted sink got %s", <-got)
	}
}

// sinkOf creates a NotificationSink of a format, with a Secret that has one entry.
func (w *world) sinkOf(name string, as hubv1.NotificationFormat, s *httptest.Server, entry, value string) {
	w.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, StringData: map[string]string{entry: value}}
	sink := &hubv1.NotificationSink{ObjectMeta: metav1.ObjectMeta{Name: name}}
	sink.Spec.Format, sink.Spec.CABundle, sink.Spec.SecretRef.Name = as, base64.StdEncoding.EncodeToString([]byte(caOf(s))), name
	sink.Spec.Filter.Placements = []hubv1.PlacementName{{Namespace: "shop", Name: "widgets"}}
	if entry != urlEntry {
		sink.Spec.URL = s.URL + "/" + name
	}
	for _, o := range []client.Object{secret, sink} {
		must(w.T, w.admin.Create(w.Context(), o))
		w.Cleanup(func() { must(w.T, client.IgnoreNotFound(w.admin.Delete(context.WithoutCancel(w.Context()), o))) })
	}
}

func TestChatsGetOneMessageForACauseAndAPagerItsIncident(t *testing.T) {
	w := newWorld(t)
	record := w.replica("a", true)
	got := map[string]chan map[string]any{"/slack": make(chan map[string]any, 10), "/teams": make(chan map[string]any, 10), "/pager": make(chan map[string]any, 10)}
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Webhook-Signature") != "" {
			t.Errorf("the request to %s has the header %v: %v", r.URL.Path, r.Header, err)
		}
		w.WriteHeader(http.StatusAccepted)
		got[r.URL.Path] <- body
	})
	w.sinkOf("slack", hubv1.FormatSlack, server, urlEntry, server.URL+"/slack")
	w.sinkOf("teams", hubv1.FormatTeams, server, urlEntry, server.URL+"/teams")
	w.sinkOf("pager", hubv1.FormatPagerDuty, server, routingKeyEntry, "R0123456789abcdefghijklmnopqrstu")
	for name := range got {
		w.becomes(name[1:], hubv1.ReasonDelivered)
		<-got[name] // SinkChanged
	}
	record.Eventf(&widget, &placement, corev1.EventTypeWarning, hubv1.ReasonNoClusterSelected, "Schedule", "0 of 3 clusters: 3 not selected")
	record.Eventf(&placement, nil, corev1.EventTypeWarning, hubv1.ReasonRemovalHeld, "Schedule", "8 copies would be removed")
	record.Eventf(&placement, nil, corev1.EventTypeNormal, hubv1.ReasonRemovalCancelled, "Schedule", "the copies are wanted again")
	if text := fmt.Sprint((<-got["/slack"])["text"]); text != "Critical: Placement shop/widgets: RemovalHeld (and 1 more event)" {
		t.Errorf("the message for Slack is %q", text)
	}
	if card := fmt.Sprint(<-got["/teams"]); !strings.Contains(card, "Critical: Placement shop/widgets: RemovalHeld (and 1 more event)") {
		t.Errorf("the card for Teams is %s", card)
	}
	opened := map[any]string{}
	for range 3 {
		e := <-got["/pager"]
		if e["routing_key"] != "R0123456789abcdefghijklmnopqrstu" {
			t.Errorf("the routing key is %v", e["routing_key"])
		}
		opened[e["dedup_key"]] += fmt.Sprint(e["event_action"], " ")
	}
	var incidents []string
	for _, steps := range opened {
		incidents = append(incidents, steps)
	}
	slices.Sort(incidents)
	if diff := cmp.Diff([]string{"trigger ", "trigger resolve "}, incidents); diff != "" {
		t.Errorf("incidents (-want +got):\n%s", diff)
	}
}

func TestASecretWithoutTheEntryOfTheFormatIsReported(t *testing.T) {
	w := newWorld(t)
	w.replica("a", true)
	server, _ := received(t, &atomic.Int32{})
	w.sinkOf("keyless", hubv1.FormatPagerDuty, server, "token", "R0123456789abcdefghijklmnopqrstu")
	sink := w.becomes("keyless", hubv1.ReasonSecretInvalid)
	if c := meta.FindStatusCondition(sink.Status.Conditions, hubv1.ConditionReady); !strings.Contains(c.Message, "key routingKey of Secret default/keyless") {
		t.Errorf("the message is %q", c.Message)
	}
}

// A user requests a test by an annotation, as hansectl sink test does.
func TestATestOfASinkSaysWhatTheReceiverAnswers(t *testing.T) {
	w := newWorld(t)
	w.replica("a", true)
	var answer atomic.Int32
	server, got := received(t, &answer)
	w.sink("tested", server, ofStandard, hubv1.NotificationFilter{MinSeverity: hubv1.SeverityCritical})
	receives(t, got, "dev.hanse.SinkChanged NotificationSink.hanse.dev/tested")
	w.becomes("tested", hubv1.ReasonDelivered)
	host := strings.TrimPrefix(server.URL, "https://")
	for _, tc := range []struct {
		id        string
		code      int32
		delivered bool
		message   string
	}{
		{"1", 0, true, "replica a has sent it to " + host + ", which answers 200 OK"},
		{"2", http.StatusForbidden, false, "replica a cannot deliver to " + host + ": the receiver answers 403 Forbidden"},
	} {
		answer.Store(tc.code)
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, hubv1.TestSinkAnnotation, tc.id)
		must(t, w.admin.Patch(t.Context(), &hubv1.NotificationSink{ObjectMeta: metav1.ObjectMeta{Name: "tested"}}, client.RawPatch("application/merge-patch+json", []byte(patch))))
		var sink hubv1.NotificationSink
		eventually(t, "the result is written", func() bool {
			must(t, w.admin.Get(t.Context(), client.ObjectKey{Name: "tested"}, &sink))
			return sink.Status.Test != nil && sink.Status.Test.ID == tc.id
		})
		if is := sink.Status.Test; is.Delivered != tc.delivered || is.Message != tc.message {
			t.Errorf("the result is %+v, want %q", is, tc.message)
		}
		if tc.delivered {
			receives(t, got, "dev.hanse.SinkTest NotificationSink.hanse.dev/tested")
		}
	}
}

// Events are recorded during reconciles, even before a sender runs.
func TestRecordingNeverWaits(t *testing.T) {
	recorded := &events.FakeRecorder{}
	n := New(Options{Scheme: clientgoscheme.Scheme, Events: recorded})
	for range 3 * maxRecorded {
		n.Recorder().Eventf(&widget, nil, corev1.EventTypeWarning, "ApplyFailed", "Apply", "failed")
	}
	if got := len(n.recorded); got != maxRecorded {
		t.Errorf("%d events wait, want %d", got, maxRecorded)
	}
}

// The test runs the example receiver of docs/notifications.md.
func TestTheExampleReceiverTakesEachNotificationOnce(t *testing.T) {
	t.Parallel()
	got := make(chan receiver.Event, 10)
	example := &receiver.Handler{Key: ofStandard, Take: func(e receiver.Event) error { got <- e; return nil }}
	server := serve(t, example.ServeHTTP)
	n := warning("ApplyFailed")
	n.Related = &placement
	body, err := n.CloudEvent("hub-1")
	must(t, err)
	c := sinkClient{within: quick.within}
	defer c.close()
	to := targetOf(t, server)
	for range 2 {
		if o := c.deliver(t.Context(), to, &message{format: hubv1.FormatCloudEvents, id: n.ID, body: body}); o.failure != nil {
			t.Fatal(o.failure)
		}
	}
	if len(got) != 1 {
		t.Fatalf("it took %d notifications, want 1", len(got))
	}
	e := <-got
	if e.Data.Reason != "ApplyFailed" || e.Data.Regarding.Name != "web" || e.Data.Related.Name != "widgets" || e.Severity != "Warning" || !e.Time.Equal(n.At) {
		t.Errorf("got %+v", e)
	}
	other, err := parseKeys([]byte("whsec_" + "YmJiYmJiYmJiYmJiYmJiYmJiYmJiYmJi"))
	must(t, err)
	for name, change := range map[string]func(*target, *message){
		"a signature by another key": func(to *target, _ *message) { to.keys = other },
		"an id that is not signed":   func(_ *target, m *message) { m.id = "other" },
	} {
		to, m := to, &message{format: hubv1.FormatCloudEvents, id: n.ID, body: body}
		change(&to, m)
		if o := c.deliver(t.Context(), to, m); o.failure == nil {
			t.Errorf("%s: it is taken", name)
		}
	}
	if o := c.deliver(t.Context(), target{format: to.format, url: to.url, ca: to.ca, keys: append(other, to.keys...)}, &message{format: hubv1.FormatCloudEvents, id: n.ID, body: body}); o.failure != nil {
		t.Errorf("one of two signatures is right: %v", o.failure)
	}
}
