package dispatch

import (
	"context"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	ctrl "sigs.k8s.io/controller-runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/overrides"
)

// apply brings the object to the cluster if that is due. known is false if nothing can be said now and another event will come.
func (r *run) apply(ctx context.Context) (o member.Outcome, known bool) {
	ref := r.binding.BindingSpec().ObjectRef
	template, ok := r.queue.opts.Templates.Get(r.object.ObjectIdentity)
	if !ok || template.GetUID() != ref.UID || template.GetDeletionTimestamp() != nil || r.mcl == nil || r.mcl.DeletionTimestamp != nil {
		return o, false // hub/schedule decides what that means
	}
	if r.cluster.IsHub() {
		return outcome(metav1.ConditionTrue, hubv1.ReasonIsTemplate, "the cluster is the hub itself: the object is the template"), true
	}
	r.object.Labels = template.GetLabels()
	allowed, err := r.mcl.Spec.AllowedNamespaces.Allows(r.object.Namespace, r.namespaceLabels)
	if err != nil || !allowed {
		return outcome(metav1.ConditionFalse, hubv1.ReasonNamespaceNotAllowed,
			"spec.allowedNamespaces of MemberCluster %s does not allow namespace %s; what runs there stays", r.target.Name, r.object.Namespace), true
	}
	manifest, refusal, err := r.render(ctx, template)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Reading policies")
		return member.Outcome{Applied: metav1.ConditionUnknown, Reason: hubv1.ReasonServerError, Message: "the hub's policies could not be read", Retry: member.RetrySoon}, true
	}
	if refusal != nil {
		return *refusal, true
	}
	spec := r.policy()
	digest := overrides.Digest(manifest, string(ref.UID))
	defer func() { o.HubGeneration = template.GetGeneration() }()

	gvk := manifest.GroupVersionKind()
	mem := r.queue.recall(r.key)
	if mem.gvk != gvk {
		if mem.gvk.Kind != "" {
			r.cluster.Forget(mem.gvk, r.key)
		}
		mem = memory{gvk: gvk}
		r.queue.remember(r.key, mem)
	}
	r.cluster.Observe(gvk, r.key)

	confirmed, confirmedUID := r.confirmed(mem)
	drift := false
	seen, found, synced := r.cluster.Observation(gvk, types.NamespacedName{Namespace: r.object.Namespace, Name: r.object.Name})
	switch {
	case mem.last.ResourceVersion != "" && mem.last.Digest == digest && (!found && !synced || found && older(seen.ResourceVersion, mem.last.ResourceVersion)):
		return mem.last, true // our own write has not come back yet; its event wakes the key
	case found && r.settled(seen, digest, confirmed):
		o := outcome(metav1.ConditionTrue, hubv1.ReasonApplied, "")
		o.UID, o.ResourceVersion, o.Generation, o.Hash, o.Digest = seen.UID, seen.ResourceVersion, seen.Generation, seen.Hash, digest
		return r.done(mem, o), true
	case !found && !synced && confirmed != "" && confirmedDigest(r, mem) == digest:
		return o, false // it was in order before this start: wait for the first list rather than ask for each object
	case found:
		drift = seen.Digest == digest && confirmed != "" && seen.Hash != confirmed
	}

	if r.suspended() {
		return outcome(metav1.ConditionFalse, hubv1.ReasonSuspended, "writing to %s is suspended by the placement", r.target.Name), true
	}
	if wait, over := r.queue.fights.wait(r.key); drift && wait > 0 {
		o := outcome(metav1.ConditionFalse, hubv1.ReasonContested,
			"%s keeps changing %s; it is put back every 30 s: stop one of the two, or leave the field out of the hub object", over.Manager, over.Path)
		o.Retry, o.After = member.RetryAfter, wait
		o.UID, o.Hash = seen.UID, confirmed
		return o, true
	}
	o = r.cluster.Apply(ctx, member.ApplyIntent{
		Manifest: manifest, Owner: r.object.ObjectIdentity, OwnerUID: ref.UID, Digest: digest,
		Confirmed: confirmed, ConfirmedUID: confirmedUID,
		Adoption: orDefault(spec.Apply.Adoption, hubv1.AdoptionNever), FieldConflict: orDefault(spec.Apply.FieldConflict, hubv1.FieldConflictTake),
		CreateNamespace: spec.Apply.CreateNamespace == nil || *spec.Apply.CreateNamespace,
		NamespaceLabels: podSecurity(r.namespaceLabels),
	})
	if o.Wrote && len(o.Drifted) > 0 {
		r.queue.fights.corrected(r.key, o.Drifted[0])
	}
	return r.done(mem, o), true
}

// done remembers a successful outcome, so that the next run knows what is there before the watch says so.
func (r *run) done(mem memory, o member.Outcome) member.Outcome {
	if o.Applied == metav1.ConditionTrue {
		mem.last = o
		mem.last.Wrote, mem.last.Drifted = false, nil
	} else {
		mem.last = member.Outcome{}
	}
	r.queue.remember(r.key, mem)
	return o
}

// settled says that the member holds exactly what is wanted.
func (r *run) settled(seen member.Observation, digest, confirmed string) bool {
	return seen.Owner == r.object.ObjectIdentity && seen.OwnerUID == r.binding.BindingSpec().ObjectRef.UID &&
		seen.Digest == digest && confirmed != "" && seen.Hash == confirmed && !seen.Deleting
}

// confirmed is what the content was when it was last known to be right: from this queue's memory, or else from the row.
func (r *run) confirmed(mem memory) (hash string, uid types.UID) {
	if mem.last.Hash != "" {
		return mem.last.Hash, mem.last.UID
	}
	if row := r.binding.BindingStatus().Row(r.target.Name); row != nil {
		return row.Hash, row.UID
	}
	return "", ""
}

func confirmedDigest(r *run, mem memory) string {
	if mem.last.Digest != "" {
		return mem.last.Digest
	}
	if row := r.binding.BindingStatus().Row(r.target.Name); row != nil {
		return row.Digest
	}
	return ""
}

// older is false if the two cannot be compared: then the write is repeated, which changes nothing.
func older(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && c < 0
}

func orDefault[T ~string](v, unset T) T {
	if v == "" {
		return unset
	}
	return v
}

// podSecurity are the labels of a hub namespace that a namespace made on demand takes along.
func podSecurity(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	maps.DeleteFunc(out, func(k, _ string) bool { return !strings.HasPrefix(k, "pod-security.kubernetes.io/") })
	return out
}
