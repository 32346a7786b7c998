package events

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/events/format"
)

func chat(uid string) *hubv1.NotificationSink {
	return &hubv1.NotificationSink{ObjectMeta: metav1.ObjectMeta{Name: uid, UID: "u"}, Spec: hubv1.NotificationSinkSpec{Format: hubv1.FormatSlack}}
}

// A wrong region in a placement causes several events within seconds: of each object, and of the placement.
func TestTheEventsOfOneTypoAreOneMessage(t *testing.T) {
	begin := time.Unix(1000, 0)
	at := func(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }
	g := groups{limits: standard}
	sink := chat("chat")
	add := func(n format.Notice, seconds float64) {
		g.add(sink, format.Message{Hub: "hub-1", Notices: []format.Notice{n}}, at(seconds))
	}
	for i, reason := range []string{hubv1.ReasonNoClusterSelected, hubv1.ReasonNoClusterSelected, hubv1.ReasonRemovalHeld, "NotScheduled"} {
		n := warning(reason)
		n.ID, n.Related = fmt.Sprint(i), &placement
		if i > 1 {
			n.Regarding, n.Related = placement, nil
		}
		add(n, float64(i))
	}
	other := warning("ApplyFailed")
	other.Regarding.Name = "of no placement"
	add(other, 1)
	if got := g.due(at(3.9)); len(got) != 0 {
		t.Fatalf("%d groups are complete too early", len(got))
	}
	first := g.due(at(4))
	if len(first) != 1 || first[0].message.Notices[0].Regarding.Name != "of no placement" {
		t.Fatalf("the first complete groups are %+v", first)
	}
	second := g.due(at(6))
	if len(second) != 1 || len(second[0].message.Notices) != 3 { // the same reason of the same object counts once
		t.Fatalf("the typo has the groups %+v", second)
	}
	if newest := second[0].message.Notices[0]; newest.ID != "1" {
		t.Errorf("the older notice %s is kept", newest.ID)
	}
	if len(g.open) != 0 || len(g.byKey) != 0 {
		t.Errorf("%d groups are left", len(g.open))
	}
}

func TestAGroupIsCompleteAtTheLatestAfterItsMaximum(t *testing.T) {
	begin := time.Unix(1000, 0)
	g := groups{limits: standard}
	for i := range 100 {
		n := warning("ApplyFailed")
		n.Related, n.Regarding.Name = &placement, fmt.Sprint(i)
		g.add(chat("chat"), format.Message{Notices: []format.Notice{n}}, begin.Add(time.Duration(i)*100*time.Millisecond))
	}
	got := g.due(begin.Add(standard.groupMax))
	if len(got) != 1 || len(got[0].message.Notices) != maxGrouped || got[0].message.Left != 50 {
		t.Fatalf("got %d groups", len(got))
	}
	m, err := encode(hubv1.FormatSlack, got[0].message)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(m.body) || m.format != hubv1.FormatSlack {
		t.Errorf("the message is %s", m.body)
	}
}

func TestSinksDoNotShareAGroup(t *testing.T) {
	a, b := chat("a"), chat("b")
	a.UID, b.UID = "a", "b"
	g := groups{limits: standard}
	for _, sink := range []*hubv1.NotificationSink{a, b} {
		g.add(sink, format.Message{Notices: []format.Notice{warning("ApplyFailed")}}, time.Unix(1000, 0))
	}
	if got := g.due(time.Unix(2000, 0)); len(got) != 2 {
		t.Errorf("there are %d groups, want 2", len(got))
	}
}

func TestAPagerGetsNoRequestForAnEventWithoutIncident(t *testing.T) {
	n := warning("DriftCorrected")
	n.Type = corev1.EventTypeNormal
	if m, err := encode(hubv1.FormatPagerDuty, format.Message{Notices: []format.Notice{n}}); m != nil || err != nil {
		t.Errorf("got %v (%v)", m, err)
	}
}
