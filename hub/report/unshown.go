package report

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/rollup"
)

// unshown has the time of the first change that the status does not show yet. This is a change of the hub object or of
// the decision on it. A metric uses the time.
type unshown struct {
	content uint64    // content number of the hub object; 0 if not known
	since   time.Time // when the hub saw the change; zero if the status shows all changes
}

// saw records the time of a changed decision. If an earlier change is not shown yet, the time of the earlier change
// stays.
func (c *unshown) saw(now time.Time) {
	if c.since.IsZero() {
		c.since = now
	}
}

// sawContent records the content number of the hub object, which changes with the object. If the number has changed,
// sawContent also records the time. The first number after a start is not a change.
func (c *unshown) sawContent(content uint64, now time.Time) {
	if c.content != 0 && content != 0 && c.content != content {
		c.saw(now)
	}
	c.content = content
}

// shown records in a metric how long it took from a change until the status says that every copy has the change.
// Changes of a rollout are not measured, and neither are changes for which a copy waits. Waves and users determine how
// long these take. The caller holds r.reporter.mu.
func (r *run) shown(e *entry) {
	if e.unshown.content == 0 {
		e.unshown.content = r.in.content
	}
	if e.unshown.since.IsZero() {
		return
	}
	spec := r.binding.BindingSpec()
	if !r.part.leads || r.ends() || spec.Rollout != nil || slices.ContainsFunc(r.out.after.Clusters, func(row hubv1.ClusterRow) bool { return rollup.Waits(row.Reason) }) {
		e.unshown.since = time.Time{}
		return
	}
	c := meta.FindStatusCondition(r.out.after.Conditions, hubv1.ConditionApplied)
	if c == nil || c.Reason != hubv1.ReasonAppliedEverywhere || e.binding.generation != r.binding.GetGeneration() || e.unshown.content != r.in.content || r.changed() {
		return // not shown yet: a later run measures the change
	}
	took := r.reporter.opts.Clock.Since(e.unshown.since)
	statusSeconds.WithLabelValues(e.binding.kind.Kind).Observe(took.Seconds())
	if ref := spec.PlacementRef; ref != nil {
		r.reporter.opts.Converged(types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, took)
	}
	e.unshown.since = time.Time{}
}
