package format

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

var (
	widget    = corev1.ObjectReference{APIVersion: "example.com/v1", Kind: "Widget", Namespace: "shop", Name: "web", UID: "u1"}
	cluster   = corev1.ObjectReference{APIVersion: "hanse.dev/v1alpha1", Kind: "MemberCluster", Name: "eu-fra-1"}
	placement = corev1.ObjectReference{APIVersion: "hanse.dev/v1alpha1", Kind: "Placement", Namespace: "shop", Name: "widgets", UID: "u2"}
)

func warning(reason string) Notice {
	return Notice{
		ID: "5d6f", At: time.Date(2026, 11, 27, 3, 4, 5, 0, time.UTC), Regarding: widget, Type: corev1.EventTypeWarning, Reason: reason, Action: "Apply",
		Detail: "failed on 1 cluster",
	}
}

func TestANoticeIsACloudEvent(t *testing.T) {
	n := warning("ApplyFailed")
	n.Related, n.Detail = &placement, "eu-fra-1:\n\x1b[31m<script>\u202egnp\xff"
	body, err := n.CloudEvent("hub-1")
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"specversion": "1.0", "id": "5d6f", "source": "/hanse.dev/hubs/hub-1", "type": "dev.hanse.ApplyFailed",
		"subject": "Widget.example.com/shop/web", "time": "2026-11-27T03:04:05Z", "datacontenttype": "application/json", "severity": "Warning",
		"data": map[string]any{
			"type": "Warning", "reason": "ApplyFailed", "action": "Apply", "message": "eu-fra-1:  [31m<script>\ufffdgnp\ufffd",
			"regarding": map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "namespace": "shop", "name": "web", "uid": "u1"},
			"related":   map[string]any{"apiVersion": "hanse.dev/v1alpha1", "kind": "Placement", "namespace": "shop", "name": "widgets", "uid": "u2"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheSubjectOfAnObjectWithoutNamespace(t *testing.T) {
	if got := subject(cluster); got != "MemberCluster.hanse.dev/eu-fra-1" {
		t.Errorf("got %s", got)
	}
	if got := subject(corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a\nb"}); got != "ConfigMap/shop/a b" {
		t.Errorf("got %s", got)
	}
}

func TestSeverity(t *testing.T) {
	normal := warning(hubv1.ReasonTooManyAway)
	normal.Type = corev1.EventTypeNormal
	for name, tc := range map[string]struct {
		Notice
		want hubv1.NotificationSeverity
	}{
		"a Normal event, whatever its reason": {normal, hubv1.SeverityNormal},
		"a failure":                           {warning("ApplyFailed"), hubv1.SeverityWarning},
		"a cluster that is away":              {warning(hubv1.ReasonUnreachable), hubv1.SeverityCritical},
		"removals that wait for a user":       {warning(hubv1.ReasonRemovalHeld), hubv1.SeverityCritical},
	} {
		if got := tc.Severity(); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}

func FuzzANotificationIsBoundedAndHasNoControlCharacters(f *testing.F) {
	f.Add("failed\r\n\x00", "web")
	f.Add(strings.Repeat("世", 5000), strings.Repeat("\u200b", 300))
	f.Fuzz(func(t *testing.T, text, name string) {
		n := warning("ApplyFailed")
		n.Detail, n.Regarding.Name = text, name
		body, err := n.CloudEvent("hub-1")
		if err != nil {
			t.Fatal(err)
		}
		var got cloudEvent
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		if count := utf8.RuneCountInString(got.Data.Message); count > MaxMessage {
			t.Errorf("the message has %d characters", count)
		}
		for _, s := range []string{got.Data.Message, got.Subject, got.Data.Regarding.Name} {
			if i := strings.IndexFunc(s, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }); i >= 0 {
				t.Errorf("%q has a control character", s)
			}
		}
	})
}
