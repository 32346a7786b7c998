package dispatch

import (
	"context"
	"sync"
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
	r.callBegan = r.now()
	defer func() { r.answered = r.now() }()
	return call()
}

// change returns the change of the hub object that this run brings to the member. While tracing is off, it returns an
// empty change.
func (r *run) change() tracing.Change {
	t := r.queue.opts.Tracer
	if !t.Enabled() {
		return tracing.Change{}
	}
	template, _ := r.queue.opts.Templates.Get(r.object.ObjectIdentity)
	return t.TargetChange(r.object.ObjectIdentity, r.binding.BindingSpec().ObjectRef.UID, r.target, template)
}

// logWrite logs that the run has written or withdrawn the copy.
func (r *run) logWrite(ctx context.Context, o member.Outcome) {
	message := "Wrote a copy"
	if r.target.State == hubv1.TargetAbsent {
		message = "Withdrew a copy"
	}
	r.change().Log(ctrl.LoggerFrom(ctx)).Info(message, "object", r.object.ObjectIdentity.String(), "reason", o.Reason, "digest", o.Digest)
}

// trace makes the spans of a run that has changed the copy. A run that waits or fails gets spans only if the previous
// run of this binding did not wait or fail for the same reason.
func (r *run) trace(o member.Outcome) {
	if r.held || !r.queue.opts.Tracer.Enabled() {
		return
	}
	stuck := !o.Wrote && (o.Applied == metav1.ConditionUnknown || rollup.Failed(o.Applied, o.Reason))
	if !stuck {
		r.queue.failures.forget(r.key)
	}
	if !o.Wrote && !stuck {
		return
	}
	failed := stuck && !r.answered.IsZero() && !rollup.Waits(o.Reason) // a copy that only waits has not failed
	change := r.change()
	if !change.Traced() || stuck && !r.queue.failures.isNew(r.key, failure{change.ID(), o.Reason}) {
		return
	}
	var parts []tracing.Step
	if !r.rendered.IsZero() {
		parts = append(parts, tracing.Step{Name: tracing.SpanRender, Began: r.renderBegan, Ended: r.rendered, Cluster: r.target.Name})
	}
	if !r.answered.IsZero() {
		parts = append(parts, tracing.Step{
			Name: tracing.SpanWrite, Began: r.callBegan, Ended: r.answered, Cluster: r.target.Name, Reason: o.Reason, Failed: failed,
		})
	}
	change.Record(tracing.Step{
		Name: tracing.SpanDispatch, Began: r.began, Ended: r.now(), Cluster: r.target.Name, Reason: o.Reason, Failed: failed, Parts: parts,
	})
}

// failure is the reason why a change is not on the member yet.
type failure struct {
	change tracing.ID
	reason string
}

// failures has the failure of the last run of each binding. A retry that fails for the same reason gets no spans.
type failures struct {
	mu   sync.Mutex
	last map[types.NamespacedName]failure
}

// isNew records a failure. It returns true if the last run did not fail for the same reason.
func (f *failures) isNew(key types.NamespacedName, now failure) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last[key] == now {
		return false
	}
	if f.last == nil {
		f.last = map[types.NamespacedName]failure{}
	}
	f.last[key] = now
	return true
}

func (f *failures) forget(key types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.last, key)
}
