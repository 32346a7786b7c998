package dispatch

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/tracing"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/rollup"
)

// times has the times of the steps of one run. A time is zero while tracing is off, and for a step that the run has not
// reached.
type times struct {
	began, renderBegan, rendered, callBegan, answered time.Time
}

// now returns the current time while tracing is on. While tracing is off, it returns the zero time.
func (r *run) now() (t time.Time) {
	if r.queue.opts.Tracer.Enabled() {
		t = r.queue.opts.Clock.Now()
	}
	return t
}

// timed makes a call to the member, and records when it began and ended. A later call in the same run replaces these
// times.
func (r *run) timed(call func() member.Outcome) member.Outcome {
	r.times.callBegan = r.now()
	defer func() { r.times.answered = r.now() }()
	return call()
}

// change returns the change of the hub object that this run brings to the member. While tracing is off, it returns an
// empty change.
func (r *run) change() tracing.Change {
	t := r.queue.opts.Tracer
	if !t.Enabled() {
		return tracing.Change{}
	}
	template, _ := r.queue.opts.Templates.Get(r.in.object.ObjectIdentity)
	return t.TargetChange(r.in.object.ObjectIdentity, r.binding.BindingSpec().ObjectRef.UID, r.target, template)
}

// logWrite logs that the run has written or withdrawn the copy.
func (r *run) logWrite(ctx context.Context, o member.Outcome) {
	message := "Wrote a copy"
	if r.target.State == hubv1.TargetAbsent {
		message = "Withdrew a copy"
	}
	r.change().Log(ctrl.LoggerFrom(ctx)).Info(message, "object", r.in.object.ObjectIdentity.String(), "reason", o.Reason, "digest", o.Digest)
}

// trace makes the spans of a run that has changed the copy. A run that waits or fails gets spans only if the previous
// run of this binding did not wait or fail for the same reason.
func (r *run) trace(o member.Outcome) {
	if r.held || !r.queue.opts.Tracer.Enabled() {
		return
	}
	stuck := !o.Wrote && (o.Applied == metav1.ConditionUnknown || rollup.Failed(o.Applied, o.Reason))
	if !stuck {
		r.queue.copies.endFailure(r.key)
	}
	if !o.Wrote && !stuck {
		return
	}
	failed := stuck && !r.times.answered.IsZero() && !rollup.Waits(o.Reason) // a copy that only waits has not failed
	change := r.change()
	if !change.Traced() || stuck && !r.queue.copies.isNewFailure(r.key, failure{change.ID(), o.Reason}) {
		return
	}
	var parts []tracing.Step
	if !r.times.rendered.IsZero() {
		parts = append(parts, tracing.Step{Name: tracing.SpanRender, Began: r.times.renderBegan, Ended: r.times.rendered, Cluster: r.target.Name})
	}
	if !r.times.answered.IsZero() {
		parts = append(parts, tracing.Step{
			Name: tracing.SpanWrite, Began: r.times.callBegan, Ended: r.times.answered, Cluster: r.target.Name, Reason: o.Reason, Failed: failed,
		})
	}
	change.Record(tracing.Step{
		Name: tracing.SpanDispatch, Began: r.times.began, Ended: r.now(), Cluster: r.target.Name, Reason: o.Reason, Failed: failed, Parts: parts,
	})
}

// failure is the reason why a change is not on the member yet.
type failure struct {
	change tracing.ID
	reason string
}

// isNewFailure records the failure of a run. It returns true if the last run of the binding did not fail for the same
// reason. A retry that fails for the same reason gets no spans.
func (c *copies) isNewFailure(key types.NamespacedName, now failure) (isNew bool) {
	c.update(key, func(x extra) extra { isNew, x.failure = x.failure != now, now; return x })
	return isNew
}

// endFailure records that the last run of a binding has not failed.
func (c *copies) endFailure(key types.NamespacedName) {
	c.update(key, func(x extra) extra { x.failure = failure{}; return x })
}
