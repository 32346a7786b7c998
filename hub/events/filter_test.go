package events

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/events/format"
)

var (
	widget    = corev1.ObjectReference{APIVersion: "example.com/v1", Kind: "Widget", Namespace: "shop", Name: "web", UID: "u1"}
	cluster   = corev1.ObjectReference{APIVersion: "hanse.dev/v1alpha1", Kind: "MemberCluster", Name: "eu-fra-1"}
	placement = corev1.ObjectReference{APIVersion: "hanse.dev/v1alpha1", Kind: "Placement", Namespace: "shop", Name: "widgets", UID: "u2"}
)

func warning(reason string) format.Notice {
	return format.Notice{
		ID: "5d6f", At: time.Date(2026, 11, 27, 3, 4, 5, 0, time.UTC), Regarding: widget, Type: corev1.EventTypeWarning, Reason: reason, Action: "Apply",
		Detail: "failed on 1 cluster",
	}
}

func TestSelects(t *testing.T) {
	type filter = hubv1.NotificationFilter
	fails, recovers := warning("ApplyFailed"), warning("Applied")
	recovers.Type = corev1.EventTypeNormal
	of := func(n format.Notice, regarding corev1.ObjectReference, related *corev1.ObjectReference) format.Notice {
		n.Regarding, n.Related = regarding, related
		return n
	}
	clusterPlacement := corev1.ObjectReference{APIVersion: "hanse.dev/v1alpha1", Kind: "ClusterPlacement", Name: "widgets"}
	ofOthers := corev1.ObjectReference{APIVersion: "policy.example.com/v1", Kind: "Placement", Namespace: "shop", Name: "widgets"}
	self := corev1.ObjectReference{APIVersion: "hanse.dev/v1alpha1", Kind: "NotificationSink", Name: "pager"}
	widgets := []hubv1.PlacementName{{Namespace: "shop", Name: "widgets"}}
	tests := map[string]struct {
		filter
		format.Notice
		want bool
	}{
		"no filter selects everything":                      {filter{}, recovers, true},
		"Warning leaves out Normal":                         {filter{MinSeverity: hubv1.SeverityWarning}, recovers, false},
		"Warning selects Warning":                           {filter{MinSeverity: hubv1.SeverityWarning}, fails, true},
		"Warning selects Critical":                          {filter{MinSeverity: hubv1.SeverityWarning}, warning(hubv1.ReasonHubIsOlder), true},
		"Critical leaves out Warning":                       {filter{MinSeverity: hubv1.SeverityCritical}, fails, false},
		"a kind without its group":                          {filter{Kinds: []string{"Widget"}}, fails, true},
		"a kind with its group":                             {filter{Kinds: []string{"MemberCluster", "Widget.example.com"}}, fails, true},
		"a kind of another group":                           {filter{Kinds: []string{"Widget.example.org"}}, fails, false},
		"another kind":                                      {filter{Kinds: []string{"Gadget"}}, fails, false},
		"the placement itself":                              {filter{Placements: widgets}, of(fails, placement, nil), true},
		"an object that follows the placement":              {filter{Placements: widgets}, of(fails, widget, &placement), true},
		"an object that follows a ClusterPlacement":         {filter{Placements: widgets}, of(fails, widget, &clusterPlacement), false},
		"a name without a namespace is a ClusterPlacement":  {filter{Placements: []hubv1.PlacementName{{Name: "widgets"}}}, of(fails, widget, &clusterPlacement), true},
		"an object that follows no placement":               {filter{Placements: widgets}, fails, false},
		"a placement of another group":                      {filter{Placements: widgets}, of(fails, ofOthers, nil), false},
		"both must hold":                                    {filter{Placements: widgets, Kinds: []string{"Gadget"}}, of(fails, widget, &placement), false},
		"a notice about the sink, whatever the filter":      {filter{MinSeverity: hubv1.SeverityCritical, Kinds: []string{"Gadget"}}, of(recovers, self, nil), true},
		"a notice about another sink is as every other one": {filter{Kinds: []string{"Gadget"}}, of(recovers, corev1.ObjectReference{APIVersion: self.APIVersion, Kind: self.Kind, Name: "chat"}, nil), false},
	}
	for name, tc := range tests {
		sink := &hubv1.NotificationSink{ObjectMeta: metav1.ObjectMeta{Name: "pager"}, Spec: hubv1.NotificationSinkSpec{Filter: tc.filter}}
		if got := selects(sink, tc.Notice); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestAPagerLearnsOfTheEndOfAnIncidentWhateverItsFilterOfKinds(t *testing.T) {
	end := warning("Applied")
	end.Type, end.Regarding = corev1.EventTypeNormal, placement
	other := placement
	other.Name = "others"
	filter := hubv1.NotificationFilter{
		MinSeverity: hubv1.SeverityCritical, Kinds: []string{"Widget"}, Placements: []hubv1.PlacementName{{Namespace: "shop", Name: "widgets"}},
	}
	for name, tc := range map[string]struct {
		as    hubv1.NotificationFormat
		about corev1.ObjectReference
		want  bool
	}{
		"the end of an incident":                {hubv1.FormatPagerDuty, placement, true},
		"the end of one of another placement":   {hubv1.FormatPagerDuty, other, false},
		"a chat gets only what its filter says": {hubv1.FormatSlack, placement, false},
	} {
		end.Regarding = tc.about
		sink := &hubv1.NotificationSink{ObjectMeta: metav1.ObjectMeta{Name: "pager"}, Spec: hubv1.NotificationSinkSpec{Format: tc.as, Filter: filter}}
		if got := selects(sink, end); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
