package report

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/rollup"
)

// run is one reconcile of one binding.
type run struct {
	reporter *Reporter
	class    pace.Class
	opened   time.Time // start of the window that the run writes
	key      types.NamespacedName
	id       hubv1.ObjectIdentity
	binding  hubv1.BindingObject // binding with the server's status; shares data with the cache
	targets  []hubv1.BindingTarget
	now      metav1.Time

	in     gathered
	part   part
	object objectWrite
	out    computed
}

// gathered are the inputs of one reconcile of a binding. The method gather reads them, except for the outcomes.
type gathered struct {
	outcomes map[string]member.Outcome  // a clone of those in the binding's entry, so that no lock is needed
	template *unstructured.Unstructured // nil if the cache does not have the hub object
	content  uint64                     // content number of the template
	hub      hubv1.HubObject
	// aggregation has the rules of the placement for merging statuses.
	aggregation hubv1.StatusAggregation
	facts       map[string]rollup.Fact
	unseen      bool // whether a cluster has reported nothing, or its watch lags behind
	// hubIsTarget is true if the hub's own cluster is one of the binding's targets.
	hubIsTarget bool
}

// part tells for which targets of the binding this replica writes the rows. The method share sets it, see shares.go.
type part struct {
	leads     bool
	elsewhere map[string]bool
	othersDue bool // whether another replica will soon write a row
}

// objectWrite is the write of the hub object's status, see object.go. merged and refusal come from the binding's entry.
// The method end stores them there again.
type objectWrite struct {
	merged     merged
	refusal    refusal
	definition definition    // definition of the hub object's kind
	again      time.Duration // time until the hub object is written, if its kind is slow or was refused; zero: no wait
	forbidden  bool          // whether the hub lacks the right to write the hub object
}

// computed is the new status of the binding. The method report computes it. writeObject and writeBinding write it.
type computed struct {
	rows  []hubv1.ClusterRow // rows before they are shortened to fit into the binding
	after hubv1.BindingStatus
	// again is the time until a new decision is copied into the binding's status. It is zero if no decision waits.
	// waitingSince is the time since which the decision waits.
	again        time.Duration
	waitingSince time.Time
	wrote        bool // whether the status of the hub object or of the binding was written
}

// Reconcile updates the status of one binding and of its hub object.
func (r *Reporter) Reconcile(ctx context.Context, key types.NamespacedName) (reconcile.Result, error) {
	turn, class, left := r.turn(key)
	if turn == nil {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	defer turn.Done()
	run, err := r.begin(ctx, key, class)
	if run == nil || err != nil {
		return reconcile.Result{}, err
	}
	if part, err := run.share(ctx); err != nil || !part {
		return reconcile.Result{}, err
	}
	if err := run.gather(ctx); err != nil {
		return reconcile.Result{}, err
	}
	run.report(ctx)
	if run.unsettled() {
		return reconcile.Result{}, nil
	}
	if err = run.writeObject(ctx); errors.Is(err, errKindIsSlow) {
		if run.waitsForKind() {
			return reconcile.Result{}, nil
		}
		err = nil
	}
	if run.out.wrote && class < pace.Rows && !fails(run.binding.BindingStatus(), &run.out.after) {
		turn.Done()
		rows := r.try(key, pace.Rows)
		if rows == nil {
			run.keepWritten()
			return reconcile.Result{}, nil
		}
		defer rows.Done()
	}
	err = errors.Join(err, run.writeBinding(ctx))
	run.end()
	return reconcile.Result{}, err
}

// turn returns a turn of the pacer to write a binding's status. It also returns the urgency class of the binding's
// changes. The turn is nil if nothing may be written now. If left is positive, the binding must then be queued again
// after this time, because further changes are still collected. If left is zero, the pacer queues the binding as soon
// as it has a turn.
func (r *Reporter) turn(key types.NamespacedName) (turn *pace.Turn, class pace.Class, left time.Duration) {
	class, left = r.pending(key)
	if left > 0 {
		return nil, class, left
	}
	return r.try(key, class), class, 0
}

// pending returns the urgency class of a binding's unwritten changes, and how long further changes are still collected.
func (r *Reporter) pending(key types.NamespacedName) (c pace.Class, left time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[key]; e != nil && e.window.open() {
		return e.window.class, max(0, e.window.due.Sub(r.opts.Clock.Now()))
	}
	return pace.Many, 0
}

// try returns a turn of the pacer. If the turn is nil, the pacer queues the binding as soon as it has a turn.
func (r *Reporter) try(key types.NamespacedName, c pace.Class) *pace.Turn {
	turn := r.opts.Pacer.Try(c, key, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if e := r.entries[key]; e != nil {
			now := r.opts.Clock.Now()
			e.window.wakeAt(now, now, c)
		}
		r.enqueue(key, c, 0)
	})
	if turn == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		if e := r.entries[key]; e != nil {
			now := r.opts.Clock.Now()
			e.window.wakeAt(now, now.Add(pace.AskAgain), c)
			r.enqueue(key, c, pace.AskAgain)
		}
	}
	return turn
}

// begin ends the window, in which changes of the binding were collected, reads the binding, and makes the run. The run
// is nil if nothing needs to be written now.
func (r *Reporter) begin(ctx context.Context, key types.NamespacedName, class pace.Class) (*run, error) {
	opened := r.shut(key)
	binding := hubv1.NewBinding(key)
	if err := r.opts.Client.Get(ctx, key, binding, client.UnsafeDisableDeepCopy); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return nil, nil // the binding's next event calls bindingChanged or bindingGone
		}
		return nil, fmt.Errorf("reading binding %s: %w", key, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entry(key)
	r.adopt(key, e, binding)
	if e.outdated(binding) {
		e.last.behind = true // the next event wakes the binding; the requeue covers a missed event
		r.wake(key, e, whenIdle, pace.Many)
		return nil, nil
	}
	return &run{
		opened: opened, reporter: r, key: key, class: class, id: hubv1.ObjectOf(binding), binding: binding, targets: binding.BindingSpec().Clusters,
		now: metav1.NewTime(r.opts.Clock.Now()), in: gathered{outcomes: maps.Clone(e.results.outcomes)},
		object: objectWrite{merged: e.merged, refusal: e.refusal}, out: computed{waitingSince: e.waitingSince},
	}, nil
}

// shut ends the window of a binding, in which changes are collected. It returns the time at which the window began.
func (r *Reporter) shut(key types.NamespacedName) (opened time.Time) {
	now := r.opts.Clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[key]
	if e == nil {
		return now
	}
	e.results.moved = nil
	if !e.window.open() {
		return now
	}
	opened = e.window.opened
	windowSeconds.Observe(e.window.shut(now).Seconds())
	return opened
}

// report computes the new status from the gathered inputs.
func (r *run) report(ctx context.Context) {
	in := rollup.Input{
		Targets: r.targets, BindingGeneration: r.binding.GetGeneration(), ObjectUID: r.binding.BindingSpec().ObjectRef.UID,
		Facts: r.in.facts, Elsewhere: r.part.elsewhere, Now: r.now, Revisions: r.in.hub.Revisions,
	}
	if rollout := r.binding.BindingSpec().Rollout; rollout != nil {
		in.Newest = rollout.Newest
	}
	if r.in.template != nil && r.in.template.GetUID() == in.ObjectUID {
		in.HubGeneration, in.HubContent = r.in.hub.Generation, r.in.content
		if r.in.hubIsTarget {
			status, _, _ := unstructured.NestedMap(r.in.template.Object, "status")
			settings, conventions := settingsOf(r.binding), r.reporter.opts.Sources.Conventions(ctx, r.in.hub.GVK)
			in.TemplateStatus, in.TemplateHealth = settings.Project(r.id.GroupKind(), status), settings.Assess(r.in.template, conventions).Health
		}
	}
	previous := *r.binding.BindingStatus()
	r.out.after, r.out.rows = rollup.Status(previous, in)
	r.decision()
}

// unsettled reports whether the write should wait, because an expected result would soon change the status again. In
// this case, unsettled opens the window of the binding again, so that further changes are collected. The wait is
// limited, and ends when the expected result arrives.
func (r *run) unsettled() bool {
	if fails(r.binding.BindingStatus(), &r.out.after) || !r.part.othersDue && (!r.in.unseen || !r.changed()) && !r.ending() {
		return false
	}
	e, unlock := r.entry()
	defer unlock()
	if e.settleUntil.IsZero() {
		e.settleUntil = r.opened.Add(r.patience())
	}
	left := e.settleUntil.Sub(r.now.Time)
	if left <= 0 {
		return false
	}
	r.reporter.wakeAfter(r.key, e, left, r.class)
	return true
}

// waitsForKind reports whether the write should wait, because the hub object, whose kind is slow to write, can be
// written soon. The object's status and the rows are then written together. If a row has a new problem, waitsForKind
// returns false.
func (r *run) waitsForKind() bool {
	if r.object.again > maxWindow || fails(r.binding.BindingStatus(), &r.out.after) {
		return false
	}
	e, unlock := r.entry()
	defer unlock()
	r.reporter.wakeAfter(r.key, e, r.object.again, r.class)
	return true
}

// changed reports whether the new status differs from the status that the binding has.
func (r *run) changed() bool {
	before, after := *r.binding.BindingStatus(), r.out.after
	if !slices.EqualFunc(before.Clusters, after.Clusters, sameRow) {
		return true
	}
	before.Clusters, after.Clusters = nil, nil
	return !equality.Semantic.DeepEqual(before, after)
}

// sameRow compares two rows. It does not use reflection, because there are as many rows as copies.
func sameRow(a, b hubv1.ClusterRow) bool {
	if !a.LastTransitionTime.Equal(b.LastTransitionTime) || !a.LastObservedTime.Equal(b.LastObservedTime) ||
		!a.PassingSince.Equal(b.PassingSince) || !sameObserved(a.Observed, b.Observed) {
		return false
	}
	a.LastTransitionTime, a.LastObservedTime, a.PassingSince, a.Observed = nil, nil, nil, nil
	b.LastTransitionTime, b.LastObservedTime, b.PassingSince, b.Observed = nil, nil, nil, nil
	return a == b
}

func sameObserved(a, b *runtime.RawExtension) bool {
	if a == nil || b == nil {
		return a == b
	}
	return bytes.Equal(a.Raw, b.Raw)
}

// fails reports whether a row in after has a problem that the same row in before does not have.
func fails(before, after *hubv1.BindingStatus) bool {
	return slices.ContainsFunc(after.Clusters, func(row hubv1.ClusterRow) bool {
		was := before.Row(row.Name)
		return failing(row) && (was == nil || was.Reason != row.Reason)
	})
}

// writeBinding writes the binding's status if the status has changed.
func (r *run) writeBinding(ctx context.Context) error {
	before := *r.binding.BindingStatus()
	if !r.changed() || !r.mayWrite(&before) {
		return nil
	}
	began := r.reporter.opts.Clock.Now()
	version, err := r.reporter.writer.rows(ctx, r.binding, &r.out.after)
	if err == nil {
		r.reporter.opts.Pacer.Steer(r.reporter.opts.Clock.Since(began))
	}
	written, err := r.keepRows(&before, version, err)
	if written {
		r.trace(&before)
	}
	return err
}

// keepRows stores the result of writing the rows. written is true if the write has succeeded.
func (r *run) keepRows(before *hubv1.BindingStatus, version string, err error) (written bool, _ error) {
	e, unlock := r.entry()
	defer unlock()
	switch {
	case apierrors.IsConflict(err):
		// The scheduler or another replica has changed the binding. The watch event of this change queues the binding again.
		e.last.refused, e.last.behind = r.binding.GetResourceVersion(), true
		r.reporter.wake(r.key, e, result, r.class)
		return false, nil
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("writing the status of binding %s: %w", r.key, err)
	}
	e.last.written, e.last.refused = version, ""
	*r.binding.BindingStatus() = r.out.after
	r.out.wrote = true
	kind, _ := bindingKind(r.key.Namespace)
	pace.Writes.WithLabelValues(kind, writeRows).Inc()
	r.tellPhases(e, before)
	return true, nil
}

// tellPhases sends the events that the new status causes. The caller holds r.reporter.mu.
func (r *run) tellPhases(e *entry, before *hubv1.BindingStatus) {
	for _, ev := range e.troubles.phases(before, &r.out.after, r.binding.BindingSpec()) {
		e.troubles.note(ev)
		r.recordEvent(ev)
	}
}

// end stores the results of the run in the binding's entry, for the next run.
func (r *run) end() {
	e, unlock := r.entry()
	defer unlock()
	if r.reporter.entries[r.key] != e {
		return
	}
	e.merged, e.refusal, e.settleUntil = r.object.merged, r.object.refusal, time.Time{}
	r.shown(e)
	states := count(r.part.own(r.binding.BindingStatus().Clusters), r.binding.BindingSpec().Clusters)
	recount(e.states, states)
	e.states = states
	if r.out.wrote {
		e.window.written(r.now.Time)
	}
	r.waitForGrace(e)
	if r.object.again > 0 {
		r.reporter.wakeAfter(r.key, e, r.object.again, pace.MergedStatus)
	}
	if e.drifts.count > 0 && r.now.Sub(e.drifts.lastEvent) >= pace.RepeatAfter {
		r.recordEvent(driftEvent(e.drifts))
		e.drifts = drifts{lastEvent: r.now.Time}
	}
}

// keepWritten stores in memory the status that was written to the hub object. It is called if the rows of the binding
// must still wait for a turn of the pacer, which limits writes.
func (r *run) keepWritten() {
	e, unlock := r.entry()
	defer unlock()
	e.merged, e.refusal = r.object.merged, r.object.refusal
}

// entry locks the reporter. It returns the entry of the binding and a function that unlocks the reporter. If the
// binding is deleted, entry returns an empty entry, and the reporter does not keep it.
func (r *run) entry() (*entry, func()) {
	r.reporter.mu.Lock()
	e := r.reporter.entries[r.key]
	if e == nil {
		e = &entry{}
	}
	return e, r.reporter.mu.Unlock
}

// recordEvent sends an event about the hub object, or about the bundle of the object. The object reference comes from
// the binding, because the object itself may be deleted.
func (r *run) recordEvent(ev event) {
	ref := r.binding.BindingSpec().ObjectRef
	follows := r.binding.BindingSpec().PlacementRef.Related()
	r.reporter.opts.Events.Eventf(ref.Regarding(r.id.Namespace), follows, ev.kind, ev.reason, ev.action, "%s", ev.note)
}
