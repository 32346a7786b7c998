package report

import (
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/tracing"
)

// trace makes a span for a written status, if one of the rows shows that a change has made progress. The caller must
// not hold r.reporter.mu, which all bindings share.
func (r *run) trace(before *hubv1.BindingStatus) {
	o := r.reporter.opts
	if !o.Tracer.Enabled() {
		return
	}
	i := slices.IndexFunc(r.out.after.Clusters, func(row hubv1.ClusterRow) bool { return progressed(before.Row(row.Name), row) })
	if i < 0 {
		return
	}
	spec := r.binding.BindingSpec()
	target := spec.Target(r.out.after.Clusters[i].Name)
	if target == nil {
		return
	}
	change := o.Tracer.TargetChange(r.id, spec.ObjectRef.UID, target, r.in.template)
	if !change.Traced() {
		return
	}
	reason := ""
	if c := meta.FindStatusCondition(r.out.after.Conditions, hubv1.ConditionApplied); c != nil {
		reason = c.Reason
	}
	change.Record(tracing.Step{
		Name: tracing.SpanReport, Began: r.opened, Ended: o.Clock.Now(), Reason: reason, Details: []attribute.KeyValue{
			attribute.Int("hanse.clusters.desired", int(r.out.after.Summary.Desired)),
			attribute.Int("hanse.clusters.applied", int(r.out.after.Summary.Applied)),
			attribute.Int("hanse.clusters.healthy", int(r.out.after.Summary.Healthy)),
			attribute.Bool("hanse.status.written", meta.IsStatusConditionTrue(r.out.after.Conditions, hubv1.ConditionStatusWritten)),
		},
	})
}

// progressed reports whether a row shows that a change has made progress on its cluster. It returns false if the row
// changed because its cluster was unreachable. It also returns false if a healthy copy became unhealthy later.
func progressed(was *hubv1.ClusterRow, is hubv1.ClusterRow) bool {
	switch {
	case is.Applied == metav1.ConditionUnknown:
		return false
	case was == nil || was.Generation != is.Generation || was.Digest != is.Digest || was.UID != is.UID:
		return true
	case is.Applied == metav1.ConditionFalse:
		return was.Applied != is.Applied || was.Reason != is.Reason
	case was.Applied == metav1.ConditionUnknown:
		return false
	}
	return was.Applied != is.Applied || is.Health != was.Health && was.Health != hubv1.HealthHealthy
}
