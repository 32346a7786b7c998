package apply

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/content"
	"github.com/hanse-dev/hanse/member/health"
)

// standing tells whose copy an object on the member is.
type standing int

const (
	unmanaged    standing = iota // no hub manages the object
	ours                         // the copy of the given hub object
	otherHubs                    // managed by another hub
	otherCopy                    // the copy of another object of this hub
	oursOutdated                 // the copy of an earlier hub object of the same name
)

// standing tells whether a live object is a copy of this hub object, of another object or hub, or unmanaged. It
// compares the hub's label and owner annotation. Both alone do not prove that the hub wrote the object, because
// operators copy them to the children of an object. The managedFields must also show an apply by the hub. If the
// annotation or the managedFields entry is missing, the object is still the hub's copy if two conditions hold: it has
// the UID that the binding records for the copy, and it has the label or the managedFields entry.
func (a *Applier) standing(live *unstructured.Unstructured, owner hubv1.ObjectIdentity, ownerUID, confirmed types.UID) standing {
	label := live.GetLabels()[hubv1.HubLabel]
	id, uid, err := hubv1.ParseOwner(live.GetAnnotations()[hubv1.OwnerAnnotation])
	marked := err == nil
	hubApplied := content.Applied(live)
	known := confirmed != "" && live.GetUID() == confirmed && (hubApplied || label != "")
	switch {
	case label != "" && label != string(a.hubUID):
		return otherHubs
	case marked && id != owner && hubApplied:
		return otherCopy
	case marked && id != owner:
		return unmanaged
	case !marked && known:
		return ours
	case !marked || !(hubApplied || known):
		return unmanaged
	case uid == ownerUID:
		return ours
	case label == "" && !known: // the label is missing, so that the hub of the object is unknown
		return unmanaged
	}
	return oursOutdated
}

// plan is what the Applier does with an existing object.
type plan struct {
	stop  *member.Outcome // if set: the outcome to return without a write
	force bool
	// ifSame is true if the object may be adopted, but only if the manifest would change nothing in it.
	ifSame bool
	drift  []member.FieldDrift
	// adopted is true if the object was on the member before the hub adopted it.
	adopted bool
	// earlier is true if the object is the copy of an earlier hub object of the same name.
	earlier bool
}

func stop(out member.Outcome, live *unstructured.Unstructured) plan {
	out = seen(out, live)
	return plan{stop: &out}
}

func (a *Applier) plan(t target, in member.ApplyIntent, manifest, live *unstructured.Unstructured) plan {
	whose := a.standing(live, in.Owner, in.OwnerUID, in.ConfirmedUID)
	if out := a.othersOrDeleting(t, live, whose); out != nil {
		return stop(*out, live)
	}
	back := whose == unmanaged && wasOrphaned(in, live)
	if whose == unmanaged {
		if out := notAdopted(t, in, live, back); out != nil {
			return stop(*out, live)
		}
	}
	inSync := whose == ours && a.synced(in, live)
	if left := pausedFor(live); left > 0 {
		return stop(a.paused(t, in, manifest, live, inSync, left), live)
	}
	if inSync && !in.Again {
		out := a.written(t, in, manifest, live)
		return plan{stop: &out}
	}
	if out := notOverwritten(t, in, live, whose); out != nil {
		return stop(*out, live)
	}
	if whose == unmanaged && !back {
		return plan{force: true, ifSame: in.Adoption == hubv1.AdoptionIfNoDiff && !madeOnDemand(live), adopted: !madeOnDemand(live)}
	}
	p := plan{earlier: whose == oursOutdated, force: in.FieldConflict != hubv1.FieldConflictReport, drift: a.drift(t, in, manifest, live)}
	p.adopted = isAdopted(live) || back && in.Orphaned.Adopted || in.Adopted && live.GetUID() == in.ConfirmedUID
	if !p.force && len(p.drift) > 0 {
		// The outcome asks for a retry. The other manager may change the value back but still own the field. The hub then
		// gets no event that the conflict is over.
		out := refused(hubv1.ReasonFieldConflict, member.RetrySlowly, "%s", t.conflictText(p.drift))
		out.Drifted = p.drift
		return stop(out, live)
	}
	p.force = p.force || back // the server reports a conflict for fields without an owner
	return p
}

// notOverwritten returns the outcome for a copy with other content that the hub leaves alone. It returns nil if the hub
// writes the copy.
func notOverwritten(t target, in member.ApplyIntent, live *unstructured.Unstructured, whose standing) *member.Outcome {
	// After a restore from a backup, a later state of the hub than the current one may have written the copy. Such a copy
	// is left alone. If the digests are equal, the later state has written the same manifest, and this check is not
	// necessary.
	if live.GetAnnotations()[hubv1.DigestAnnotation] != in.Digest {
		if out := hubIsOlder(in.Source, live, whose); out != nil {
			return out
		}
	}
	if whose == oursOutdated && health.RunsOnce(t.gvk.GroupKind()) {
		return ptr.To(earlierCopyStays(t, "an object of this kind runs only once"))
	}
	return nil
}

// earlierCopyStays returns the outcome for the copy of an earlier hub object of the same name that the hub cannot turn
// into a copy of the present object. why says why it cannot.
func earlierCopyStays(t target, why string) member.Outcome {
	return refused(hubv1.ReasonMadeAnew, member.RetrySlowly, "the hub object was deleted and created again, and the copy of the earlier object stays: %s: "+
		"to replace the copy, run kubectl delete %s %s on the cluster", why, t.resource.GroupResource(), t.named())
}

// named returns the name of the object for a command, with the flag for its namespace.
func (t target) named() string {
	if t.key.Namespace == "" {
		return t.key.Name
	}
	return t.key.Name + " -n " + t.key.Namespace
}

// complete adds to the outcome of a write that the copy is of an earlier hub object, if it is.
func (p plan) complete(t target, out member.Outcome) member.Outcome {
	if p.earlier {
		return t.ofEarlier(out)
	}
	return out
}

// ofEarlier completes the outcome of a write to the copy of an earlier hub object of the same name. If the cluster has
// refused the write, the copy probably has fields that no update can change. Otherwise the copy has the present
// content, but it keeps data and an age of the earlier object.
func (t target) ofEarlier(out member.Outcome) member.Outcome {
	switch {
	case out.Reason == hubv1.ReasonManifestRefused:
		return earlierCopyStays(t, out.Message)
	case out.Reason == hubv1.ReasonApplied:
		out.Reason, out.Message = hubv1.ReasonMadeAnew, line("the hub object was deleted and created again: the copy of the earlier object stays, with the present content; "+
			"to replace it, run kubectl delete "+t.resource.GroupResource().String()+" "+t.named()+" on the cluster")
	}
	return out
}

// notAdopted returns the outcome for an unmanaged object that the hub does not adopt now. It returns nil if the hub
// adopts the object. back is true for a copy that the hub orphaned here before.
func notAdopted(t target, in member.ApplyIntent, live *unstructured.Unstructured, back bool) *member.Outcome {
	var out member.Outcome
	switch {
	case back && live.GetDeletionTimestamp() == nil:
		return nil
	case !back && in.Adoption != hubv1.AdoptionAlways && in.Adoption != hubv1.AdoptionIfNoDiff && !madeOnDemand(live):
		out = refused(hubv1.ReasonAlreadyExists, member.RetrySlowly,
			"%s exists on the cluster and is not Hanse's: run hansectl adopt, set spec.apply.adoption to IfNoDiff or Always%s",
			t, orDeleteIt(t))
	case !back && t.secret() && in.Adoption != hubv1.AdoptionAlways:
		out = refused(hubv1.ReasonAlreadyExists, member.RetrySlowly,
			"%s exists on the cluster and is not Hanse's, and the values of a Secret are not compared: run hansectl adopt --overwrite, "+
				"set spec.apply.adoption to Always, or give the hub object another name", t)
	case live.GetDeletionTimestamp() != nil:
		out = deleting(t, live)
	default:
		return nil
	}
	return &out
}

// notToAdopt is for an intent that names one object to adopt. It returns an outcome if the live object is already the
// hub's copy, or is an unmanaged object with another UID than the intent names. In all other cases it returns nil.
func (a *Applier) notToAdopt(t target, in member.ApplyIntent, live *unstructured.Unstructured) *member.Outcome {
	if in.Adopting == "" {
		return nil
	}
	var out member.Outcome
	switch whose := a.standing(live, in.Owner, in.OwnerUID, in.ConfirmedUID); {
	case whose == ours || whose == oursOutdated:
		out = a.done(in, live) // another call has adopted the object
	case whose == unmanaged && live.GetUID() != in.Adopting:
		out = seen(refused(hubv1.ReasonAlreadyExists, member.RetryNever,
			"%s was deleted and created again on the cluster after it was shown: look at it again", t), live)
	default:
		return nil
	}
	return &out
}

// wasOrphaned reports whether the object is a copy of the same hub object that the hub orphaned on this cluster before.
func wasOrphaned(in member.ApplyIntent, live *unstructured.Unstructured) bool {
	return in.Orphaned != nil && live.GetUID() == in.Orphaned.UID
}

// orDeleteIt returns a text for a message, which advises users to delete an object. The text is empty for a Namespace
// and a CustomResourceDefinition, because their deletion also deletes other objects.
func orDeleteIt(t target) string {
	if t.gvk.GroupKind() == (schema.GroupKind{Group: definitions.Group, Kind: "CustomResourceDefinition"}) || t.gvk.GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
		return ""
	}
	return ", or delete it there"
}

// othersOrDeleting returns the outcome for an object of another hub, for the copy of another object, and for a copy
// that is being deleted. For any other object, the result is nil.
func (a *Applier) othersOrDeleting(t target, live *unstructured.Unstructured, whose standing) *member.Outcome {
	var out member.Outcome
	switch {
	case whose == otherHubs:
		out = refused(hubv1.ReasonOwnedByOther, member.RetrySlowly,
			"%s belongs to the hub with the UID %s: withdraw it there first", t, live.GetLabels()[hubv1.HubLabel])
	case whose == otherCopy:
		id, _, _ := hubv1.ParseOwner(live.GetAnnotations()[hubv1.OwnerAnnotation])
		out = refused(hubv1.ReasonOwnedByOther, member.RetrySlowly, "%s is the copy of another hub object, %s", t, id)
	case whose != unmanaged && live.GetDeletionTimestamp() != nil:
		out = deleting(t, live)
	default:
		return nil
	}
	return &out
}

// madeOnDemand reports whether a hub created the namespace for an object. A namespace that was created on demand may
// always be adopted.
func madeOnDemand(live *unstructured.Unstructured) bool {
	return live.GroupVersionKind() == schema.GroupVersionKind{Version: "v1", Kind: "Namespace"} &&
		live.GetLabels()[hubv1.OnDemandLabel] != ""
}

// synced reports whether the annotation of the object has the wanted digest, and its content has the hash that the
// binding records. The digest identifies the manifest and the apply settings of the last write.
func (a *Applier) synced(in member.ApplyIntent, live *unstructured.Unstructured) bool {
	if in.Confirmed == "" || live.GetAnnotations()[hubv1.DigestAnnotation] != in.Digest {
		return false
	}
	hash, _ := content.Hash(a.key, live)
	return hash == in.Confirmed
}

// drift returns the fields that other managers have changed since the last apply. A field without a manager was either
// removed from the copy or is new in the manifest. If the digest annotation shows that the copy was written from
// another manifest, drift treats such a field as new and does not return it. The values of a Secret are not compared
// with the hub's values: a user who may write the Secret on one side could guess its values on the other side. Instead,
// if the content hash differs from the recorded one, all values count as changed.
func (a *Applier) drift(t target, in member.ApplyIntent, manifest, live *unstructured.Unstructured) []member.FieldDrift {
	if t.secret() {
		found := drift(in, withoutValues(manifest), withoutValues(live))
		hash, _ := content.Hash(a.key, live)
		unkeyed, _ := content.Hash(nil, live) // rows that a hub without an HMAC key wrote have a hash without a key
		if len(found) == 0 && in.Confirmed != "" && hash != in.Confirmed && unkeyed != in.Confirmed {
			found = append(found, member.FieldDrift{Path: ".data", Manager: content.UnknownManager})
		}
		return found
	}
	return drift(in, manifest, live)
}

func drift(in member.ApplyIntent, manifest, live *unstructured.Unstructured) []member.FieldDrift {
	digest := live.GetAnnotations()[hubv1.DigestAnnotation]
	if digest == "" && wasOrphaned(in, live) { // the hub removed its labels and annotations when it orphaned the copy
		digest, manifest = in.Orphaned.Digest, withoutMarks(manifest)
	}
	found := slices.DeleteFunc(content.Drift(live, manifest), func(d member.FieldDrift) bool {
		// A copy that an older version of the hub has written lacks these annotations. No other manager has removed them.
		return strings.HasSuffix(d.Path, "."+hubv1.SourceAnnotation) || strings.HasSuffix(d.Path, "."+hubv1.DecisionAnnotation)
	})
	if digest == in.Digest {
		return found
	}
	return slices.DeleteFunc(found, func(d member.FieldDrift) bool { return d.Manager == content.UnknownManager })
}

// withoutValues returns a Secret without its values.
func withoutValues(secret *unstructured.Unstructured) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: maps.Clone(secret.Object)}
	delete(out.Object, "data")
	delete(out.Object, "stringData")
	return out
}

func (t target) conflictText(drift []member.FieldDrift) string {
	if t.secret() {
		return "the Secret was changed on the cluster: delete it there, or set spec.apply.fieldConflict to Take"
	}
	parts := make([]string, len(drift))
	for i, d := range drift {
		parts[i] = d.Path + " was changed by " + d.Manager
	}
	return strings.Join(parts, "; ") + ": list the field in spec.apply.memberOwnedFields, change it back, or set spec.apply.fieldConflict to Take"
}

// pausedFor returns how long the hub must still leave the object alone, because an annotation of the object says so.
// The result is zero or less if the object is not paused.
func pausedFor(live *unstructured.Unstructured) time.Duration {
	until, err := time.Parse(time.RFC3339, live.GetAnnotations()[hubv1.PauseAnnotation])
	if err != nil {
		return 0
	}
	return time.Until(until)
}

// paused returns the outcome for a paused object. It reports the pause even if there is nothing to write, because users
// should see the pause.
func (a *Applier) paused(t target, in member.ApplyIntent, manifest, live *unstructured.Unstructured, inSync bool, left time.Duration) member.Outcome {
	out := refused(hubv1.ReasonPaused, member.RetryAfter, "the hub leaves the copy unchanged until %s, as the annotation %s on the member object says",
		live.GetAnnotations()[hubv1.PauseAnnotation], hubv1.PauseAnnotation)
	if inSync {
		done := a.written(t, in, manifest, live)
		done.Reason, done.Message, done.Retry = out.Reason, out.Message, out.Retry
		out = done
	}
	out.After = min(left, time.Hour)
	return out
}

func deleting(t target, live *unstructured.Unstructured) member.Outcome {
	if f := live.GetFinalizers(); len(f) > 0 {
		return refused(hubv1.ReasonFinalizersRemain, member.RetrySlowly, "%s is being deleted on the cluster and waits for its finalizers %s",
			t, strings.Join(f[:min(len(f), 3)], ", "))
	}
	return refused(hubv1.ReasonDeleting, member.RetrySlowly, "%s is being deleted on the cluster", t)
}
