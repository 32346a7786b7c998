// Package events sends the Events that the hub records to the receivers of NotificationSinks. Package format makes the
// requests: signed CloudEvents, or messages for chats and pagers.
//
//   - The Recorder sends exactly the events that it records, so that a notification and its Event never differ. It
//     never waits: if the queue is full, the notification is dropped and counted.
//   - For a chat, the events of one cause wait some seconds for each other, and are one message.
//   - Each sink has a bounded queue and a goroutine, so that a slow receiver does not delay other sinks.
//   - Each replica sends the events that it records itself. They are only in memory, and are lost when the replica
//     ends.
//   - Only the status code of the receiver's response says whether a notification is delivered. The hub reads no
//     response body, follows no redirect, and uses only TLS.
package events

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/reference"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/events/format"
)

// EventSinkChanged is the reason of the first event for a new or changed sink. The event is sent to this sink whatever
// its filter is, to show whether the receiver answers. The event is repeated each minute while the sink's condition
// Ready is Unknown, and each hour while Ready is False.
const EventSinkChanged = format.SinkChanged

const (
	// reportEvery is the interval in which a replica checks whether it must write the status of its sinks.
	reportEvery = 2 * time.Second
	// maxRecorded is the maximum number of events that wait until the sinks are read from the API server.
	maxRecorded = 1024
)

// Options of a Notifier.
type Options struct {
	Client client.Client
	Scheme *runtime.Scheme
	// Events records the events. Each event is also sent to sinks.
	Events events.EventRecorder
	// Namespace is the namespace of the Secrets with signing keys.
	Namespace string
	// Hub is the UID of the hub, which is part of the CloudEvents' source.
	Hub string
	// Replica is the name under which this process appears in the status of sinks.
	Replica string
	// Proxy returns the proxy for connections to receivers. If the field is nil, no proxy is used.
	Proxy func(*http.Request) (*url.URL, error)
}

// Notifier sends the hub's events to NotificationSinks.
type Notifier struct {
	opts Options

	limits   limits
	recorded chan format.Notice
	changed  chan struct{} // has a value after a change of the sinks

	// groups are the events that wait for others of the same cause. Only the goroutine of Start uses them.
	groups groups

	mu      sync.Mutex
	senders map[types.UID]*sender
}

// New returns a Notifier.
func New(o Options) *Notifier {
	return &Notifier{
		opts: o, limits: standard, groups: groups{limits: standard},
		recorded: make(chan format.Notice, maxRecorded), changed: make(chan struct{}, 1), senders: map[types.UID]*sender{},
	}
}

// recorder passes each recorded event to the Notifier.
type recorder struct {
	events.EventRecorder
	notifier *Notifier
}

// Recorder returns a recorder whose events are also sent to sinks.
func (n *Notifier) Recorder() events.EventRecorder { return recorder{n.opts.Events, n} }

// Eventf implements events.EventRecorder.
func (r recorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	r.EventRecorder.Eventf(regarding, related, kind, reason, action, note, args...)
	about, err := reference.GetReference(r.notifier.opts.Scheme, regarding)
	if err != nil {
		return // the Event was not recorded either
	}
	event := format.Notice{
		ID: string(uuid.NewUUID()), At: time.Now(), Regarding: *about, Type: kind, Reason: reason, Action: action, Detail: fmt.Sprintf(note, args...),
	}
	if related != nil {
		event.Related, _ = reference.GetReference(r.notifier.opts.Scheme, related)
	}
	select {
	case r.notifier.recorded <- event:
	default:
		notifications.WithLabelValues("", "dropped").Inc()
	}
}

// SetupWithManager adds the senders, which run in every replica, and the controller for the first event of each sink,
// which runs in the leading replica.
func (n *Notifier) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	informer, err := mgr.GetCache().GetInformer(ctx, &hubv1.NotificationSink{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching NotificationSinks on the hub: %w", err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { n.look() }, DeleteFunc: func(any) { n.look() },
		UpdateFunc: func(before, after any) {
			b, ok := before.(*hubv1.NotificationSink)
			a, known := after.(*hubv1.NotificationSink)
			if ok && known && (a.UID != b.UID || a.Generation != b.Generation) {
				n.changedSpec(b.UID)
				n.look()
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching NotificationSinks on the hub: %w", err)
	}
	if err := mgr.Add(n); err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).Named("notificationsink").
		For(&hubv1.NotificationSink{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(reconcile.AsReconciler(n.opts.Client, greeter{n.limits, n.opts.Client, n.Recorder()}))
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("notificationsinktest").
		For(&hubv1.NotificationSink{}, builder.WithPredicates(predicate.AnnotationChangedPredicate{})).
		Complete(reconcile.AsReconciler(n.opts.Client, tester{n}))
}

// greeter records a first event about each sink, and repeats it while the sink is not ready. Without the repetition,
// there might be no event to send, and the condition Ready would stay False after the receiver works again.
type greeter struct {
	limits
	client client.Client
	record events.EventRecorder
}

// Reconcile implements reconcile.ObjectReconciler. It also runs for each sink when this process becomes the leader,
// because unsent messages of the former leader are lost.
func (g greeter) Reconcile(ctx context.Context, sink *hubv1.NotificationSink) (ctrl.Result, error) {
	if !sink.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	again := ctrl.Result{RequeueAfter: g.greetAgain}
	if sink.Status.ObservedGeneration == sink.Generation {
		ready := meta.FindStatusCondition(sink.Status.Conditions, hubv1.ConditionReady)
		if ready != nil && ready.Status != metav1.ConditionUnknown {
			again.RequeueAfter = g.maxAge // a sender keeps a failed event for at most this time
		}
		if ready != nil && ready.Status == metav1.ConditionTrue {
			return again, nil
		}
	} else if err := g.observe(ctx, sink); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	g.record.Eventf(sink, nil, corev1.EventTypeNormal, EventSinkChanged, "Notify", "the hub sends notifications to %s", receiverOf(sink))
	return again, nil
}

// observe sets the condition Ready of a sink to Unknown, because no message was sent with the current spec yet.
func (g greeter) observe(ctx context.Context, sink *hubv1.NotificationSink) error {
	after := sink.DeepCopy()
	after.Status.ObservedGeneration, after.Status.FailingReplica = sink.Generation, ""
	meta.SetStatusCondition(&after.Status.Conditions, metav1.Condition{
		Type: hubv1.ConditionReady, Status: metav1.ConditionUnknown, Reason: hubv1.ReasonDeliveryPending, ObservedGeneration: sink.Generation,
		Message: "the receiver has not answered for the current spec yet: the hub sends a notification each minute until the receiver answers",
	})
	if err := g.client.Status().Patch(ctx, after, client.MergeFromWithOptions(sink, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the status of NotificationSink %s: %w", sink.Name, err)
	}
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable. It returns false, because each replica sends its own
// events.
func (*Notifier) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (n *Notifier) Start(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { n.report(ctx) })
	grouped := time.NewTicker(n.limits.groupEvery)
	defer grouped.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-n.changed:
			n.drop(ctx)
		case event := <-n.recorded:
			n.distribute(ctx, event, &running)
		case <-grouped.C:
			n.sendGroups(ctx, &running)
		}
	}
}

func (n *Notifier) look() {
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

// changedSpec tells the sender of a sink that the spec has changed.
func (n *Notifier) changedSpec(uid types.UID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if s := n.senders[uid]; s != nil {
		s.wake()
	}
}

// distribute queues an event for each sink whose filter selects it. For a chat, the event first waits for other events
// of the same cause.
func (n *Notifier) distribute(ctx context.Context, event format.Notice, running *sync.WaitGroup) {
	var sinks hubv1.NotificationSinkList
	if err := n.opts.Client.List(ctx, &sinks, client.UnsafeDisableDeepCopy); err != nil {
		return // the cache stops because this process ends
	}
	for i := range sinks.Items {
		sink := &sinks.Items[i]
		if !sink.DeletionTimestamp.IsZero() || !selects(sink, event) {
			continue
		}
		one := format.Message{Hub: n.opts.Hub, Notices: []format.Notice{event}}
		if isChat(sink.Spec.Format) && !event.IsAboutSink(sink.Name) {
			n.groups.add(sink, one, time.Now())
			continue
		}
		n.send(ctx, sink, one, running)
	}
}

// sendGroups queues the messages whose events are complete.
func (n *Notifier) sendGroups(ctx context.Context, running *sync.WaitGroup) {
	for _, g := range n.groups.due(time.Now()) {
		n.send(ctx, g.sink, g.message, running)
	}
}

// send queues a message for a sink, in the format of the sink.
func (n *Notifier) send(ctx context.Context, sink *hubv1.NotificationSink, content format.Message, running *sync.WaitGroup) {
	m, err := encode(sink.Spec.Format, content)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Sending an event to sinks")
		return
	}
	if m != nil {
		n.sender(ctx, sink, running).push(m)
	}
}

// sender returns the running sender of a sink. It starts the sender if there is none.
func (n *Notifier) sender(ctx context.Context, sink *hubv1.NotificationSink, running *sync.WaitGroup) *sender {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.senders[sink.UID]
	if s == nil {
		name, uid := sink.Name, sink.UID
		s = &sender{
			limits: n.limits, name: name, uid: uid, queue: make(chan *message, n.limits.queued), changed: make(chan struct{}, 1),
			client: sinkClient{proxy: n.opts.Proxy, within: n.limits.within},
			target: func(ctx context.Context) (target, error) { return n.target(ctx, name, uid) },
		}
		for _, result := range []string{"delivered", "failed", "refused", "dropped"} {
			// Create the series with 0, because Prometheus sees no increase in a counter that begins with 1.
			notifications.WithLabelValues(name, result)
		}
		var sending context.Context
		sending, s.stop = context.WithCancel(ctx)
		n.senders[sink.UID] = s
		running.Go(func() { s.run(sending) })
	}
	return s
}

// drop ends the senders of deleted sinks.
func (n *Notifier) drop(ctx context.Context) {
	var sinks hubv1.NotificationSinkList
	if err := n.opts.Client.List(ctx, &sinks, client.UnsafeDisableDeepCopy); err != nil {
		return
	}
	exist, named := map[types.UID]bool{}, map[string]bool{}
	for i := range sinks.Items {
		exist[sinks.Items[i].UID], named[sinks.Items[i].Name] = true, true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for uid, s := range n.senders {
		if exist[uid] {
			continue
		}
		s.stop()
		delete(n.senders, uid)
		if !named[s.name] {
			notifications.DeletePartialMatch(map[string]string{"sink": s.name})
		}
	}
}

// report writes the status of sinks until ctx ends.
func (n *Notifier) report(ctx context.Context) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		n.mu.Lock()
		senders := make([]*sender, 0, len(n.senders))
		for _, s := range n.senders {
			senders = append(senders, s)
		}
		n.mu.Unlock()
		for _, s := range senders {
			if err := n.write(ctx, s); err != nil && !apierrors.IsConflict(err) && ctx.Err() == nil {
				ctrl.LoggerFrom(ctx).Error(err, "Reporting on a sink") // retried after reportEvery
			}
		}
	}
}

// write writes the status of the sink of the sender, if a write is due.
func (n *Notifier) write(ctx context.Context, s *sender) error {
	t, last := s.result()
	var sink hubv1.NotificationSink
	if err := n.opts.Client.Get(ctx, types.NamespacedName{Name: s.name}, &sink); err != nil {
		return client.IgnoreNotFound(err)
	}
	if sink.UID != s.uid {
		return nil // the sink was deleted, and another one has its name
	}
	now := time.Now()
	status, due := fold(&sink, t, n.opts.Replica, last, now)
	if !due {
		return nil
	}
	after := sink.DeepCopy()
	after.Status = status
	if err := n.opts.Client.Status().Patch(ctx, after, client.MergeFromWithOptions(&sink, client.MergeFromWithOptimisticLock{})); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("writing the status of NotificationSink %s: %w", s.name, err))
	}
	s.wrote(t, now)
	return nil
}
