package command

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestATestOfASinkShowsTheAnswerThatTheHubReports(t *testing.T) {
	fresh(t)
	sink := &hubv1.NotificationSink{ObjectMeta: metav1.ObjectMeta{Name: "chat"}, Spec: hubv1.NotificationSinkSpec{
		Format: hubv1.FormatSlack, URL: "https://hooks.slack.com/services/T/B/X",
	}}
	apply(t, onHub, sink)
	for _, result := range []hubv1.SinkTest{
		{Delivered: true, Message: "replica a has sent it to hooks.slack.com, which answers 200 OK"},
		{Message: "replica a cannot deliver to hooks.slack.com: the receiver answers 403 Forbidden"},
	} {
		answered := make(chan error, 1)
		go func() { answered <- answer(t.Context(), result) }()
		out, err := hansectl(t, "sink", "test", "chat")
		must(t, <-answered)
		wants(t, out, "notificationsink/chat", "requested a test message from the hub")
		if !result.Delivered {
			refused(t, err, "the test message was not delivered: "+result.Message)
			continue
		}
		must(t, err)
		wants(t, out, result.Message)
	}
	_, err := hansectl(t, "sink", "test", "chat", "--timeout", "1s")
	refused(t, err, "timed out after 1s", "hansectl problems --checks")
	_, err = hansectl(t, "sink", "test", "nowhere")
	refused(t, err, "reading notificationsink/nowhere")
	_, err = hansectl(t, "sink", "test")
	refused(t, err, "NAME is missing")
}

// answer writes the result of the next test, as the hub does.
func answer(ctx context.Context, result hubv1.SinkTest) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		var sink hubv1.NotificationSink
		if err := onHub.Get(ctx, client.ObjectKey{Name: "chat"}, &sink); err != nil {
			return false, err
		}
		id := sink.Annotations[hubv1.TestSinkAnnotation]
		if id == "" || sink.Status.Test != nil && sink.Status.Test.ID == id {
			return false, nil
		}
		before := sink.DeepCopy()
		result.ID, result.Time = id, metav1.Now()
		sink.Status.Test = &result
		return true, onHub.Status().Patch(ctx, &sink, client.MergeFrom(before))
	})
}
