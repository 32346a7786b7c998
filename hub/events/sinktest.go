package events

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/events/format"
)

// maxTestID is the maximum length of the annotation hanse.dev/test-sink.
const maxTestID = 64

// tester sends the test messages that users request by the annotation hanse.dev/test-sink. A test does not wait in the
// queue of the sink, and is not repeated, so that a user learns the answer of the receiver at once.
type tester struct{ notifier *Notifier }

// Reconcile implements reconcile.ObjectReconciler. It runs in the leading replica.
func (t tester) Reconcile(ctx context.Context, sink *hubv1.NotificationSink) (ctrl.Result, error) {
	id := sink.Annotations[hubv1.TestSinkAnnotation]
	if id == "" || len(id) > maxTestID || !sink.DeletionTimestamp.IsZero() || sink.Status.Test != nil && sink.Status.Test.ID == id {
		return ctrl.Result{}, nil
	}
	delivered, message := t.try(ctx, sink)
	if ctx.Err() != nil {
		return ctrl.Result{}, ctx.Err()
	}
	after := sink.DeepCopy()
	after.Status.Test = &hubv1.SinkTest{ID: id, Time: metav1.Now().Rfc3339Copy(), Delivered: delivered, Message: hubv1.CutMessage(format.Clean(message), format.MaxMessage)}
	if err := t.notifier.opts.Client.Status().Patch(ctx, after, client.MergeFrom(sink)); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(fmt.Errorf("writing status.test of NotificationSink %s: %w", sink.Name, err))
	}
	return ctrl.Result{}, nil
}

// try sends one test message. Of the answer, the result has only the status code: a user could otherwise read the
// answers of servers that only the hub reaches.
func (t tester) try(ctx context.Context, sink *hubv1.NotificationSink) (delivered bool, message string) {
	n := t.notifier
	to, err := n.target(ctx, sink.Name, sink.UID)
	if err != nil {
		return false, err.Error()
	}
	notice := format.Notice{
		ID: string(uuid.NewUUID()), At: time.Now(), Type: corev1.EventTypeNormal, Reason: format.SinkTest, Action: "Notify",
		Regarding: corev1.ObjectReference{APIVersion: hubv1.GroupVersion.String(), Kind: "NotificationSink", Name: sink.Name, UID: sink.UID},
		Detail:    "this is a test: a user of the hub has requested it",
	}
	m, err := encode(to.format, format.Message{Hub: n.opts.Hub, Notices: []format.Notice{notice}})
	if err != nil {
		return false, err.Error()
	}
	once := sinkClient{proxy: n.opts.Proxy, within: n.limits.within}
	defer once.close()
	o := once.deliver(ctx, to, m)
	if o.failure != nil {
		return false, fmt.Sprintf("replica %s cannot deliver to %s: %v", n.opts.Replica, receiverOf(sink), o.failure)
	}
	return true, fmt.Sprintf("replica %s has sent it to %s, which answers %d %s", n.opts.Replica, receiverOf(sink), o.status, http.StatusText(o.status))
}
