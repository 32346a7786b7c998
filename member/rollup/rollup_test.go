package rollup

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/health"
)

const hubObject = types.UID("hub-1")

var earlier = metav1.Unix(1767225600, 0)

// held returns the row of an applied and healthy copy, changed by the edits.
func held(edits ...func(*hubv1.ClusterRow)) *hubv1.ClusterRow {
	row := &hubv1.ClusterRow{
		Name: "a", UID: "member-1", Generation: 7, Digest: "9c1f", Hash: "77ab", Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy,
		Observed: raw([]byte(`{"replicas":3}`)), LastTransitionTime: &earlier,
	}
	for _, e := range edits {
		e(row)
	}
	return row
}

func confirmed(edits ...func(*member.Outcome)) *member.Outcome {
	o := &member.Outcome{
		Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied,
		CopyState: member.CopyState{UID: "member-1", ResourceVersion: "100", Hash: "77ab", Digest: "9c1f"},
		HubState:  member.HubState{HubGeneration: 7, HubContent: 77},
	}
	for _, e := range edits {
		e(o)
	}
	return o
}

func seen(edits ...func(*member.Observation)) *member.Observation {
	o := &member.Observation{
		CopyState:  member.CopyState{UID: "member-1", ResourceVersion: "100", Digest: "9c1f", Hash: "77ab"},
		OwnerUID:   hubObject,
		Assessment: member.Assessment{Health: hubv1.HealthHealthy},
		Observed:   []byte(`{"replicas":3}`),
	}
	for _, e := range edits {
		e(o)
	}
	return o
}

func refusedBy(reason string) *member.Outcome {
	return &member.Outcome{Applied: metav1.ConditionFalse, Reason: reason, Message: "do something"}
}

func forbidden(message string, since time.Time) *member.WatchFailure {
	return &member.WatchFailure{Reason: hubv1.ReasonForbidden, Message: message, Since: since}
}

var (
	shallHold = hubv1.BindingTarget{Name: "a", State: hubv1.TargetPresent}
	shallLose = hubv1.BindingTarget{Name: "a", State: hubv1.TargetAbsent, Absent: &hubv1.Absence{Reason: "NotSelected", UID: hubObject, Policy: hubv1.RemovalDelete}}
)

func input(target hubv1.BindingTarget, f *Fact) Input {
	in := Input{
		Targets: []hubv1.BindingTarget{target}, BindingGeneration: 2, ObjectUID: hubObject, HubGeneration: 7, HubContent: 77,
		TemplateStatus: []byte(`{"replicas":9}`), TemplateHealth: hubv1.HealthProgressing, Facts: map[string]Fact{}, Now: noon,
	}
	if f != nil {
		in.Facts[target.Name] = *f
	}
	return in
}

func TestRow(t *testing.T) {
	unreachable := &Fact{LinkReason: hubv1.ReasonUnreachable, LinkMessage: "no answer", LastObserved: earlier.Time}
	withdrawnRow := &hubv1.ClusterRow{Name: "a", Applied: metav1.ConditionFalse, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonWithdrawn, LastTransitionTime: &earlier}
	tests := map[string]struct {
		previous *hubv1.ClusterRow
		rowsOf   int64 // generation of the binding for which the previous row was written
		target   hubv1.BindingTarget
		fact     *Fact
		// want leaves out LastTransitionTime. That time is noon, or unchanged if applied, health and reason have not changed.
		want *hubv1.ClusterRow
	}{
		"a new target of which nothing is known is pending": {
			target: shallHold, want: &hubv1.ClusterRow{Name: "a", Applied: metav1.ConditionUnknown, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonPending},
		},
		"a copy that is paused may be healthy by an older generation, and says so": {
			target: shallHold,
			fact: &Fact{Connected: true, Synced: true, Outcome: confirmed(), Observation: seen(func(o *member.Observation) {
				o.HealthReason, o.HealthMessage = health.ReasonGenerationNotObserved, "it is paused"
			})},
			want: held(func(r *hubv1.ClusterRow) { r.Reason, r.Message = health.ReasonGenerationNotObserved, "it is paused" }),
		},
		"after a restart a row stays as it was": {
			previous: held(), target: shallHold, want: held(),
		},
		"also if the link is up and nothing was recorded yet": {
			previous: held(), target: shallHold, fact: &Fact{Connected: true, Synced: true}, want: held(),
		},
		"but it does not claim a generation that came while the hub was down": {
			previous: held(func(r *hubv1.ClusterRow) { r.Generation = 6 }), target: shallHold,
			want: held(func(r *hubv1.ClusterRow) {
				r.Generation, r.Applied, r.Reason, r.Message = 6, metav1.ConditionUnknown, hubv1.ReasonPending, "generation 7 is not applied yet; the cluster has generation 6"
			}),
		},
		"an applied and healthy object needs no words": {
			target: shallHold, fact: &Fact{Connected: true, Synced: true, Outcome: confirmed(), Observation: seen()}, want: held(),
		},
		"a cluster that is away keeps what it held and its last numbers": {
			previous: held(), target: shallHold, fact: unreachable,
			want: held(func(r *hubv1.ClusterRow) {
				r.Applied, r.Health, r.Reason, r.Message, r.LastObservedTime = metav1.ConditionUnknown, hubv1.HealthUnknown, hubv1.ReasonUnreachable, "no answer", &earlier
			}),
		},
		"while it is away, words and times stay": {
			previous: held(func(r *hubv1.ClusterRow) {
				r.Applied, r.Health, r.Reason, r.Message, r.LastObservedTime = metav1.ConditionUnknown, hubv1.HealthUnknown, hubv1.ReasonUnreachable, "no answer", &earlier
			}),
			target: shallHold, fact: &Fact{LinkReason: hubv1.ReasonUnreachable, LinkMessage: "refused", LastObserved: noon.Time},
			want: held(func(r *hubv1.ClusterRow) {
				r.Applied, r.Health, r.Reason, r.Message, r.LastObservedTime = metav1.ConditionUnknown, hubv1.HealthUnknown, hubv1.ReasonUnreachable, "no answer", &earlier
			}),
		},
		"another reason to be away brings its own words": {
			previous: held(func(r *hubv1.ClusterRow) {
				r.Applied, r.Health, r.Reason, r.Message, r.LastObservedTime = metav1.ConditionUnknown, hubv1.HealthUnknown, hubv1.ReasonUnreachable, "no answer", &earlier
			}),
			target: shallHold, fact: &Fact{LinkReason: hubv1.ReasonUnauthorized, LinkMessage: "token expired", LastObserved: noon.Time},
			want: held(func(r *hubv1.ClusterRow) {
				r.Applied, r.Health, r.Reason, r.Message, r.LastObservedTime = metav1.ConditionUnknown, hubv1.HealthUnknown, hubv1.ReasonUnauthorized, "token expired", &earlier
			}),
		},
		"a cluster that is back is live again": {
			previous: held(func(r *hubv1.ClusterRow) {
				r.Applied, r.Health, r.Reason, r.Message, r.LastObservedTime = metav1.ConditionUnknown, hubv1.HealthUnknown, hubv1.ReasonUnreachable, "no answer", &earlier
			}),
			target: shallHold, fact: &Fact{Connected: true, Synced: true, Outcome: confirmed(), Observation: seen()}, want: held(),
		},
		"a copy whose kind cannot be watched is as it was last observed": {
			previous: held(), target: shallHold,
			fact: &Fact{Connected: true, Synced: true, Outcome: confirmed(), Observation: seen(), Unwatched: forbidden("no list", noon.Time)},
			want: held(func(r *hubv1.ClusterRow) {
				r.Health, r.Reason, r.LastObservedTime = hubv1.HealthUnknown, hubv1.ReasonForbidden, &noon
				r.Message = "the hub cannot watch objects of this kind on the cluster: no list"
			}),
		},
		"while its kind cannot be watched, words and times stay": {
			previous: held(func(r *hubv1.ClusterRow) {
				r.Health, r.Reason, r.LastObservedTime, r.Message = hubv1.HealthUnknown, hubv1.ReasonForbidden, &earlier, "no list"
			}),
			target: shallHold,
			fact:   &Fact{Connected: true, Synced: true, Outcome: confirmed(), Observation: seen(), Unwatched: forbidden("no watch", noon.Time)},
			want: held(func(r *hubv1.ClusterRow) {
				r.Health, r.Reason, r.LastObservedTime, r.Message = hubv1.HealthUnknown, hubv1.ReasonForbidden, &earlier, "no list"
			}),
		},
		"a process that never listed the kind has the time of the row": {
			previous: held(), target: shallHold,
			fact: &Fact{Connected: true, Outcome: confirmed(), Unwatched: forbidden("no list", noon.Time)},
			want: held(func(r *hubv1.ClusterRow) {
				r.Health, r.Reason, r.LastObservedTime = hubv1.HealthUnknown, hubv1.ReasonForbidden, &earlier
				r.Message = "the hub cannot watch objects of this kind on the cluster: no list"
			}),
		},
		"a copy that is not applied keeps that reason while its kind cannot be watched": {
			previous: held(), target: shallHold,
			fact: &Fact{Connected: true, Synced: true, Outcome: refusedBy(hubv1.ReasonManifestRefused), Observation: seen(), Unwatched: forbidden("no list", noon.Time)},
			want: held(func(r *hubv1.ClusterRow) {
				r.Applied, r.Reason, r.Message = metav1.ConditionFalse, hubv1.ReasonManifestRefused, "do something"
				r.Health, r.LastObservedTime = hubv1.HealthUnknown, &noon
			}),
		},
		"a refusal keeps what runs there and says why": {
			previous: held(), target: shallHold,
			fact: &Fact{Connected: true, Synced: true, Outcome: refusedBy(hubv1.ReasonManifestRefused), Observation: seen()},
			want: held(func(r *hubv1.ClusterRow) {
				r.Applied, r.Reason, r.Message = metav1.ConditionFalse, hubv1.ReasonManifestRefused, "do something"
			}),
		},
		"a refusal where nothing is there has no health": {
			target: shallHold, fact: &Fact{Connected: true, Synced: true, Outcome: refusedBy(hubv1.ReasonAlreadyExists)},
			want: &hubv1.ClusterRow{Name: "a", Applied: metav1.ConditionFalse, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonAlreadyExists, Message: "do something"},
		},
		"an outcome of an older generation is not what is desired now": {
			previous: held(), target: shallHold,
			fact: &Fact{Connected: true, Synced: true, Outcome: confirmed(func(o *member.Outcome) { o.HubGeneration = 6 }), Observation: seen()},
			want: held(func(r *hubv1.ClusterRow) {
				r.Generation, r.Applied, r.Reason, r.Message = 6, metav1.ConditionFalse, hubv1.ReasonPending, "generation 7 is not applied yet; the cluster has generation 6"
			}),
		},
		"an outcome of another content is not what is desired now, though the generation is the same": {
			previous: held(), target: shallHold,
			fact: &Fact{Connected: true, Synced: true, Outcome: confirmed(func(o *member.Outcome) { o.HubContent = 78 }), Observation: seen()},
			want: held(func(r *hubv1.ClusterRow) {
				r.Applied, r.Reason, r.Message = metav1.ConditionFalse, hubv1.ReasonPending, "the newest content of the hub object is not applied yet"
			}),
		},
		"an outcome of a newer number is of an earlier object of that name": {
			target: shallHold, fact: &Fact{Connected: true, Outcome: confirmed(func(o *member.Outcome) { o.HubGeneration = 9 }), Observation: seen()},
			want: held(func(r *hubv1.ClusterRow) {
				r.Generation, r.Applied, r.Reason, r.Message = 9, metav1.ConditionFalse, hubv1.ReasonPending, "generation 7 is not applied yet; the cluster has generation 9"
			}),
		},
		"what the watch has not shown yet is progressing": {
			target: shallHold, fact: &Fact{Connected: true, Synced: true, Outcome: confirmed()},
			want: held(func(r *hubv1.ClusterRow) {
				r.Observed, r.Health, r.Reason, r.Message = nil, hubv1.HealthProgressing, hubv1.ReasonPending, "applied; the cluster's watch has not shown the change yet"
			}),
		},
		"an older sight of the object contradicts nothing": {
			target: shallHold,
			fact: &Fact{Connected: true, Synced: true, Outcome: confirmed(), Observation: seen(func(o *member.Observation) {
				o.ResourceVersion, o.Digest = "99", "0000"
			})},
			want: held(func(r *hubv1.ClusterRow) {
				r.Health, r.Reason, r.Message = hubv1.HealthProgressing, hubv1.ReasonPending, "applied; the cluster's watch has not shown the change yet"
			}),
		},
		"a copy at a version that the hub cannot read keeps its last status, so that sums have it": {
			previous: held(), target: shallHold, fact: &Fact{Connected: true, Outcome: refusedBy(hubv1.ReasonVersionNotServed)},
			want: held(func(r *hubv1.ClusterRow) {
				r.Applied, r.Health, r.Reason, r.Message, r.LastObservedTime = metav1.ConditionFalse, hubv1.HealthUnknown, hubv1.ReasonVersionNotServed, "do something", &noon
			}),
		},
		"a copy whose kind is gone has no status": {
			previous: held(), target: shallHold, fact: &Fact{Connected: true, Outcome: refusedBy(hubv1.ReasonKindNotServed)},
			want: held(func(r *hubv1.ClusterRow) {
				r.Applied, r.Health, r.Reason, r.Message, r.Observed = metav1.ConditionFalse, hubv1.HealthUnknown, hubv1.ReasonKindNotServed, "do something", nil
			}),
		},
		"a newer sight with another digest takes Applied back": {
			previous: held(), target: shallHold,
			fact: &Fact{Connected: true, Synced: true, Outcome: confirmed(), Observation: seen(func(o *member.Observation) {
				o.ResourceVersion, o.Digest = "101", "0000"
			})},
			want: held(func(r *hubv1.ClusterRow) {
				r.Applied, r.Health, r.Reason, r.Message = metav1.ConditionFalse, hubv1.HealthProgressing, hubv1.ReasonPending, "the copy was changed on the cluster, and the hub is about to restore it"
			}),
		},
		"an object that is being deleted on the member is shown": {
			previous: held(), target: shallHold,
			fact: &Fact{Connected: true, Synced: true, Outcome: confirmed(), Observation: seen(func(o *member.Observation) { o.ResourceVersion, o.Deleting = "101", true })},
			want: held(func(r *hubv1.ClusterRow) {
				r.Applied, r.Health, r.Reason, r.Message = metav1.ConditionFalse, hubv1.HealthProgressing, hubv1.ReasonDeleting, "the copy is being deleted on the cluster; the hub creates it again afterwards"
			}),
		},
		"a copy of another hub object says nothing": {
			target: shallHold,
			fact:   &Fact{Connected: true, Synced: true, Outcome: refusedBy(hubv1.ReasonOwnedByOther), Observation: seen(func(o *member.Observation) { o.OwnerUID = "hub-2" })},
			want:   &hubv1.ClusterRow{Name: "a", Applied: metav1.ConditionFalse, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonOwnedByOther, Message: "do something"},
		},
		"bad health is the reason of an applied row": {
			previous: held(), target: shallHold,
			fact: &Fact{Connected: true, Synced: true, Outcome: confirmed(), Observation: seen(func(o *member.Observation) {
				o.ResourceVersion, o.Health, o.HealthReason, o.HealthMessage = "102", hubv1.HealthDegraded, "Stuck", "disk full"
			})},
			want: held(func(r *hubv1.ClusterRow) { r.Health, r.Reason, r.Message = hubv1.HealthDegraded, "Stuck", "disk full" }),
		},
		"a watch that starts anew changes nothing": {
			previous: held(), target: shallHold, fact: &Fact{Connected: true, Outcome: confirmed()}, want: held(),
		},
		"a good outcome may have something to say": {
			target: shallHold,
			fact:   &Fact{Connected: true, Synced: true, Outcome: confirmed(func(o *member.Outcome) { o.Reason, o.Message = hubv1.ReasonPaused, "until noon" }), Observation: seen()},
			want:   held(func(r *hubv1.ClusterRow) { r.Reason, r.Message = hubv1.ReasonPaused, "until noon" }),
		},
		"the hub's own row reads the template": {
			target: shallHold, fact: &Fact{IsHub: true, Connected: true},
			want: &hubv1.ClusterRow{
				Name: "a", UID: hubObject, Generation: 7, Applied: metav1.ConditionTrue, Health: hubv1.HealthProgressing, Reason: hubv1.ReasonIsTemplate,
				Observed: raw([]byte(`{"replicas":9}`)),
			},
		},
		"nothing is withdrawn from the hub itself": {
			target: shallLose, fact: &Fact{IsHub: true},
			want: &hubv1.ClusterRow{Name: "a", Applied: metav1.ConditionFalse, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonWithdrawn, Message: "the cluster is the hub itself: no object is removed"},
		},

		"what is to be withdrawn is not applied any more": {
			previous: held(), target: shallLose,
			want: held(func(r *hubv1.ClusterRow) {
				r.Applied, r.Health, r.Reason, r.Message = metav1.ConditionFalse, hubv1.HealthProgressing, hubv1.ReasonDeleting, "the withdrawal (Delete) is pending: NotSelected"
			}),
		},
		"an outcome of an apply is no withdrawal": {
			previous: held(), target: shallLose, fact: &Fact{Connected: true, Synced: true, Outcome: confirmed(), Observation: seen()},
			want: held(func(r *hubv1.ClusterRow) {
				r.Applied, r.Health, r.Reason, r.Message = metav1.ConditionFalse, hubv1.HealthProgressing, hubv1.ReasonDeleting, "the withdrawal (Delete) is pending: NotSelected"
			}),
		},
		"a withdrawal that is refused says why": {
			previous: held(), target: shallLose, fact: &Fact{Connected: true, Synced: true, Outcome: refusedBy(hubv1.ReasonForbidden), Observation: seen()},
			want: held(func(r *hubv1.ClusterRow) {
				r.Applied, r.Health, r.Reason, r.Message = metav1.ConditionFalse, hubv1.HealthProgressing, hubv1.ReasonForbidden, "do something"
			}),
		},
		"a withdrawal from a cluster that is away waits": {
			previous: held(), target: shallLose, fact: unreachable,
			want: held(func(r *hubv1.ClusterRow) {
				r.Applied, r.Health, r.Reason, r.Message, r.LastObservedTime = metav1.ConditionUnknown, hubv1.HealthUnknown, hubv1.ReasonUnreachable, "no answer", &earlier
			}),
		},
		"a confirmed withdrawal leaves nothing": {
			previous: held(), target: shallLose, fact: &Fact{Connected: true, Synced: true, Outcome: refusedBy(hubv1.ReasonWithdrawn)},
			want: &hubv1.ClusterRow{Name: "a", Applied: metav1.ConditionFalse, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonWithdrawn, Message: "do something"},
		},
		"a withdrawal is not believed while the watch shows our copy": {
			previous: held(), target: shallLose, fact: &Fact{Connected: true, Synced: true, Outcome: refusedBy(hubv1.ReasonWithdrawn), Observation: seen()},
			want: held(func(r *hubv1.ClusterRow) {
				r.Applied, r.Health, r.Reason, r.Message = metav1.ConditionFalse, hubv1.HealthProgressing, hubv1.ReasonDeleting, "the withdrawal (Delete) is pending: NotSelected"
			}),
		},
		"an object that was seen and left alone counts as withdrawn, also when it changes": {
			previous: held(), target: shallLose,
			fact: &Fact{Connected: true, Synced: true, Observation: seen(), Outcome: &member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonWithdrawn, CopyState: member.CopyState{UID: seen().UID, ResourceVersion: "7"}}},
			want: &hubv1.ClusterRow{Name: "a", Applied: metav1.ConditionFalse, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonWithdrawn},
		},
		"a copy that came after the object which was left alone does not": {
			previous: held(), target: shallLose,
			fact: &Fact{Connected: true, Synced: true, Observation: seen(), Outcome: &member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonWithdrawn, CopyState: member.CopyState{UID: "earlier"}}},
			want: held(func(r *hubv1.ClusterRow) {
				r.Applied, r.Health, r.Reason, r.Message = metav1.ConditionFalse, hubv1.HealthProgressing, hubv1.ReasonDeleting, "the withdrawal (Delete) is pending: NotSelected"
			}),
		},
		"a row that says Withdrawn stays for the same decision, also while the cluster is away": {
			previous: withdrawnRow, rowsOf: 2, target: shallLose, fact: unreachable, want: withdrawnRow,
		},
		"but it says nothing about another decision": {
			previous: withdrawnRow, rowsOf: 1, target: shallLose,
			want: &hubv1.ClusterRow{Name: "a", Applied: metav1.ConditionUnknown, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonPending},
		},
		"and nothing about a cluster that shall hold the object again": {
			previous: withdrawnRow, rowsOf: 2, target: shallHold, fact: &Fact{Connected: true, Outcome: refusedBy(hubv1.ReasonWithdrawn)},
			want: &hubv1.ClusterRow{Name: "a", Applied: metav1.ConditionUnknown, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonPending},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			previous := hubv1.BindingStatus{ObservedGeneration: tc.rowsOf}
			want := *tc.want
			want.LastTransitionTime = &noon
			if tc.previous != nil {
				previous.Clusters = []hubv1.ClusterRow{*tc.previous}
				if p := tc.previous; p.Applied == want.Applied && p.Health == want.Health && p.Reason == want.Reason {
					want.LastTransitionTime = p.LastTransitionTime
				}
			}
			in := input(tc.target, tc.fact)
			got, _ := Status(previous, in)
			if diff := cmp.Diff([]hubv1.ClusterRow{want}, got.Clusters); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
			in.Now = metav1.NewTime(noon.Add(time.Hour))
			again, _ := Status(got, in)
			if diff := cmp.Diff(got, again); diff != "" {
				t.Errorf("the same facts again change the status:\n%s", diff)
			}
		})
	}
}

func TestRowsFollowTargets(t *testing.T) {
	previous := hubv1.BindingStatus{
		Clusters:        []hubv1.ClusterRow{{Name: "gone", Reason: hubv1.ReasonWithdrawn}, *held()},
		Decision:        &hubv1.DecisionStatus{Rejected: []hubv1.RejectedClusters{{Reason: "NotSelected", Count: 2}}},
		OtherPlacements: []string{"ClusterPlacement/other"},
		Conditions: []metav1.Condition{
			{Type: hubv1.ConditionScheduled, Status: metav1.ConditionTrue, Reason: "Scheduled", LastTransitionTime: earlier},
			{Type: hubv1.ConditionStatusWritten, Status: metav1.ConditionTrue, Reason: "Written", LastTransitionTime: earlier},
		},
	}
	in := input(shallHold, nil)
	in.Targets = append([]hubv1.BindingTarget{{Name: "z", State: hubv1.TargetPresent}}, in.Targets...)
	got, _ := Status(previous, in)
	var names []string
	for _, row := range got.Clusters {
		names = append(names, row.Name)
	}
	if diff := cmp.Diff([]string{"a", "z"}, names); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(hubv1.BindingSummary{Desired: 2, Applied: 1, Healthy: 1, Unknown: 1}, got.Summary); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(previous.Decision, got.Decision) + cmp.Diff(previous.OtherPlacements, got.OtherPlacements) + cmp.Diff(previous.Conditions, got.Conditions[:2]); diff != "" {
		t.Errorf("what others write (-want +got):\n%s", diff)
	}
	if got.ObservedGeneration != 2 || len(previous.Clusters) != 2 {
		t.Errorf("observed generation %d, previous rows %d", got.ObservedGeneration, len(previous.Clusters))
	}
}

func TestConditions(t *testing.T) {
	row := func(name string, applied metav1.ConditionStatus, health hubv1.Health, reason string) hubv1.ClusterRow {
		return hubv1.ClusterRow{Name: name, Applied: applied, Health: health, Reason: reason}
	}
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	tests := map[string]struct {
		rows             []hubv1.ClusterRow
		absent           map[string]bool
		applied, healthy [3]string
	}{
		"no target is no success": {
			applied: [3]string{"Unknown", "NoClusterSelected", "no cluster is selected for the object"},
			healthy: [3]string{"Unknown", "NoClusterSelected", "no cluster is selected for the object"},
		},
		"everything is in order": {
			rows:    []hubv1.ClusterRow{row("a", yes, hubv1.HealthHealthy, ""), row("b", yes, hubv1.HealthHealthy, "")},
			applied: [3]string{"True", "AppliedEverywhere", "on 2 of 2 clusters"},
			healthy: [3]string{"True", "HealthyEverywhere", "on 2 of 2 clusters"},
		},
		"problems come first, then what is unknown": {
			rows: []hubv1.ClusterRow{
				row("a", unknown, hubv1.HealthUnknown, "ClusterUnreachable"), row("b", no, hubv1.HealthDegraded, "ManifestRefused"), row("c", unknown, hubv1.HealthUnknown, "Pending"),
			},
			applied: [3]string{"False", "FailedOnSome", "on 1 of 3 clusters: b (ManifestRefused)"},
			healthy: [3]string{"False", "DegradedOnSome", "on 1 of 3 clusters: b (ManifestRefused)"},
		},
		"what is unknown comes before what is under way": {
			rows: []hubv1.ClusterRow{
				row("a", unknown, hubv1.HealthUnknown, "ClusterUnreachable"), row("b", no, hubv1.HealthProgressing, "Pending"), row("c", yes, hubv1.HealthHealthy, ""),
			},
			applied: [3]string{"Unknown", "UnknownOnSome", "on 1 of 3 clusters: a (ClusterUnreachable)"},
			healthy: [3]string{"Unknown", "UnknownOnSome", "on 1 of 3 clusters: a (ClusterUnreachable)"},
		},
		"what is under way is no success": {
			rows:    []hubv1.ClusterRow{row("a", no, hubv1.HealthProgressing, "Pending"), row("b", yes, hubv1.HealthHealthy, "")},
			applied: [3]string{"Unknown", "NotYetReported", "on 1 of 2 clusters: a (Pending)"},
			healthy: [3]string{"False", "ProgressingOnSome", "on 1 of 2 clusters: a (Pending)"},
		},
		"a copy that is newer than the hub gives the reason, and the other failures are named too": {
			rows: []hubv1.ClusterRow{
				row("a", no, hubv1.HealthHealthy, "ManifestRefused"), row("b", no, hubv1.HealthHealthy, "HubIsOlder"), row("c", yes, hubv1.HealthHealthy, ""),
			},
			applied: [3]string{"False", "HubIsOlder", "on 2 of 3 clusters: a (ManifestRefused), b (HubIsOlder)"},
			healthy: [3]string{"True", "HealthyEverywhere", "on 3 of 3 clusters"},
		},
		"a removal that is held because the copy is newer than the hub is a failure": {
			rows:    []hubv1.ClusterRow{row("a", yes, hubv1.HealthHealthy, ""), row("b", no, hubv1.HealthUnknown, "HubIsOlder")},
			absent:  map[string]bool{"b": true},
			applied: [3]string{"False", "HubIsOlder", "on 1 of 2 clusters: b (HubIsOlder)"},
			healthy: [3]string{"True", "HealthyEverywhere", "on 1 of 1 clusters"},
		},
		"copies that wait for other objects or a user are no failure": {
			rows: []hubv1.ClusterRow{
				row("a", no, hubv1.HealthUnknown, "OperatorNotReady"), row("b", no, hubv1.HealthHealthy, "Suspended"), row("c", yes, hubv1.HealthHealthy, ""),
			},
			applied: [3]string{"False", "WaitingOnSome", "on 2 of 3 clusters: a (OperatorNotReady), b (Suspended)"},
			healthy: [3]string{"Unknown", "PartiallyUnknown", "on 1 of 3 clusters: a (OperatorNotReady)"},
		},
		"one failure among copies that wait is a failure": {
			rows:    []hubv1.ClusterRow{row("a", no, hubv1.HealthHealthy, "BundleNotReady"), row("b", no, hubv1.HealthHealthy, "Forbidden")},
			applied: [3]string{"False", "FailedOnSome", "on 2 of 2 clusters: a (BundleNotReady), b (Forbidden)"},
			healthy: [3]string{"True", "HealthyEverywhere", "on 2 of 2 clusters"},
		},
		"at most three are named": {
			rows: []hubv1.ClusterRow{
				row("a", no, hubv1.HealthUnknown, "TooLarge"), row("b", no, hubv1.HealthUnknown, "TooLarge"), row("c", no, hubv1.HealthUnknown, "TooLarge"),
				row("d", no, hubv1.HealthUnknown, "TooLarge"), row("e", no, hubv1.HealthUnknown, "TooLarge"),
			},
			applied: [3]string{"False", "FailedOnSome", "on 5 of 5 clusters: a (TooLarge), b (TooLarge), c (TooLarge) and 2 more"},
			healthy: [3]string{"Unknown", "UnknownOnSome", "on 5 of 5 clusters: a (TooLarge), b (TooLarge), c (TooLarge) and 2 more"},
		},
		"a withdrawal counts for Applied until it is done, and not for Healthy": {
			rows:   []hubv1.ClusterRow{row("a", yes, hubv1.HealthHealthy, ""), row("b", no, hubv1.HealthProgressing, "Deleting"), row("c", no, hubv1.HealthUnknown, "Withdrawn")},
			absent: map[string]bool{"b": true, "c": true}, applied: [3]string{"Unknown", "NotYetReported", "on 1 of 3 clusters: b (Deleting)"},
			healthy: [3]string{"True", "HealthyEverywhere", "on 1 of 1 clusters"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var targets []hubv1.BindingTarget
			for _, r := range tc.rows {
				target := hubv1.BindingTarget{Name: r.Name, State: hubv1.TargetPresent}
				if tc.absent[r.Name] {
					target.State = hubv1.TargetAbsent
				}
				targets = append(targets, target)
			}
			for want, got := range map[[3]string]metav1.Condition{tc.applied: applied(tc.rows, targets), tc.healthy: healthy(tc.rows, targets)} {
				if diff := cmp.Diff(want, [3]string{string(got.Status), got.Reason, got.Message}); diff != "" {
					t.Errorf("%s (-want +got):\n%s", got.Type, diff)
				}
			}
		})
	}
}

// fleet returns the input for a binding with n targets. The writes to the first `failing` targets fail.
func fleet(n, failing int) Input {
	in := input(shallHold, nil)
	in.Targets = nil
	for i := range n {
		name := fmt.Sprintf("cluster-%04d", i)
		in.Targets = append(in.Targets, hubv1.BindingTarget{Name: name, State: hubv1.TargetPresent})
		f := Fact{Connected: true, Synced: true, Outcome: confirmed(func(o *member.Outcome) { o.HubVersion = "v1" }), Observation: seen(func(o *member.Observation) {
			o.Observed = []byte(`{"text":"` + strings.Repeat("x", 490) + `"}`)
		})}
		if i < failing {
			f.Outcome = refusedBy(hubv1.ReasonManifestRefused)
			f.Outcome.Message = strings.Repeat("é", 300)
		}
		in.Facts[name] = f
	}
	return in
}

func TestRowsFitTheLimit(t *testing.T) {
	tests := map[string]struct {
		clusters, failing int
		truncated         bool
	}{
		"a usual fleet is shown in full":                   {clusters: 100, failing: 10},
		"healthy rows shrink in a large fleet":             {clusters: 600, failing: 50, truncated: true},
		"failing rows lose words if there is no other way": {clusters: 700, failing: 700, truncated: true},
		"failing rows of a huge fleet lose their messages": {clusters: 900, failing: 900, truncated: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := fleet(tc.clusters, tc.failing)
			got, _ := Status(hubv1.BindingStatus{}, in)
			data, err := json.Marshal(got.Clusters)
			if err != nil {
				t.Fatal(err)
			}
			if len(data) > maxRows+2 || len(got.Clusters) != tc.clusters {
				t.Errorf("%d rows of %d bytes", len(got.Clusters), len(data))
			}
			if cut := meta.IsStatusConditionTrue(got.Conditions, hubv1.ConditionRowsTruncated); cut != tc.truncated {
				t.Errorf("RowsTruncated is %v", cut)
			}
			again, _ := Status(got, in)
			if diff := cmp.Diff(got, again); diff != "" {
				t.Errorf("the same facts again change the status:\n%s", diff)
			}
			last := got.Clusters[tc.clusters-1]
			if tc.truncated && tc.failing < tc.clusters && cmp.Diff(hubv1.ClusterRow{
				Name: last.Name, UID: "member-1", Generation: 7, Digest: "9c1f", Hash: "77ab", Version: "v1", Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy,
			}, last) != "" {
				t.Errorf("a healthy row was cut to %+v", last)
			}
			if first := got.Clusters[0]; tc.failing > 0 && first.Reason != hubv1.ReasonManifestRefused {
				t.Errorf("a failing row lost its reason: %+v", first)
			}
			restarted := in
			restarted.Facts = nil
			if tc.failing < tc.clusters {
				again, _ := Status(got, restarted)
				if diff := cmp.Diff(got, again); diff != "" {
					t.Errorf("a restart changes the status:\n%s", diff)
				}
			}
			if _, full := Status(got, in); full[tc.clusters-1].Observed == nil || full[tc.clusters-1].LastTransitionTime == nil {
				t.Errorf("the full row is %+v", full[tc.clusters-1])
			}
		})
	}
}

// Status cuts the rows of a large binding to a size limit. After a restart, the hub has only these rows. With them, it
// must not run a finished Job again, and must not take an old status for a status of the newest content.
func TestACutRowKeepsWhatARestartedHubNeeds(t *testing.T) {
	job := schema.GroupKind{Group: "batch", Kind: "Job"}
	long := `"text":"` + strings.Repeat("x", 300) + `"`
	tests := map[string]struct {
		observed string
		want     string // expected text; empty: none
		finished bool
	}{
		"that a Job has run to completion": {
			observed: `{"conditions":[{"reason":"Done","status":"True","type":"Complete"},{"status":"False","type":"Failed"}],` + long + `}`,
			want:     `{"conditions":[{"type":"Complete","status":"True"}]}`, finished: true,
		},
		"that the status is about a generation": {observed: `{"observedGeneration":7,"replicas":3,` + long + `}`, want: `{"observedGeneration":7}`},
		"nothing else":                          {observed: `{"phase":"Running","conditions":[{"status":"True","type":"Ready"}],` + long + `}`},
		"nothing of nonsense":                   {observed: `{"phase":7,"conditions":"x",` + long + `}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := fleet(600, 50)
			for _, f := range in.Facts {
				f.Observation.Observed = []byte(tc.observed)
			}
			got, _ := Status(hubv1.BindingStatus{}, in)
			row, raw := got.Clusters[599], ""
			if row.Observed != nil {
				raw = string(row.Observed.Raw)
			}
			if row.LastTransitionTime != nil || raw != tc.want {
				t.Errorf("a cut row has %q, want %q: %+v", raw, tc.want, row)
			}
			if _, ended := health.Finished(job, []byte(raw)); ended != tc.finished {
				t.Errorf("the Job has run to completion: %t", ended)
			}
		})
	}
}

func TestRowsAreShownInFullAgain(t *testing.T) {
	large := fleet(600, 0)
	cutDown, _ := Status(hubv1.BindingStatus{}, large)
	got, _ := Status(cutDown, fleet(10, 0))
	c := meta.FindStatusCondition(got.Conditions, hubv1.ConditionRowsTruncated)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != hubv1.ReasonComplete {
		t.Errorf("RowsTruncated is %+v", c)
	}
	for _, row := range got.Clusters {
		if row.Observed == nil || row.LastTransitionTime == nil {
			t.Errorf("row %+v", row)
		}
	}
}

func TestStatusIsStableAndHonest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := input(shallHold, nil)
		in.Targets = nil
		reasons := rapid.SampledFrom([]string{"Applied", "Withdrawn", "Deleting", "Pending", "ManifestRefused", "Paused"})
		statuses := rapid.SampledFrom([]metav1.ConditionStatus{"True", "False", "Unknown"})
		digests := rapid.SampledFrom([]string{"", "9c1f", "0000"})
		owners := rapid.SampledFrom([]types.UID{"", hubObject, "hub-2"})
		versions := rapid.SampledFrom([]string{"", "99", "100", "101", "odd"})
		for i := range rapid.IntRange(0, 4).Draw(t, "targets") {
			target := shallHold
			if rapid.Bool().Draw(t, "absent") {
				target = shallLose
			}
			target.Name = fmt.Sprint("c", i)
			in.Targets = append(in.Targets, target)
			if rapid.Bool().Draw(t, "nothing known") {
				continue
			}
			f := Fact{
				Connected: rapid.Bool().Draw(t, "connected"), Synced: rapid.Bool().Draw(t, "synced"), IsHub: rapid.Float64Range(0, 1).Draw(t, "hub") < 0.1,
				LinkReason: hubv1.ReasonUnreachable, LastObserved: earlier.Time,
			}
			if rapid.Bool().Draw(t, "outcome") {
				f.Outcome = &member.Outcome{
					Applied: statuses.Draw(t, "applied"), Reason: reasons.Draw(t, "reason"),
					CopyState: member.CopyState{ResourceVersion: versions.Draw(t, "rv"), Digest: digests.Draw(t, "digest")},
					HubState:  member.HubState{HubGeneration: rapid.Int64Range(6, 8).Draw(t, "generation")},
					Message:   rapid.String().Draw(t, "message"),
				}
			}
			if rapid.Bool().Draw(t, "observation") {
				f.Observation = &member.Observation{
					CopyState: member.CopyState{ResourceVersion: versions.Draw(t, "seen rv"), Digest: digests.Draw(t, "seen digest")},
					OwnerUID:  owners.Draw(t, "owner"),
					Deleting:  rapid.Bool().Draw(t, "deleting"), Assessment: member.Assessment{Health: rapid.SampledFrom([]hubv1.Health{"", "Healthy", "Degraded"}).Draw(t, "health")},
				}
			}
			in.Facts[target.Name] = f
		}
		var previous hubv1.BindingStatus
		for range rapid.IntRange(0, 2).Draw(t, "passes before") {
			before := in
			before.BindingGeneration = rapid.Int64Range(1, 2).Draw(t, "binding generation")
			previous, _ = Status(previous, before)
		}
		first, _ := Status(previous, in)
		again := in
		again.Now = metav1.NewTime(noon.Add(time.Hour))
		again.Targets = rapid.Permutation(in.Targets).Draw(t, "order")
		second, _ := Status(first, again)
		a, _ := json.Marshal(first)
		b, err := json.Marshal(second)
		if err != nil || string(a) != string(b) {
			t.Fatalf("the same facts again change the status (%v):\n%s", err, cmp.Diff(first, second))
		}
		for i, row := range first.Clusters {
			target := byName(in.Targets)[i]
			if row.Applied == metav1.ConditionTrue && row.Generation != in.HubGeneration {
				t.Errorf("%s claims Applied at generation %d", row.Name, row.Generation)
			}
			if row.Applied == metav1.ConditionTrue && target.State == hubv1.TargetAbsent {
				t.Errorf("%s claims Applied though it is to lose the object", row.Name)
			}
			if row.Reason == hubv1.ReasonWithdrawn && target.State == hubv1.TargetPresent {
				t.Errorf("%s says Withdrawn though it is to hold the object", row.Name)
			}
		}
	})
}
