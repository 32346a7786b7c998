package rollup

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/health"
)

const (
	maxMessage = 256 // maximum length of a message, in characters
	maxReason  = 64
	maxWhole   = 128 // bytes of a UID, a digest, a hash or a version

	notShown = "applied; the cluster's watch has not shown the change yet"
)

// newRow returns the updated row of one target. rowsOf is the generation of the binding for which the previous row was
// computed.
func newRow(previous *hubv1.ClusterRow, rowsOf int64, t hubv1.BindingTarget, in Input) hubv1.ClusterRow {
	fact, known := in.Facts[t.Name]
	here := !in.Elsewhere[t.Name]
	reported := known && (fact.IsHub || fact.Outcome != nil)
	if here && t.State != hubv1.TargetEvicting {
		previous = counted(previous)
	}
	if previous != nil && previous.Reason == hubv1.ReasonWithdrawn && (t.State != hubv1.TargetAbsent || rowsOf != in.BindingGeneration) {
		// The previous row is from an earlier withdrawal on this cluster. It must not look like the confirmation of the
		// current withdrawal.
		previous = nil
	}
	var row hubv1.ClusterRow
	switch {
	case !here:
		row = elsewhere(previous, t)
	case known && fact.IsHub:
		row = template(t, in)
	case known && fact.away():
		row = away(previous, t, fact)
	case !known || fact.Outcome == nil:
		row = unreported(previous, t, in)
	case t.State == hubv1.TargetAbsent:
		row = withdrawing(previous, t, fact)
	default:
		row = holding(previous, t, fact, in)
	}
	if here {
		evicting(&row, t)
		row.PassingSince = passingSince(row, previous, t, in.Now)
	}
	bound(&row)
	return date(row, previous, reported, in.Now)
}

// passingSince returns the time since which the copy has been healthy at the revision that its target names. It is nil
// if the copy is not healthy, if it has another revision, if the cluster has changed its values, or if the object has
// no rollout.
func passingSince(row hubv1.ClusterRow, previous *hubv1.ClusterRow, t hubv1.BindingTarget, now metav1.Time) *metav1.Time {
	switch {
	case t.Revision == 0, row.Revision != t.Revision, row.Applied != metav1.ConditionTrue, row.Health != hubv1.HealthHealthy, row.ChangedByCluster != "":
		return nil
	case previous != nil && previous.Revision == row.Revision && previous.PassingSince != nil:
		return previous.PassingSince
	}
	return &now
}

// date sets the row's LastTransitionTime. The time changes only if Applied, the health or the reason changes. There is
// one exception: if fit has removed the time from the previous row, the row gets the current time after a new report.
// reported is true if the row comes from a new report of its cluster.
func date(row hubv1.ClusterRow, previous *hubv1.ClusterRow, reported bool, now metav1.Time) hubv1.ClusterRow {
	switch {
	case previous == nil || previous.Applied != row.Applied || previous.Health != row.Health || previous.Reason != row.Reason:
		row.LastTransitionTime = &now
	case previous.LastTransitionTime == nil && reported:
		row.LastTransitionTime = &now // fit had removed the time when it shortened the row
	default:
		row.LastTransitionTime = previous.LastTransitionTime
	}
	if previous != nil && sameJSON(previous.Observed, row.Observed) {
		row.Observed = previous.Observed
	}
	return *row.DeepCopy()
}

// elsewhere returns the row of a cluster that another replica serves. It returns the previous row unchanged, because
// the other replica may know a newer state. Without a previous row, the state is Unknown.
func elsewhere(previous *hubv1.ClusterRow, t hubv1.BindingTarget) hubv1.ClusterRow {
	if previous == nil {
		return hubv1.ClusterRow{Name: t.Name, Applied: metav1.ConditionUnknown, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonPending}
	}
	return *previous
}

// unreported returns the row of a cluster from which this process has no result yet. This is the previous row, or a row
// with the state Unknown if there is none. If the previous row says Applied, but the target now wants other content or
// a withdrawal, the reason becomes Pending or Deleting.
func unreported(previous *hubv1.ClusterRow, t hubv1.BindingTarget, in Input) hubv1.ClusterRow {
	switch {
	case previous == nil:
		return hubv1.ClusterRow{Name: t.Name, Applied: metav1.ConditionUnknown, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonPending}
	case t.State == hubv1.TargetAbsent && previous.Reason != hubv1.ReasonWithdrawn && previous.Applied == metav1.ConditionTrue:
		row := *previous
		row.Applied, row.Health, row.Reason, row.Message = metav1.ConditionFalse, hubv1.HealthProgressing, hubv1.ReasonDeleting, dueMessage(t)
		return row
	case previous.Applied == metav1.ConditionTrue && previous.Reason != hubv1.ReasonIsTemplate && in.behind(t, previous.Generation, previous.Revision):
		row := *previous
		row.Applied, row.Reason, row.Message = metav1.ConditionUnknown, hubv1.ReasonPending, in.behindMessage(t, previous.Generation, previous.Revision)
		return row
	}
	return *previous
}

// away returns the row of an unreachable cluster. The row keeps the last known numbers, but Applied and the health are
// Unknown. A row that confirms a withdrawal does not change.
func away(previous *hubv1.ClusterRow, t hubv1.BindingTarget, f Fact) hubv1.ClusterRow {
	if previous != nil && previous.Reason == hubv1.ReasonWithdrawn {
		return *previous
	}
	row := hubv1.ClusterRow{Name: t.Name}
	if previous != nil {
		row = *previous
	}
	reason := cmp.Or(f.LinkReason, hubv1.ReasonUnreachable)
	if row.Applied != metav1.ConditionUnknown || row.Reason != reason {
		// Each connection attempt may fail with a different message. The row keeps the first message until the reason
		// changes.
		row.Message = f.LinkMessage
	}
	row.Applied, row.Health, row.Reason = metav1.ConditionUnknown, hubv1.HealthUnknown, reason
	switch {
	case row.LastObservedTime != nil:
	case !f.LastObserved.IsZero():
		observed := seconds(metav1.NewTime(f.LastObserved))
		row.LastObservedTime = &observed
	case row.UID != "":
		row.LastObservedTime = row.LastTransitionTime // the last time that an earlier process wrote into the row
	}
	return row
}

// counted returns the previous row without the reason Evicting. It is called for a cluster that is no longer being
// replaced (Evicting), so that the conditions count the cluster again.
func counted(previous *hubv1.ClusterRow) *hubv1.ClusterRow {
	if previous == nil || previous.Reason != hubv1.ReasonEvicting {
		return previous
	}
	row := *previous
	row.Reason, row.Message = "", ""
	return &row
}

// evicting gives the row of an Evicting target (which other clusters replace) the reason Evicting. A row that shows a
// failure or a pending change keeps its own reason.
func evicting(row *hubv1.ClusterRow, t hubv1.BindingTarget) {
	if t.State != hubv1.TargetEvicting || row.Applied == metav1.ConditionFalse || row.Reason == hubv1.ReasonPending || t.Evicting == nil {
		return
	}
	var names []string
	for _, r := range t.Evicting.Replacements {
		names = append(names, r.Cluster)
	}
	who := "the others"
	if len(names) > 0 {
		who = strings.Join(names[:min(len(names), maxNamed)], ", ")
		if more := len(names) - maxNamed; more > 0 {
			who += fmt.Sprintf(" and %d more", more)
		}
	}
	held := "the copy is kept up to date. It"
	if row.Applied == metav1.ConditionUnknown {
		held = "the cluster does not answer. Its copy"
	}
	row.Reason = hubv1.ReasonEvicting
	row.Message = fmt.Sprintf("%s: %s is not counted, and is withdrawn when the cluster answers and its replacements are healthy: %s", t.Evicting.Reason, held, who)
}

// template returns the row of the hub itself, for an object that is placed on the hub, too. The hub object is its own
// copy, so that nothing is written or removed.
func template(t hubv1.BindingTarget, in Input) hubv1.ClusterRow {
	if t.State == hubv1.TargetAbsent {
		return hubv1.ClusterRow{
			Name: t.Name, Applied: metav1.ConditionFalse, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonWithdrawn,
			Message: "the cluster is the hub itself: no object is removed",
		}
	}
	return hubv1.ClusterRow{
		Name: t.Name, UID: in.ObjectUID, Generation: in.wanted(t).Generation, Revision: t.Revision, Applied: metav1.ConditionTrue,
		Health: cmp.Or(in.TemplateHealth, hubv1.HealthUnknown), Reason: hubv1.ReasonIsTemplate, Observed: raw(in.TemplateStatus),
	}
}

// withdrawing computes, from the result of the removal, the row of a connected cluster that must remove its copy.
func withdrawing(previous *hubv1.ClusterRow, t hubv1.BindingTarget, f Fact) hubv1.ClusterRow {
	o := f.Outcome
	if o.Reason == hubv1.ReasonWithdrawn && !stillThere(t, f) {
		return hubv1.ClusterRow{Name: t.Name, Applied: metav1.ConditionFalse, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonWithdrawn, Message: o.Message}
	}
	row := kept(previous, t)
	row.Applied, row.Health, row.Reason, row.Message = metav1.ConditionFalse, hubv1.HealthProgressing, hubv1.ReasonDeleting, dueMessage(t)
	if o.Applied != metav1.ConditionTrue && o.Reason != hubv1.ReasonWithdrawn {
		row.Applied, row.Reason, row.Message = o.Applied, o.Reason, o.Message
	}
	return row
}

// stillThere reports whether the watch still shows the copy after its withdrawal. If the withdrawal has left this
// object alone, because it belongs to another manager, the object does not count.
func stillThere(t hubv1.BindingTarget, f Fact) bool {
	seen := f.Observation
	return f.Synced && seen != nil && t.Absent != nil && seen.OwnerUID == t.Absent.UID && seen.UID != f.Outcome.UID
}

func dueMessage(t hubv1.BindingTarget) string {
	if t.Absent == nil {
		return ""
	}
	return fmt.Sprintf("the withdrawal (%s) is pending: %s", t.Absent.Policy, t.Absent.Reason)
}

// holding computes, from the result of the last write and from the watch, the row of a connected cluster that shall
// have a copy.
func holding(previous *hubv1.ClusterRow, t hubv1.BindingTarget, f Fact, in Input) hubv1.ClusterRow {
	row := kept(previous, t)
	o := f.Outcome
	row.Applied, row.Reason, row.Message = o.Applied, o.Reason, o.Message
	switch {
	case o.Reason == hubv1.ReasonInSync: // the hub only compared the copy, so that the last confirmation stays valid
		row.Generation, row.Revision, row.Version = o.HubGeneration, o.HubRevision, o.HubVersion
	// If a deleted copy is not created again (NotRecreated), the row still says which copy the hub had written.
	case o.Applied == metav1.ConditionTrue, o.Reason == hubv1.ReasonNotRecreated:
		row.UID, row.Digest, row.Hash, row.Adopted, row.ChangedByCluster = o.UID, o.Digest, o.Hash, o.Adopted, o.Changed
		row.Generation, row.Revision, row.Version = o.HubGeneration, o.HubRevision, o.HubVersion
	}
	switch {
	case o.Reason == hubv1.ReasonWithdrawn:
		row.Applied, row.Reason, row.Message = metav1.ConditionUnknown, hubv1.ReasonPending, ""
	case o.Applied == metav1.ConditionTrue && in.outdated(t, o):
		row.Applied, row.Reason, row.Message = metav1.ConditionFalse, hubv1.ReasonPending, in.behindMessage(t, o.HubGeneration, o.HubRevision)
	case contradicted(f, in) && f.Observation.Deleting:
		row.Applied, row.Reason, row.Message = metav1.ConditionFalse, hubv1.ReasonDeleting, "the copy is being deleted on the cluster; the hub creates it again afterwards"
	case contradicted(f, in):
		row.Applied, row.Reason, row.Message = metav1.ConditionFalse, hubv1.ReasonPending, "the copy was changed on the cluster, and the hub is about to restore it"
	}
	if row.Reason == hubv1.ReasonCompleted && o.Last != nil {
		row.Health, row.Observed = o.Last.Health, raw(o.Last.Observed)
		return row
	}
	judge(&row, previous, f, in)
	return row
}

// judge sets the health and the observed status of the row from the watch. It also sets the reason, unless the row
// already has a more important one, such as a failed write.
func judge(row, previous *hubv1.ClusterRow, f Fact, in Input) {
	if f.Unwatched != nil && row.Reason != hubv1.ReasonInSync { // the hub does not watch a foreign object
		unwatched(row, previous, f)
		return
	}
	seen := ofPresent(row, f.Observation, in)
	var reason, message string
	unshown := seen == nil && awaitsFirstList(row, previous, f)
	if unshown {
		if reason, message, ok := carriedOn(row, previous); ok {
			explain(row, reason, message)
			return
		}
	}
	switch {
	case seen == nil && row.Reason == hubv1.ReasonInSync: // the hub does not watch a foreign object
		row.Health, reason, message, row.Observed = hubv1.HealthUnknown, row.Reason, row.Message, nil
	case seen == nil && row.Applied == metav1.ConditionTrue:
		row.Health, reason, message = hubv1.HealthProgressing, hubv1.ReasonPending, notShown
		if !unshown {
			row.Observed = nil
		}
	case seen == nil && row.Reason == hubv1.ReasonVersionNotServed && row.Observed != nil && previous != nil:
		// The copy exists at a version at which the hub cannot read it. Its last status is kept, as for an unreachable
		// cluster.
		row.Health, row.LastObservedTime = hubv1.HealthUnknown, cmp.Or(previous.LastObservedTime, &in.Now)
	case seen == nil:
		row.Health, row.Observed = hubv1.HealthUnknown, nil
	case row.Reason != hubv1.ReasonInSync && (seen.Deleting || seen.Digest != row.Digest):
		row.Health, reason, message = hubv1.HealthProgressing, hubv1.ReasonPending, notShown
		row.Observed = raw(seen.Observed)
	default:
		row.Health, reason, message = cmp.Or(seen.Health, hubv1.HealthUnknown), seen.HealthReason, seen.HealthMessage
		row.Observed = raw(seen.Observed)
	}
	explain(row, reason, message)
}

// ofPresent returns the observation, or nil if it is of another hub object's copy.
func ofPresent(row *hubv1.ClusterRow, seen *member.Observation, in Input) *member.Observation {
	ofEarlier := row.Reason == hubv1.ReasonMadeAnew && row.Applied != metav1.ConditionTrue
	if seen != nil && (ofEarlier || in.ObjectUID != "" && seen.OwnerUID != in.ObjectUID) {
		return nil
	}
	return seen
}

// unwatched sets the health of the row to Unknown, because the watch of the kind fails on the cluster. The row keeps
// the last observed status.
func unwatched(row, previous *hubv1.ClusterRow, f Fact) {
	row.Health = hubv1.HealthUnknown
	since := seconds(metav1.NewTime(f.Unwatched.Since))
	row.LastObservedTime = &since
	message := "the hub cannot watch objects of this kind on the cluster: " + f.Unwatched.Message
	if previous != nil && previous.LastObservedTime != nil {
		row.LastObservedTime = previous.LastObservedTime
		if previous.Reason == f.Unwatched.Reason {
			message = previous.Message // keep the message, because it may differ in each attempt
		}
	} else if previous != nil && !f.Synced {
		// The row gets the time that an earlier process wrote into the previous row, because this process has observed
		// nothing on the cluster yet.
		row.LastObservedTime = previous.LastTransitionTime
	}
	if row.Applied == metav1.ConditionTrue && row.Reason != hubv1.ReasonContested {
		row.Reason, row.Message = f.Unwatched.Reason, message
	}
}

// awaitsFirstList reports whether the watch has not delivered its first list yet, and the previous row describes the
// same copy. Until the first list, only the previous row has the health of this copy.
func awaitsFirstList(row, previous *hubv1.ClusterRow, f Fact) bool {
	return !f.Synced && previous != nil && previous.UID == row.UID
}

// carriedOn copies the health from the previous row, because the watch has not delivered its first list yet. ok is
// false if the health of the previous row is about other content.
func carriedOn(row, previous *hubv1.ClusterRow) (reason, message string, ok bool) {
	switch {
	case previous.LastObservedTime == nil:
		row.Health = previous.Health
		return previous.Reason, previous.Message, previous.Applied == row.Applied && previous.Digest == row.Digest
	case row.Reason == hubv1.ReasonInSync:
		return "", "", false
	}
	// The cluster is reachable again, but the numbers in the row are from the time before the outage.
	row.Health, row.LastObservedTime = hubv1.HealthUnknown, previous.LastObservedTime
	return hubv1.ReasonPending, notShown, true
}

// explain gives an applied row the reason and message of its health, unless the row has a more important reason. A
// healthy copy has such a reason only if its spec pauses it and its status is not of the newest generation.
func explain(row *hubv1.ClusterRow, reason, message string) {
	explains := row.Health != hubv1.HealthHealthy || reason == health.ReasonGenerationNotObserved
	switch {
	case row.Applied != metav1.ConditionTrue:
	case explains && row.Reason == hubv1.ReasonFieldsDropped:
		row.Reason, row.Message = reason, strings.TrimPrefix(message+"; applied "+row.Message, "; ")
	case explains && row.Reason != hubv1.ReasonContested:
		row.Reason, row.Message = reason, message
	case row.Reason == hubv1.ReasonApplied:
		row.Reason, row.Message = "", ""
	}
}

// contradicted reports whether the watch shows other content than the hub's last write, and the shown state is not
// older than this write.
func contradicted(f Fact, in Input) bool {
	o, seen := f.Outcome, f.Observation
	if o.Applied != metav1.ConditionTrue || o.Reason == hubv1.ReasonInSync || !f.Synced || seen == nil || older(seen.ResourceVersion, o.ResourceVersion) {
		return false
	}
	return seen.Deleting || seen.Digest != o.Digest || (in.ObjectUID != "" && seen.OwnerUID != in.ObjectUID)
}

// older reports whether the resourceVersion that the watch shows is older than the one of the hub's last write. If the
// two cannot be compared, it returns true, so that the row keeps the result of the write.
func older(seen, confirmed string) bool {
	c, err := resourceversion.CompareResourceVersion(seen, confirmed)
	return err != nil || c < 0
}

// wanted returns the generation and revision of the hub object that the copy on the target shall have.
func (in Input) wanted(t hubv1.BindingTarget) hubv1.Want {
	return hubv1.Wanted(t, hubv1.HubObject{Generation: in.HubGeneration, Revisions: in.Revisions})
}

// behind reports whether the generation or revision of a copy is not the wanted one. A higher generation also counts as
// behind, because it is from an earlier object of the same name.
func (in Input) behind(t hubv1.BindingTarget, generation, revision int64) bool {
	return !in.wanted(t).IsHeld(generation, revision)
}

// outdated reports whether the result of a write is about other content than the copy shall have now. It also compares
// a digest of the content, because some kinds have no generation.
func (in Input) outdated(t hubv1.BindingTarget, o *member.Outcome) bool {
	return in.behind(t, o.HubGeneration, o.HubRevision) || t.Revision == 0 && in.HubContent != 0 && o.HubContent != in.HubContent
}

func (in Input) behindMessage(t hubv1.BindingTarget, confirmed, revision int64) string {
	wanted := in.wanted(t).Generation
	if t.Revision != 0 && revision != 0 {
		return fmt.Sprintf("revision %d is not applied yet; the cluster has revision %d", t.Revision, revision)
	}
	if confirmed == wanted {
		return "the newest content of the hub object is not applied yet"
	}
	return fmt.Sprintf("generation %d is not applied yet; the cluster has generation %d", wanted, confirmed)
}

// kept returns a new row for a cluster, with the last known state of its copy. Applied, the health and the reason are
// still empty.
func kept(previous *hubv1.ClusterRow, t hubv1.BindingTarget) hubv1.ClusterRow {
	row := hubv1.ClusterRow{Name: t.Name}
	if previous != nil {
		row.UID, row.Generation, row.Digest, row.Hash, row.Observed = previous.UID, previous.Generation, previous.Digest, previous.Hash, previous.Observed
		row.Adopted, row.Revision, row.Version = previous.Adopted, previous.Revision, previous.Version
		row.ChangedByCluster = previous.ChangedByCluster
	}
	return row
}

// bound cuts the texts of the row to their maximum lengths, and makes them valid UTF-8. Package member already limits
// its texts; this is a second check.
func bound(row *hubv1.ClusterRow) {
	row.UID = types.UID(whole(string(row.UID)))
	row.Digest, row.Hash, row.Version = whole(row.Digest), whole(row.Hash), whole(row.Version)
	row.Reason = strings.ToValidUTF8(row.Reason[:min(len(row.Reason), maxReason)], "")
	row.Message = strings.ToValidUTF8(hubv1.CutMessage(row.Message, maxMessage), "?")
	row.ChangedByCluster = strings.ToValidUTF8(hubv1.CutMessage(row.ChangedByCluster, maxMessage), "?")
	if row.Observed != nil && len(row.Observed.Raw) > health.MaxProjection {
		row.Observed = nil
	}
}

// whole returns an identifier unchanged. For an identifier that is too long or not valid UTF-8, it returns an empty
// text, because a cut identifier would name something else.
func whole(text string) string {
	if len(text) > maxWhole || !utf8.ValidString(text) {
		return ""
	}
	return text
}

func raw(data []byte) *runtime.RawExtension {
	if len(data) == 0 {
		return nil
	}
	return &runtime.RawExtension{Raw: data}
}

// sameJSON reports whether two JSON values are equal. The order of fields does not matter, because an API server may
// change it.
func sameJSON(a, b *runtime.RawExtension) bool {
	if a == nil || b == nil {
		return a == b
	}
	if bytes.Equal(a.Raw, b.Raw) {
		return true
	}
	var x, y any
	return json.Unmarshal(a.Raw, &x) == nil && json.Unmarshal(b.Raw, &y) == nil && reflect.DeepEqual(x, y)
}

func byName(targets []hubv1.BindingTarget) []hubv1.BindingTarget {
	out := slices.Clone(targets)
	slices.SortFunc(out, func(a, b hubv1.BindingTarget) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// seconds returns the time as the API server stores it: in whole seconds and UTC.
func seconds(t metav1.Time) metav1.Time { return t.Rfc3339Copy() }

var underWay = map[string]bool{
	hubv1.ReasonPending: true, hubv1.ReasonDeleting: true, hubv1.ReasonFinalizersRemain: true, hubv1.ReasonWithdrawn: true, hubv1.ReasonSuspended: true, hubv1.ReasonPaused: true,
	hubv1.ReasonMissing: true, hubv1.ReasonDiffers: true,
}

// Failed reports whether a copy is not applied for a reason that a user must mend. It returns false if a user has
// requested this state, such as a pause. It also returns false for a state that ends without help, such as Pending.
func Failed(applied metav1.ConditionStatus, reason string) bool {
	return applied == metav1.ConditionFalse && !underWay[reason]
}

var waits = map[string]bool{
	hubv1.ReasonSuspended: true, hubv1.ReasonPaused: true, hubv1.ReasonOperatorNotReady: true, hubv1.ReasonBundleNotReady: true, hubv1.ReasonReferenceNotReady: true,
}

// Waits reports whether a copy with this reason waits for a user, or for other objects, before the hub applies a
// change.
func Waits(reason string) bool { return waits[reason] }
