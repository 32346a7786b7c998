package report

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/rollup"
)

// unshown is the oldest change of an object or its decision that the status does not show yet. A metric uses it.
type unshown struct {
	content uint64    // of the hub object, as last seen; 0 if not known
	since   time.Time // when the hub saw the change; zero if the status shows all changes
}

// saw records that the decision has changed now.
func (c *unshown) saw(now time.Time) {
	if c.since.IsZero() {
		c.since = now
	}
}

// sawContent records the content of the hub object. The first content after a start is not a change.
func (c *unshown) sawContent(content uint64, now time.Time) {
	if c.content != 0 && content != 0 && c.content != content {
		c.saw(now)
	}
	c.content = content
}

// shown measures the time from a change until the status shows that every copy has the change. A rollout takes as long
// as its waves, and a held copy as long as its hold, so their changes are not measured. The caller holds the entry's
// lock.
func (r *run) shown(e *entry) {
	if e.unshown.content == 0 {
		e.unshown.content = r.content
	}
	if e.unshown.since.IsZero() {
		return
	}
	spec := r.binding.BindingSpec()
	if !r.leads || r.ends() || spec.Rollout != nil || slices.ContainsFunc(r.after.Clusters, func(row hubv1.ClusterRow) bool { return rollup.Waits(row.Reason) }) {
		e.unshown.since = time.Time{}
		return
	}
	c := meta.FindStatusCondition(r.after.Conditions, hubv1.ConditionApplied)
	if c == nil || c.Reason != hubv1.ReasonAppliedEverywhere || e.generation != r.binding.GetGeneration() || e.unshown.content != r.content || r.changed() {
		return // another run will follow
	}
	took := r.reporter.opts.Clock.Since(e.unshown.since)
	statusSeconds.WithLabelValues(e.kind).Observe(took.Seconds())
	if ref := spec.PlacementRef; ref != nil {
		r.reporter.opts.Converged(types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, took)
	}
	e.unshown.since = time.Time{}
}
