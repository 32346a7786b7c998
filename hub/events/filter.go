package events

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const sinkKind = "NotificationSink"

var urgency = map[hubv1.NotificationSeverity]int{hubv1.SeverityNormal: 0, hubv1.SeverityWarning: 1, hubv1.SeverityCritical: 2}

// selects reports whether the filter of a sink selects a notice, which is an event of the hub. A notice about the sink
// itself is always selected. A new sink therefore gets a first message, which shows whether the receiver answers.
func selects(sink *hubv1.NotificationSink, n notice) bool {
	if kindOf(n.regarding) == sinkKind+"."+hubv1.GroupVersion.Group && n.regarding.Name == sink.Name {
		return true
	}
	f := sink.Spec.Filter
	return urgency[n.severity()] >= urgency[f.MinSeverity] &&
		(len(f.Kinds) == 0 || slices.Contains(f.Kinds, n.regarding.Kind) || slices.Contains(f.Kinds, kindOf(n.regarding))) &&
		(len(f.Placements) == 0 || isOne(f.Placements, &n.regarding) || isOne(f.Placements, n.related))
}

// isOne reports whether a reference names one of the placements.
func isOne(placements []hubv1.PlacementName, r *corev1.ObjectReference) bool {
	if r == nil {
		return false
	}
	if gv, err := schema.ParseGroupVersion(r.APIVersion); err != nil || gv.Group != hubv1.GroupVersion.Group || r.Kind != "Placement" && r.Kind != "ClusterPlacement" {
		return false
	}
	return slices.Contains(placements, hubv1.PlacementName{Namespace: r.Namespace, Name: r.Name})
}
