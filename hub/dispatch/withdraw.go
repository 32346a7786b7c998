package dispatch

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// withdraw removes the copy from the cluster, if an uncached read of the binding confirms the decision. The cache may
// not show a later decision that keeps the copy. withdraw returns false if there is no outcome to report.
func (r *run) withdraw(ctx context.Context) (member.Outcome, bool) {
	if r.cluster.IsHub() {
		return outcome(metav1.ConditionFalse, hubv1.ReasonWithdrawn, "the cluster is the hub itself: no object is removed"), true
	}
	if r.suspended() {
		return outcome(metav1.ConditionFalse, hubv1.ReasonSuspended, "withdrawing from %s is suspended by the placement", r.target.Name), true
	}
	want, _ := r.wantedState(ctx, nil) // without the kind's definition, any served version is used
	gvk := want.At(r.in.mcl)
	if r.policy().Apply.Mode == hubv1.ApplyReportOnly {
		return r.leaveAlone(gvk), true
	}
	seen, found, synced := r.cluster.Observation(gvk, types.NamespacedName{Namespace: r.in.object.Namespace, Name: r.in.object.Name})
	if rec := r.queue.copies.get(r.key); rec.withdrawn != nil && r.target.Absent != nil && *rec.withdrawn == *r.target.Absent && !found {
		return rec.last, true // record it again: hub/report may have lost it with the link
	}
	if o := r.leavesLater(ctx); o != nil {
		return *o, true
	}
	fresh, err := r.queue.fresh.get(ctx, r.binding)
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("Not withdrawing: the binding could not be read uncached", "reason", err.Error())
		return member.Outcome{Applied: metav1.ConditionUnknown, Reason: hubv1.ReasonDeleting, Message: "the removal waits until the hub can read the binding", Retry: member.RetrySoon}, true
	}
	target := fresh.BindingSpec().Target(r.target.Name)
	if target == nil || target.State != hubv1.TargetAbsent || target.Absent == nil || fresh.GetUID() != r.binding.GetUID() {
		return member.Outcome{}, false
	}
	r.watch(r.queue.copies.get(r.key), gvk) // watch the copy, so that its delete event wakes the key
	in := r.withdrawal(gvk, target.Absent, fresh.BindingStatus().Row(r.target.Name))
	if found && synced {
		in.Seen = &seen
	}
	o := r.confirmOlder(ctx, r.cluster.Withdraw(ctx, in))
	if r.behind {
		return o, true
	}
	if o.Orphaned != nil && r.in.mcl != nil {
		o.Orphaned.ClusterID = r.in.mcl.Status.ClusterID
	}
	rec := record{gvk: gvk, withdrawing: true}
	if o.Reason == hubv1.ReasonWithdrawn {
		rec.withdrawn, rec.last = target.Absent, o
	}
	r.queue.copies.set(r.key, rec)
	return o, true
}

// leavesFirst returns an object of the same bundle that must be removed from the cluster before this object, and is
// still there. It returns nil if there is no such object. Workloads are removed before RBAC, and RBAC before
// CustomResourceDefinitions. An object that stays or is orphaned delays no removal.
func (r *run) leavesFirst(ctx context.Context) (*hubv1.ObjectIdentity, error) {
	of, rank := r.binding.BindingSpec().ObjectRef.Bundle, Rank(r.in.object.GroupKind())
	if of == nil || rank <= 0 || rank >= topClass || r.target.Absent == nil || r.target.Absent.Policy != hubv1.RemovalDelete {
		return nil, nil
	}
	for _, id := range r.queue.opts.Templates.StoredOf(*of) {
		if Rank(id.GroupKind()) >= rank {
			continue
		}
		b := hubv1.NewBinding(id.BindingKey())
		found, err := get(ctx, r.queue.opts.Client, id.BindingKey(), b)
		if err != nil {
			return nil, err
		}
		target := b.BindingSpec().Target(r.target.Name)
		if !found || target == nil || target.State != hubv1.TargetAbsent || target.Absent == nil || target.Absent.Policy != hubv1.RemovalDelete {
			continue
		}
		if left := r.queue.copies.get(id.BindingKey()).withdrawn; left == nil || *left != *target.Absent {
			return &id, nil
		}
	}
	return nil, nil
}

// leavesLater returns the outcome for an object whose removal waits for the removal of another object of its bundle, or
// for the new content of the other objects. The outcome is nil if the removal does not wait.
func (r *run) leavesLater(ctx context.Context) *member.Outcome {
	first, err := r.leavesFirst(ctx)
	var waits *member.Outcome
	if err == nil {
		waits, err = r.newFirst(ctx)
	}
	switch {
	case err != nil:
		ctrl.LoggerFrom(ctx).Error(err, "Reading the other objects of a bundle")
		return &member.Outcome{Applied: metav1.ConditionUnknown, Reason: hubv1.ReasonDeleting, Message: "the removal waits until the hub can read the other objects of the bundle", Retry: member.RetrySoon}
	case first != nil:
		o := outcome(metav1.ConditionFalse, hubv1.ReasonDeleting, "waits until %s of the same bundle has left the cluster", first)
		o.Retry = member.RetrySoon
		return &o
	}
	return waits
}

// withdrawal returns the arguments for the removal of the copy. absent is the instruction in the binding that was read
// uncached. row is the cluster's row of this binding, or nil if there is none.
func (r *run) withdrawal(gvk schema.GroupVersionKind, absent *hubv1.Absence, row *hubv1.ClusterRow) member.WithdrawIntent {
	in := member.WithdrawIntent{
		GVK: gvk, Owner: r.in.object.ObjectIdentity, OwnerUID: absent.UID, Policy: absent.Policy,
		PolicyIfAdopted: orDefault(r.policy().Deletion.Adopted, hubv1.RemovalOrphan),
		Propagation:     orDefault(r.policy().Deletion.PropagationPolicy, metav1.DeletePropagationBackground),
	}
	if row != nil {
		in.ConfirmedUID, in.ConfirmedDigest, in.Adopted = row.UID, row.Digest, row.Adopted
	}
	template, ok := r.queue.opts.Templates.Get(r.in.object.ObjectIdentity)
	if ok && template.GetUID() == absent.UID {
		r.setSource(template)
	} else {
		r.setSource(nil)
	}
	if ok { // also a user of an object that was made anew may accept that its earlier copy is newer than the hub
		r.out.source.Accepted = template.GetAnnotations()[hubv1.AcceptSourceAnnotation]
	}
	in.Source = r.out.source
	return in
}

// leaveAlone returns the outcome for a withdrawal under a placement with the mode ReportOnly. The copy stays on the
// cluster, with the hub's labels and annotations.
func (r *run) leaveAlone(gvk schema.GroupVersionKind) member.Outcome {
	seen, found, _ := r.cluster.Observation(gvk, types.NamespacedName{Namespace: r.in.object.Namespace, Name: r.in.object.Name})
	o := outcome(metav1.ConditionTrue, hubv1.ReasonWithdrawn, "nothing is removed, because apply.mode is ReportOnly")
	if found {
		o.Message = "the copy stays as it is, because apply.mode is ReportOnly"
		o.UID = seen.UID
	}
	return o
}
