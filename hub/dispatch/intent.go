package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// Intent returns the write that the hub would make for an object on a cluster, without making it. The given policies
// replace policies of the same kind, namespace and name, or are added. stop is nil if the hub would write. Otherwise
// stop has the reason, and the intent may have no manifest. The error is member.ErrNotConnected, or a failed read of
// the hub.
func (d *Dispatcher) Intent(
	ctx context.Context, cluster string, object hubv1.ObjectIdentity, policies []hubv1.OverridePolicyObject,
) (in member.ApplyIntent, stop *member.Outcome, err error) {
	r, stop, err := d.sent(ctx, cluster, object)
	if r == nil {
		return in, stop, err
	}
	r.instead = policies
	if err := r.gather(ctx); err != nil {
		return in, nil, err
	}
	return r.intended(ctx)
}

// NextIntent returns the write that the hub would make if the object's rollout reached the cluster now. It returns the
// same values and errors as Intent.
func (d *Dispatcher) NextIntent(
	ctx context.Context, cluster string, object hubv1.ObjectIdentity,
) (in member.ApplyIntent, stop *member.Outcome, err error) {
	r, stop, err := d.sent(ctx, cluster, object)
	if r == nil {
		return in, stop, err
	}
	if rollout := r.binding.BindingSpec().Rollout; rollout != nil && r.target.Revision != 0 {
		next := *r.target // the binding is that of the cache
		next.Revision = rollout.Revision
		r.target = &next
	}
	if err := r.gather(ctx); err != nil {
		return in, nil, err
	}
	return r.intended(ctx)
}

// Adopt adopts the unmanaged object with this UID on the cluster. The caller has checked that the user may do so. The
// adoption policy replaces the placement's policy for this call. Afterwards, the object is a copy. Adopt returns the
// same errors as Intent.
func (d *Dispatcher) Adopt(
	ctx context.Context, cluster string, object hubv1.ObjectIdentity, adoption hubv1.Adoption, uid types.UID,
) (member.Outcome, error) {
	r, stop, err := d.sent(ctx, cluster, object)
	if r == nil {
		return ptr.Deref(stop, member.Outcome{}), err
	}
	if err := r.gather(ctx); err != nil {
		return member.Outcome{}, err
	}
	in, stop, err := r.intended(ctx)
	if err != nil || stop != nil {
		return ptr.Deref(stop, member.Outcome{}), err
	}
	switch waits := r.contentOnTheWay(); {
	case waits == nil:
	case waits.Reason == "":
		return *refused(hubv1.ReasonPending, errBehind), nil
	default:
		return *waits, nil
	}
	r.useEpoch(ctx)
	in.Source, in.Adoption, in.Adopting = r.out.source, adoption, uid
	o := r.cluster.Apply(ctx, in)
	// The binding is queued so that its row for this cluster is updated without waiting for the watch.
	r.queue.gate.add(due{r.key, normalPriority + classFor(r.binding, r.target)})
	return o, nil
}

// sent returns a run for an object and a cluster, without starting it. If the hub does not send the object to the
// cluster, the run is nil, and stop or err has the reason.
func (d *Dispatcher) sent(
	ctx context.Context, cluster string, object hubv1.ObjectIdentity,
) (r *run, stop *member.Outcome, err error) {
	cl, err := d.opts.Fleet.Get(cluster)
	if err != nil {
		return nil, nil, err
	}
	q := d.queue(cluster)
	if q == nil {
		return nil, nil, fmt.Errorf("cluster %q: %w", cluster, member.ErrNotConnected)
	}
	key := object.BindingKey()
	binding := hubv1.NewBinding(key)
	if err := d.opts.Client.Get(ctx, key, binding, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("reading binding %s: %w", key, err)
	}
	target := binding.BindingSpec().Target(cluster)
	if target == nil || target.State == hubv1.TargetAbsent {
		return nil, refused(hubv1.ReasonWithdrawn, errNotSent), nil
	}
	return &run{queue: q, cluster: cl, key: key, binding: binding, target: target}, nil, nil
}

var errNotSent = errors.New("the object is not sent to this cluster")

// intended computes the write that apply would make, without making it. It does not compare the manifest with the
// existing copy.
func (r *run) intended(ctx context.Context) (in member.ApplyIntent, stop *member.Outcome, err error) {
	template, ok := r.template()
	if !ok {
		return in, refused(hubv1.ReasonPending, errBehind), nil
	}
	if o, forbidden := r.forbidden(); forbidden {
		return in, &o, nil
	}
	want, err := r.wantedState(ctx, template)
	if err != nil {
		return in, nil, err
	}
	r.in.object = hubv1.Selectable(r.in.object.ObjectIdentity, template, r.in.namespaceLabels)
	r.setSource(template)
	manifest, refusal, err := r.render(ctx, template, want.At(r.in.mcl).Version)
	if isBehind(err) {
		return in, refused(hubv1.ReasonPending, err), nil
	}
	if err != nil || refusal != nil {
		return in, refusal, err
	}
	fitting, unserved := r.cluster.Fit(ctx, manifest)
	if len(unserved) > 0 && r.policy().Apply.UnknownFields != hubv1.UnknownFieldsDrop {
		o := r.notServed(ctx, manifest, unserved)
		return in, &o, nil
	}
	if unfit := r.unfit(ctx, fitting); unfit != nil {
		return in, unfit, nil
	}
	w := &wanted{manifest: fitting}
	if row := r.binding.BindingStatus().Row(r.target.Name); row != nil {
		w.confirmed, w.confirmedDigest, w.confirmedUID, w.adopted = row.Hash, row.Digest, row.UID, row.Adopted
	}
	w.digest = r.digestOf(ctx, fitting, w.confirmedDigest)
	switch {
	case r.suspended():
		stop = refused(hubv1.ReasonSuspended, errSuspended)
	case r.policy().Apply.Mode == hubv1.ApplyReportOnly:
		stop = refused(string(hubv1.ApplyReportOnly), errReportOnly)
	}
	return r.intent(w), stop, nil
}

var (
	errBehind     = errors.New("the hub has not yet processed the newest version of the object")
	errSuspended  = errors.New("writing to the cluster is suspended by the placement")
	errReportOnly = errors.New("apply.mode of the placement is ReportOnly: the hub writes nothing")
)

// replaced returns the policies, each replaced by a policy in `by` of the same kind, namespace and name. All other
// policies in `by` are appended.
func replaced(policies, by []hubv1.OverridePolicyObject) []hubv1.OverridePolicyObject {
	if len(by) == 0 {
		return policies
	}
	out := slices.DeleteFunc(policies, func(p hubv1.OverridePolicyObject) bool {
		return slices.ContainsFunc(by, func(o hubv1.OverridePolicyObject) bool { return samePolicy(p, o) })
	})
	return append(out, by...)
}

func samePolicy(a, b hubv1.OverridePolicyObject) bool {
	return a.GetNamespace() == b.GetNamespace() && a.GetName() == b.GetName()
}
