package e2e

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/receiver"
)

// receive creates a sink and runs its receiver until the test ends. It returns after the first notification has
// arrived.
func receive(t *testing.T, name string, filter hubv1.NotificationFilter) chan receiver.Event {
	t.Helper()
	ctx := t.Context()
	key := "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("key", 10)))
	got := make(chan receiver.Event, 100)
	server := httptest.NewTLSServer(&receiver.Handler{Key: key, Take: func(e receiver.Event) error {
		got <- e
		return nil
	}})
	t.Cleanup(server.Close)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: name}, StringData: map[string]string{"signingKey": key}}
	sink := &hubv1.NotificationSink{ObjectMeta: metav1.ObjectMeta{Name: name}}
	sink.Spec.URL = server.URL + "/hooks"
	sink.Spec.CABundle = base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	sink.Spec.SecretRef.Name = secret.Name
	sink.Spec.Filter = filter
	for _, o := range []client.Object{secret, sink} {
		must(t, suite.Hub.Create(ctx, o))
		t.Cleanup(func() { must(t, client.IgnoreNotFound(suite.Hub.Delete(context.WithoutCancel(ctx), o))) })
	}
	eventually(t, normal, func() error {
		if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(sink), sink); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(sink.Status.Conditions, hubv1.ConditionReady) {
			return fmt.Errorf("the status of the sink is %+v", sink.Status)
		}
		return nil
	})
	if e := notified(t, got); e.Type != "dev.hanse.SinkChanged" || e.Subject != "NotificationSink.hanse.dev/"+name {
		t.Fatalf("the first notification is %+v", e)
	}
	return got
}

// notified returns the next notification, and fails the test if none arrives in time.
func notified(t *testing.T, got chan receiver.Event) receiver.Event {
	t.Helper()
	deadline, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	select {
	case e := <-got:
		return e
	case <-deadline.Done():
		t.Fatal("after a minute, there is no notification")
	}
	return receiver.Event{}
}

// TestAReceiverLearnsOfTheObjectsOfOnePlacement places two ConfigMaps. A ConfigMap has no status, so the hub reports in
// an Event that it is on its clusters.
func TestAReceiverLearnsOfTheObjectsOfOnePlacement(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	got := receive(t, "chat", hubv1.NotificationFilter{
		Kinds: []string{"ConfigMap"}, Placements: []hubv1.PlacementName{{Namespace: ns, Name: "wanted"}},
	})
	// The receiver must not get the notification of the object other, which would come first.
	for _, name := range []string{"other", "wanted"} {
		place(t, ns, name, hubv1.ResourceSelector{Kind: "ConfigMap", Name: name}, hubv1.PlacementSpec{Clusters: everyCluster()})
		cm := configMap(ns, name)
		must(t, suite.Hub.Create(ctx, cm))
		eventually(t, normal, func() error {
			return bindingCondition(ctx, cm, hubv1.ConditionApplied, metav1.ConditionTrue, hubv1.ReasonAppliedEverywhere)
		})
	}
	e := notified(t, got)
	if e.Type != "dev.hanse.Applied" || e.Subject != "ConfigMap/"+ns+"/wanted" || e.Severity != "Normal" || e.Data.Related == nil || e.Data.Related.Name != "wanted" {
		t.Errorf("got %+v", e)
	}
}

// TestAReceiverLearnsOfAMemberThatIsAway drops all packets of a member. A receiver that wants Critical events of
// members must get one signed notification with the text of the Event.
func TestAReceiverLearnsOfAMemberThatIsAway(t *testing.T) {
	ctx := t.Context()
	got := receive(t, "pager", hubv1.NotificationFilter{MinSeverity: hubv1.SeverityCritical, Kinds: []string{"MemberCluster"}})
	breakMember(t, frankfurt, "blackhole")
	e := notified(t, got)
	if e.Type != "dev.hanse.ClusterUnreachable" || e.Severity != "Critical" || e.Data.Regarding.Kind != "MemberCluster" || e.Data.Regarding.Name != frankfurt {
		t.Errorf("got %+v", e)
	}
	eventually(t, normal, func() error {
		var events eventsv1.EventList
		if err := suite.Hub.List(ctx, &events, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return err
		}
		for _, o := range events.Items {
			if o.Reason == e.Data.Reason && o.Regarding.Name == frankfurt && o.Note == e.Data.Message {
				return nil
			}
		}
		return fmt.Errorf("no Event says %q", e.Data.Message)
	})
	mendMember(t, frankfurt)
	if more := len(got); more > 0 {
		t.Errorf("%d more notifications came, such as %+v", more, <-got)
	}
}
