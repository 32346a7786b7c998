package events

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/events/format"
)

// selects reports whether the filter of a sink selects a notice, which is an event of the hub. A notice about the sink
// itself is always selected. A new sink therefore gets a first message, which shows whether the receiver answers. The
// end of an incident of PagerDuty is only filtered by its placement, because the incident would stay open without it.
func selects(sink *hubv1.NotificationSink, n format.Notice) bool {
	if n.IsAboutSink(sink.Name) {
		return true
	}
	f := sink.Spec.Filter
	if len(f.Placements) > 0 && !isOne(f.Placements, &n.Regarding) && !isOne(f.Placements, n.Related) {
		return false
	}
	if sink.Spec.Format == hubv1.FormatPagerDuty && n.EndsIncident() {
		return true
	}
	return format.AtLeast(n.Severity(), f.MinSeverity) &&
		(len(f.Kinds) == 0 || slices.Contains(f.Kinds, n.Regarding.Kind) || slices.Contains(f.Kinds, n.Kind()))
}

// isOne reports whether a reference names one of the placements. The reference may be nil.
func isOne(placements []hubv1.PlacementName, r *corev1.ObjectReference) bool {
	return format.IsPlacement(r) && slices.Contains(placements, hubv1.PlacementName{Namespace: r.Namespace, Name: r.Name})
}
