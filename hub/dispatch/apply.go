package dispatch

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/manifest"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/placement/tenancy"
)

// apply writes the copy if its content is not the wanted content. known is false if there is no outcome to report for
// the row yet. In this case an event queues the binding again, or o has the time of the next try.
func (r *run) apply(ctx context.Context) (o member.Outcome, known bool) {
	// The content number changes with the content of the hub object. The number is read before the object. If the object
	// changes between the two reads, the outcome has the number of the older content, and never a number whose content was
	// not written.
	content := r.queue.opts.Templates.Content(r.in.object.ObjectIdentity)
	template, ok := r.template()
	if !ok {
		return r.recreated()
	}
	if o, stop := r.forbidden(); stop {
		return o, true
	}
	want, err := r.wantedState(ctx, template)
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("Not writing: the definition of the kind could not be read", "reason", err.Error())
		return member.Outcome{Retry: member.RetrySoon}, false
	}
	r.in.object = hubv1.Selectable(r.in.object.ObjectIdentity, template, r.in.namespaceLabels)
	r.setSource(template)
	r.times.renderBegan = r.now()
	manifest, refusal, err := r.render(ctx, template, want.At(r.in.mcl).Version)
	r.times.rendered = r.now()
	switch {
	case isBehind(err):
		return member.Outcome{Retry: member.RetrySoon}, false
	case err != nil:
		ctrl.LoggerFrom(ctx).Error(err, "Reading policies and revisions")
		return member.Outcome{Applied: metav1.ConditionUnknown, Reason: hubv1.ReasonServerError, Message: "the hub could not read policies or revisions, and tries again", Retry: member.RetrySoon}, true
	case refusal != nil:
		return *refusal, true
	}
	r.keepReads()
	r.watch(r.queue.copies.get(r.key), manifest.GroupVersionKind())
	o, known = r.bring(ctx, manifest)
	o = atOtherVersions(o, manifest.GroupVersionKind(), r.in.mcl)
	o.HubState = member.HubState{HubGeneration: want.Generation, HubRevision: want.Revision, HubContent: content, HubVersion: r.operatorVersion(manifest)}
	return o, known
}

// wantedState returns the generation and revision of the hub object that the cluster shall hold. template is nil if the
// hub object is not in memory.
func (r *run) wantedState(ctx context.Context, template *unstructured.Unstructured) (hubv1.Want, error) {
	o, err := r.queue.opts.HubObject(ctx, r.binding.BindingSpec().ObjectRef, template)
	r.out.hubGVK, o.Revisions = o.GVK, r.binding.BindingSpec().Revisions
	return hubv1.Wanted(*r.target, o), err
}

// bring compares the manifest with the observed copy, and writes the copy if they differ. If the placement drops
// unknown fields, the manifest is written without the fields that the cluster does not serve.
func (r *run) bring(ctx context.Context, manifest *unstructured.Unstructured) (o member.Outcome, known bool) {
	fitting, unserved := r.cluster.Fit(ctx, manifest)
	if len(unserved) > 0 && r.policy().Apply.UnknownFields != hubv1.UnknownFieldsDrop {
		return r.notServed(ctx, manifest, unserved), true
	}
	w := r.want(ctx, fitting)
	if r.policy().Apply.Mode == hubv1.ApplyReportOnly {
		if unfit := r.unfit(ctx, fitting); unfit != nil {
			return *unfit, true
		}
		return dropped(r.report(ctx, w), unserved), true
	}
	o, known, drift := r.compare(w)
	if w.settled && o.Changed != "" {
		o = r.again(ctx, w, o)
	}
	if !known && !w.wait {
		if unfit := r.unfit(ctx, fitting); unfit != nil {
			return *unfit, true
		}
		if waits, err := r.waitsFor(ctx, w); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Reading operators, bundles and needed objects")
			return member.Outcome{Retry: member.RetrySoon}, false
		} else if waits != nil {
			return *waits, waits.Reason != ""
		}
		o, known = r.writeUnlessGone(ctx, w, drift), true
	}
	return dropped(o, unserved), known
}

// template returns the hub object. ok is false if the object is missing, is being deleted or has another UID than the
// binding records. ok is also false if the MemberCluster is missing or being deleted. The object of a bundle that no
// longer contains it is returned while the removal of its copy is held, because a held copy is still repaired. It is
// not returned if its content is lost.
func (r *run) template() (*unstructured.Unstructured, bool) {
	t, ok := r.queue.opts.Templates.Get(r.in.object.ObjectIdentity)
	if !ok || t.GetUID() != r.binding.BindingSpec().ObjectRef.UID {
		return nil, false
	}
	cutAndHeld := r.target.Removal != nil && r.binding.BindingSpec().ObjectRef.Bundle != nil && manifest.HasContent(t)
	if t.GetDeletionTimestamp() != nil && !cutAndHeld {
		return nil, false
	}
	return t, r.in.mcl != nil && r.in.mcl.DeletionTimestamp == nil
}

// decidedWithin is the time in which the leader normally decides on a hub object that was created again.
const decidedWithin = 30 * time.Second

// recreated returns the outcome for a copy of an earlier hub object of the same name, which the binding still records.
// The hub writes nothing to it. known is false while the leader is about to decide on the present object, and if there
// is no present object. The copy is not looked at, because the leader decides what happens to it.
func (r *run) recreated() (o member.Outcome, known bool) {
	present, ok := r.queue.opts.Templates.Get(r.in.object.ObjectIdentity)
	if !ok || present.GetDeletionTimestamp() != nil || present.GetUID() == r.binding.BindingSpec().ObjectRef.UID || r.cluster.IsHub() ||
		!present.GetCreationTimestamp().After(r.binding.GetCreationTimestamp().Time) { // the cache is older than the binding
		return o, false
	}
	const why = "the hub object was deleted and created again, and the copy of the earlier object stays"
	if held := r.target.Removal; held != nil && held.Reason == hubv1.ReasonMadeAnew {
		return outcome(metav1.ConditionFalse, hubv1.ReasonMadeAnew, "%s until a user confirms its removal: run hansectl confirm %s", why, followed(r.binding)), true
	}
	if left := decidedWithin - r.queue.opts.Clock.Since(present.GetCreationTimestamp().Time); left > 0 {
		return member.Outcome{Retry: member.RetryAfter, After: left}, false
	}
	return outcome(metav1.ConditionFalse, hubv1.ReasonMadeAnew, "%s: the condition Scheduled of the binding says why", why), true
}

// followed returns the placement of a binding as the arguments of hansectl.
func followed(b hubv1.BindingObject) string {
	ref := b.BindingSpec().PlacementRef
	switch {
	case ref == nil:
		return ""
	case ref.Namespace == "":
		return strings.ToLower(ref.Kind) + " " + ref.Name
	}
	return strings.ToLower(ref.Kind) + " " + ref.Name + " -n " + ref.Namespace
}

// forbidden returns the outcome for an object that must never be written to this cluster. It returns false if the
// object may be written.
func (r *run) forbidden() (member.Outcome, bool) {
	if r.cluster.IsHub() {
		return outcome(metav1.ConditionTrue, hubv1.ReasonIsTemplate, "the cluster is the hub itself: the object is the template"), true
	}
	if refusal := tenancy.OfPlace(r.in.object.ObjectIdentity, r.binding.BindingSpec().ObjectRef.IsOfOperator()); refusal != nil {
		return outcome(metav1.ConditionFalse, refusal.Reason, "%s", refusal.Message), true
	}
	if allowed, err := r.in.mcl.Spec.AllowedNamespaces.Allows(r.in.object.Namespace, r.in.namespaceLabels); err != nil || !allowed {
		return outcome(metav1.ConditionFalse, hubv1.ReasonNamespaceNotAllowed,
			"spec.allowedNamespaces of MemberCluster %s does not allow namespace %s; the copy on the cluster stays", r.target.Name, r.in.object.Namespace), true
	}
	return member.Outcome{}, false
}

// wanted is the copy that the cluster shall hold. It also has the last known state of the existing copy.
type wanted struct {
	manifest *unstructured.Unstructured
	digest   string
	record   record
	lastConfirmed

	// observed is the resourceVersion at which the copy may be written without reading it first, see member.ApplyIntent.
	// compare sets it.
	observed string
	// unknown is true if neither the watch nor an earlier call has shown an object of this name on the cluster. compare
	// sets it.
	unknown bool
	// keepAway is true if a missing copy must not be created again.
	keepAway bool
	// wait is true if the write must wait until the cluster's watch has listed the kind. Without this wait, the hub would
	// read each copy of the kind with a separate request. compare sets wait.
	wait bool
	// settled is true if the observed copy equals the wanted copy. compare sets it.
	settled bool
}

// lastConfirmed describes the copy at the time when it last had the content that the hub wanted then. The data comes
// from the last successful write by this process, or from the cluster's row.
type lastConfirmed struct {
	confirmed, confirmedDigest string // content hash and digest of the confirmed copy
	confirmedUID               types.UID
	adopted                    bool // whether the hub has adopted the copy
	// noteReason and note are the reason and message of the last successful write. If this process has not written the
	// copy, they come from the cluster's row.
	noteReason, note string
	// changed names the fields that the cluster stored otherwise in the last successful write.
	changed string
}

// want returns the wanted copy, and starts a watch of its kind on the cluster.
func (r *run) want(ctx context.Context, manifest *unstructured.Unstructured) *wanted {
	gvk := manifest.GroupVersionKind()
	w := &wanted{
		manifest: manifest,
		record:   r.queue.copies.get(r.key),
	}
	w.record = r.watch(w.record, gvk)
	if last := w.record.last; last.Hash != "" {
		w.confirmed, w.confirmedDigest, w.confirmedUID, w.adopted = last.Hash, last.Digest, last.UID, last.Adopted
		w.noteReason, w.note, w.changed = last.Reason, last.Message, last.Changed
	} else if row := r.binding.BindingStatus().Row(r.target.Name); row != nil {
		w.confirmed, w.confirmedDigest, w.confirmedUID, w.adopted = row.Hash, row.Digest, row.UID, row.Adopted
		w.noteReason, w.note, w.changed = row.Reason, row.Message, row.ChangedByCluster
	}
	w.digest = r.digestOf(ctx, manifest, w.confirmedDigest)
	return w
}

// watch starts a watch of the given kind and version on the cluster for the binding. If the binding had a watch of
// another kind or version, that watch ends.
func (r *run) watch(rec record, gvk schema.GroupVersionKind) record {
	if rec.gvk != gvk {
		if rec.gvk.Kind != "" {
			r.cluster.Forget(rec.gvk, r.key)
		}
		rec = record{gvk: gvk}
		r.queue.copies.set(r.key, rec)
	}
	r.cluster.Observe(gvk, r.key)
	return rec
}

// observed is the copy in the state that the cluster's watch has last shown.
type observed struct {
	member.Observation
	found, synced bool
}

// look returns the copy in the state that the cluster's watch has last shown.
func (r *run) look(gvk schema.GroupVersionKind) (seen observed) {
	seen.Observation, seen.found, seen.synced = r.cluster.Observation(gvk, types.NamespacedName{Namespace: r.in.object.Namespace, Name: r.in.object.Name})
	if seen.synced {
		r.queue.copies.listed(gvk)
	}
	return seen
}

// compare compares the observed copy with the wanted copy. If known is true, o is the outcome, and no request to the
// member is needed. drift is true if a client has changed the copy on the member.
func (r *run) compare(w *wanted) (o member.Outcome, known, drift bool) {
	listWait := r.queue.copies.listWait(w.record.gvk) // before look, because the list may arrive in between
	seen := r.look(w.record.gvk)
	// held is true if the copy had the wanted content when the member last confirmed the copy.
	held := w.confirmed != "" && w.confirmedDigest == w.digest
	switch wait := r.watchWait(seen, w); {
	case wait > 0:
		return within(w.record.last, wait), true, false // an event may wake the key earlier
	case r.settled(seen, w):
		o = outcome(metav1.ConditionTrue, hubv1.ReasonApplied, "")
		if notes[w.noteReason] {
			o.Reason, o.Message = w.noteReason, w.note
		}
		w.settled = true
		o = r.contested(alteredBefore(o, w))
		o.UID, o.ResourceVersion, o.Generation, o.Hash, o.Digest = seen.UID, seen.ResourceVersion, seen.Generation, seen.Hash, w.digest
		o.Adopted = w.adopted
		return r.done(w.record, o), true, false
	}
	if unlisted := !seen.found && !seen.synced; unlisted && held && listWait > 0 {
		w.wait = true // an earlier process confirmed the copy, so the next run waits for the list
		return member.Outcome{Retry: member.RetryAfter, After: listWait}, false, false
	}
	if r.asConfirmed(seen, w) && seen.Digest == w.confirmedDigest {
		w.observed = seen.ResourceVersion
	}
	w.unknown = !seen.found && w.confirmed == "" && w.confirmedUID == ""
	changed := seen.found && !seen.Deleting && !r.paused(seen)
	gone := !seen.found && seen.synced && w.record.last.UID != ""
	return o, false, held && (changed || gone)
}

// within returns the outcome with a retry after at most this time.
func within(o member.Outcome, wait time.Duration) member.Outcome {
	if o.Retry == member.RetryNever || o.Retry == member.RetryAfter && o.After > wait {
		o.Retry, o.After = member.RetryAfter, wait
	}
	return o
}

// watchWait returns how long to wait until the watch shows the hub's own write. It is zero or less if the wait is over
// or not needed. After the wait, the hub reads the copy with a request. The watch may never show the write, for example
// if the cluster was restored from a backup.
func (r *run) watchWait(seen observed, w *wanted) time.Duration {
	last := w.record.last
	notBack := (!seen.found && !seen.synced) || (seen.found && hubv1.Older(seen.ResourceVersion, last.ResourceVersion))
	if last.ResourceVersion == "" || last.Digest != w.digest || !notBack {
		return 0
	}
	return pace.AnswerWithin - r.queue.opts.Clock.Since(w.record.confirmedAt)
}

// write applies the manifest. It does not write if the placement suspends writes. It also does not write if another
// client keeps changing the copy back, and the pause between two corrections is not over.
func (r *run) write(ctx context.Context, w *wanted, drift bool) member.Outcome {
	if r.suspended() {
		return outcome(metav1.ConditionFalse, hubv1.ReasonSuspended, "writing to %s is suspended by the placement", r.target.Name)
	}
	if over, wait, _ := r.queue.copies.fought(r.key); drift && wait > 0 {
		o := outcome(metav1.ConditionFalse, hubv1.ReasonContested, "%s", contested(over))
		o.Retry, o.After = member.RetryAfter, wait
		o.UID, o.Hash = w.confirmedUID, w.confirmed
		return o
	}
	r.useEpoch(ctx)
	o := r.confirmOlder(ctx, r.cluster.Apply(ctx, r.intent(w)))
	if o.Wrote && o.Applied == metav1.ConditionTrue {
		w.record.yielded = true
	}
	if o.Wrote && (drift || len(o.Drifted) > 0) {
		over := member.FieldDrift{} // no single field, as when the copy or its labels were deleted
		if len(o.Drifted) > 0 {
			over = o.Drifted[0]
		}
		r.queue.copies.corrected(r.key, over)
		o = r.contested(o)
	}
	r.queue.copies.alteredNoMore(r.key) // the pauses begin anew with new content
	if o.Changed != "" && o.Retry == member.RetryNever {
		o.Retry, o.After = member.RetryAfter, r.queue.copies.alteredWait(r.key)
	}
	return r.done(w.record, o)
}

// contested marks the outcome of an applied copy as Contested if another client repeatedly changes the copy back.
func (r *run) contested(o member.Outcome) member.Outcome {
	if over, _, yes := r.queue.copies.fought(r.key); yes && o.Applied == metav1.ConditionTrue {
		o.Reason, o.Message = hubv1.ReasonContested, contested(over)
		o.Retry, o.After = member.RetryAfter, calm
	}
	return o
}

// report returns the outcome for a placement with the mode ReportOnly, which writes nothing to members. The member
// makes a dry run. The outcome is not kept in r.queue.copies, because nothing was written.
func (r *run) report(ctx context.Context, w *wanted) member.Outcome {
	w.record.last, w.record.withdrawn = member.Outcome{}, nil
	r.queue.copies.set(r.key, w.record)
	return r.cluster.Apply(ctx, r.intent(w))
}

func (r *run) intent(w *wanted) member.ApplyIntent {
	policy := r.policy().Apply
	in := member.ApplyIntent{
		Manifest: w.manifest, Owner: r.in.object.ObjectIdentity, OwnerUID: r.binding.BindingSpec().ObjectRef.UID,
		OfOperator: r.binding.BindingSpec().ObjectRef.IsOfOperator(), Digest: w.digest,
		Known: member.Known{Confirmed: w.confirmed, Observed: w.observed, Unknown: w.unknown, Orphaned: r.leftHere(w)},
		ApplySettings: member.ApplySettings{
			Mode:            orDefault(policy.Mode, hubv1.ApplyEnforce),
			MemberOwned:     policy.MemberOwnedFields,
			Adoption:        orDefault(policy.Adoption, hubv1.AdoptionNever),
			FieldConflict:   orDefault(policy.FieldConflict, hubv1.FieldConflictTake),
			CreateNamespace: policy.CreateNamespace == nil || *policy.CreateNamespace,
		},
		NamespaceLabels: podSecurity(r.in.namespaceLabels),
		KeepAway:        w.keepAway,
		Source:          r.out.source,
	}
	if !w.record.yielded {
		in.Whole = r.out.whole
	}
	if w.confirmed != "" {
		in.ConfirmedUID, in.Adopted = w.confirmedUID, w.adopted
	}
	switch w.noteReason {
	case "", hubv1.ReasonApplied, hubv1.ReasonPending:
	default:
		// Read the copy: a write without a read meets no conflict at 0 replicas, which have no manager. Autoscaled may be
		// hidden by another reason.
		in.Known.Observed = ""
	}
	return in
}

// leftHere returns the copy that the hub orphaned on this cluster, from the binding's status or from a recent
// withdrawal by this process.
func (r *run) leftHere(w *wanted) *hubv1.OrphanedCopy {
	if just := w.record.last.Orphaned; just != nil {
		return just
	}
	if r.in.mcl == nil || r.in.mcl.Status.ClusterID == "" {
		return nil
	}
	return r.binding.BindingStatus().Left(r.in.mcl.Status.ClusterID)
}

// notes has those reasons of a successful write that stay in the cluster's row until the copy or its wanted content
// changes.
var notes = map[string]bool{hubv1.ReasonAutoscaled: true, hubv1.ReasonMadeAnew: true}

func contested(over member.FieldDrift) string {
	if over.Path == "" {
		return "the copy or Hanse's annotations on it are removed again and again; the hub restores them every 30 s: stop the client that removes them, or exclude the cluster in the placement"
	}
	return fmt.Sprintf("field manager %s keeps changing %s; the hub restores it every 30 s: list %s in apply.memberOwnedFields, stop that manager, or remove the field from the hub object",
		over.Manager, over.Path, memberOwned(over.Path))
}

// plainSteps matches the beginning of a path in which each step is a plain field name, such as .spec.webhooks in
// .spec.webhooks[name="a"].failurePolicy.
var plainSteps = regexp.MustCompile(`^(\.[a-zA-Z][a-zA-Z0-9]*)+`)

// memberOwned returns the entry of memberOwnedFields for a path of managedFields: a JSON pointer to the field, or to
// the list that has the field. It returns "the field" if the path may have keys with other characters, such as a label
// or a key of a ConfigMap.
func memberOwned(path string) string {
	plain := plainSteps.FindString(path)
	if plain == "" || plain != path && path[len(plain)] != '[' || strings.HasPrefix(path, ".data.") {
		return "the field"
	}
	return strings.ReplaceAll(plain, ".", "/")
}

// done records an outcome. After a successful write, the next run of this binding knows the state of the copy, even if
// the watch has not shown the write yet.
func (r *run) done(rec record, o member.Outcome) member.Outcome {
	if o.Applied == metav1.ConditionTrue {
		rec.last, rec.confirmedAt = o, r.queue.opts.Clock.Now()
		rec.last.Wrote, rec.last.Drifted = false, nil
	} else {
		// The last outcome is dropped, except the identity of an orphaned copy. The hub may adopt this copy again later.
		rec.last = member.Outcome{Orphaned: rec.last.Orphaned}
	}
	rec.withdrawn, rec.withdrawing = nil, false
	r.queue.copies.set(r.key, rec)
	return o
}

// paused reports whether an admin of the member has paused writes to the copy.
func (r *run) paused(seen observed) bool { return seen.Paused.After(r.queue.opts.Clock.Now()) }

// settled reports whether the copy equals the wanted copy, so that no request to the member is needed.
func (r *run) settled(seen observed, w *wanted) bool {
	return r.asConfirmed(seen, w) && seen.Digest == w.digest
}

// asConfirmed reports whether the copy may be written without a read. It must belong to this hub object, and must not
// have changed since the member last confirmed it. If the hub was restored from an older backup, a copy that was
// written before the restore is always read first.
func (r *run) asConfirmed(seen observed, w *wanted) bool {
	ours := seen.found && seen.Owner == r.in.object.ObjectIdentity && seen.OwnerUID == r.binding.BindingSpec().ObjectRef.UID
	return ours && w.confirmed != "" && seen.Hash == w.confirmed && !seen.Deleting && !r.paused(seen) && !r.newer(seen)
}

func orDefault[T ~string](v, unset T) T {
	if v == "" {
		return unset
	}
	return v
}

// podSecurity returns the Pod Security labels of a hub namespace. A namespace that the hub creates on a member gets
// these labels.
func podSecurity(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	maps.DeleteFunc(out, func(k, _ string) bool { return !strings.HasPrefix(k, "pod-security.kubernetes.io/") })
	return out
}
