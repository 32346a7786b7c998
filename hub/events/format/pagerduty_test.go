package format

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func normal(reason string) Notice {
	n := warning(reason)
	n.Type = corev1.EventTypeNormal
	return n
}

func about(n Notice, of corev1.ObjectReference, related *corev1.ObjectReference) Notice {
	n.Regarding, n.Related = of, related
	return n
}

func checkPagerDuty(t *testing.T, n Notice) {
	t.Helper()
	body, err := n.PagerDuty("hub-1")
	if err != nil {
		t.Fatal(err)
	}
	var got pagerDutyEvent
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.DedupKey) > 255 || utf8.RuneCountInString(got.Payload.Summary) > 1024 {
		t.Errorf("the event is too long: %s", body)
	}
}

func TestAnEventForPagerDuty(t *testing.T) {
	n := warning("ApplyFailed")
	n.Related, n.Detail = &placement, "failed on 1 cluster: eu-fra-1"
	body, err := n.PagerDuty("hub-1")
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(WithRoutingKey(body, "R0123456789"), &got); err != nil {
		t.Fatal(err)
	}
	if key, ok := got["dedup_key"].(string); !ok || len(key) != 64 {
		t.Errorf("the dedup key is %v", got["dedup_key"])
	}
	delete(got, "dedup_key")
	want := map[string]any{
		"routing_key": "R0123456789", "event_action": "trigger", "client": "Hanse",
		"payload": map[string]any{
			"summary": "ApplyFailed: Widget shop/web: failed on 1 cluster: eu-fra-1", "source": "Widget.example.com/shop/web", "severity": "warning",
			"timestamp": "2026-11-27T03:04:05Z", "component": "Widget.example.com", "group": "Placement shop/widgets", "class": "ApplyFailed",
			"custom_details": map[string]any{
				"message": "failed on 1 cluster: eu-fra-1", "object": "Widget shop/web", "run": "hansectl status Widget.example.com/web -n shop", "hub": "hub-1",
			},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Each row has notices that begin an incident, and the notice that ends it.
func TestAnIncidentEndsWithItsCounterpart(t *testing.T) {
	for name, tc := range map[string]struct {
		begin []Notice
		end   Notice
	}{
		"a placement is valid again": {[]Notice{about(warning("NotAccepted"), placement, nil)}, about(normal("Accepted"), placement, nil)},
		"all objects have clusters": {
			[]Notice{about(warning("NotScheduled"), placement, nil), about(warning(hubv1.ReasonNoClusterSelected), widget, &placement)},
			about(normal("Scheduled"), placement, nil),
		},
		"every object is applied": {
			[]Notice{about(warning("ApplyFailed"), widget, &placement), about(warning("ApplyFailed"), placement, nil), about(warning(hubv1.ReasonHubIsOlder), widget, &placement)},
			about(normal("Applied"), placement, nil),
		},
		"an object that follows no placement is applied": {[]Notice{about(warning("ApplyFailed"), widget, nil)}, about(normal("Applied"), widget, nil)},
		"all copies are healthy":                         {[]Notice{about(warning("Degraded"), widget, &placement)}, about(normal("Healthy"), placement, nil)},
		"clusters answer again":                          {[]Notice{about(warning(hubv1.EventClustersAway), placement, nil)}, about(normal("ClustersBack"), placement, nil)},
		"a removal is confirmed":                         {[]Notice{about(warning(hubv1.ReasonRemovalHeld), placement, nil)}, about(normal(hubv1.ReasonRemovalConfirmed), placement, nil)},
		"a removal is cancelled":                         {[]Notice{about(warning(hubv1.ReasonRemovalHeld), cluster, nil)}, about(normal(hubv1.ReasonRemovalCancelled), cluster, nil)},
		"a wave is approved":                             {[]Notice{about(warning(hubv1.ReasonWaitingForApproval), widget, &placement)}, about(normal(hubv1.ReasonRolloutApproved), placement, nil)},
		"a rollout is complete":                          {[]Notice{about(warning(hubv1.ReasonRolloutFailed), placement, nil), about(warning(hubv1.ReasonRolledBack), placement, nil)}, about(normal(hubv1.ReasonRolloutComplete), placement, nil)},
		"a cluster is back":                              {[]Notice{about(warning(hubv1.ReasonUnreachable), cluster, nil), about(warning(hubv1.ReasonUnauthorized), cluster, nil)}, about(normal(hubv1.ReasonConnected), cluster, nil)},
	} {
		does, end := tc.end.incident("hub-1")
		if does != ends || !tc.end.EndsIncident() {
			t.Errorf("%s: the last notice ends no incident", name)
		}
		for _, n := range tc.begin {
			if does, key := n.incident("hub-1"); does != begins || key != end {
				t.Errorf("%s: %s of %s does %d, with the same key: %t", name, n.Reason, n.Subject(), does, key == end)
			}
			if _, key := n.incident("hub-2"); key == end {
				t.Errorf("%s: two hubs share an incident", name)
			}
		}
	}
}

func TestANoticeThatEndsNoIncident(t *testing.T) {
	other := placement
	other.Name = "others"
	_, begun := about(warning("ApplyFailed"), placement, nil).incident("hub-1")
	if _, key := about(normal("Applied"), other, nil).incident("hub-1"); key == begun {
		t.Error("another placement ends the incident")
	}
	for name, n := range map[string]Notice{
		"one object of a placement": about(normal("Applied"), widget, &placement),
		"an event without a begin":  normal("DriftCorrected"),
	} {
		body, err := n.PagerDuty("hub-1")
		if err != nil || body != nil || n.EndsIncident() {
			t.Errorf("%s: got %s (%v)", name, body, err)
		}
	}
}

func TestAChangedSinkOpensNoIncidentAndATestDoes(t *testing.T) {
	sink := corev1.ObjectReference{APIVersion: "hanse.dev/v1alpha1", Kind: "NotificationSink", Name: "pager"}
	for reason, want := range map[string]string{SinkChanged: "resolve", SinkTest: "trigger"} {
		body, err := about(normal(reason), sink, nil).PagerDuty("hub-1")
		if err != nil {
			t.Fatal(err)
		}
		var got pagerDutyEvent
		if err := json.Unmarshal(body, &got); err != nil || got.Action != want {
			t.Errorf("%s: got %s (%v), want %s", reason, body, err, want)
		}
	}
}

func TestNoticesOfOneCause(t *testing.T) {
	all := typo()
	other := placement
	other.Name = "others"
	for name, tc := range map[string]struct {
		a, b Notice
		same bool
	}{
		"an object and its placement":                {all[0], all[1], true},
		"a held removal and an unscheduled object":   {all[0], all[2], true},
		"two placements":                             {all[1], about(warning("NotScheduled"), other, nil), false},
		"a failure and its end":                      {all[1], about(normal("Scheduled"), placement, nil), false},
		"two placements on a cluster that is away":   {about(warning(hubv1.EventClustersAway), placement, nil), about(warning(hubv1.EventClustersAway), other, nil), true},
		"two clusters":                               {about(warning(hubv1.ReasonUnreachable), cluster, nil), about(warning(hubv1.ReasonWatchesStalled), cluster, nil), true},
		"two objects that follow no placement":       {about(warning("Degraded"), widget, nil), about(warning("Degraded"), cluster, nil), false},
		"two reasons of an object without placement": {about(warning("Degraded"), widget, nil), about(warning("ApplyFailed"), widget, nil), true},
	} {
		if got := tc.a.Cause() == tc.b.Cause(); got != tc.same {
			t.Errorf("%s: the same cause: %t, want %t", name, got, tc.same)
		}
	}
}
