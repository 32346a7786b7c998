package rollup

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

func TestTheStatusRemembersWhatWasLeftOnClusters(t *testing.T) {
	const cluster, uid = "id-a", "u1"
	entry := hubv1.OrphanedCopy{ClusterID: cluster, UID: uid, Digest: "d"}
	other := hubv1.OrphanedCopy{ClusterID: "id-b", UID: "u2"}
	withdrawn := func(left *hubv1.OrphanedCopy) *member.Outcome {
		return &member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonWithdrawn, Orphaned: left}
	}
	applied := func(uid types.UID) *member.Outcome {
		return &member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied, CopyState: member.CopyState{UID: uid, Digest: "d"}, HubState: member.HubState{HubGeneration: 7}}
	}
	leaves := hubv1.BindingTarget{Name: "a", State: hubv1.TargetAbsent, Absent: &hubv1.Absence{Reason: "NotSelected", UID: hubObject, Policy: hubv1.RemovalOrphan}}
	stays := hubv1.BindingTarget{Name: "a", State: hubv1.TargetPresent}
	tests := map[string]struct {
		before    []hubv1.OrphanedCopy
		row       *hubv1.ClusterRow
		target    hubv1.BindingTarget
		outcome   *member.Outcome
		elsewhere bool
		want      []hubv1.OrphanedCopy
	}{
		"a withdrawal that left the copy":         {row: held(), target: leaves, outcome: withdrawn(&entry), want: []hubv1.OrphanedCopy{entry}},
		"one that deleted it":                     {row: held(), target: leaves, outcome: withdrawn(nil)},
		"one more is the newest":                  {before: []hubv1.OrphanedCopy{other}, row: held(), target: leaves, outcome: withdrawn(&entry), want: []hubv1.OrphanedCopy{other, entry}},
		"another copy of the cluster replaces it": {before: []hubv1.OrphanedCopy{{ClusterID: cluster, UID: "u0"}, other}, row: held(), target: leaves, outcome: withdrawn(&entry), want: []hubv1.OrphanedCopy{other, entry}},
		"a copy that is held again goes":          {before: []hubv1.OrphanedCopy{entry, other}, target: stays, outcome: applied(uid), want: []hubv1.OrphanedCopy{other}},
		"another copy that is held leaves it":     {before: []hubv1.OrphanedCopy{entry}, target: stays, outcome: applied("u9"), want: []hubv1.OrphanedCopy{entry}},
		"a write that failed leaves it":           {before: []hubv1.OrphanedCopy{entry}, target: stays, outcome: &member.Outcome{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonFieldConflict, CopyState: member.CopyState{UID: uid}}, want: []hubv1.OrphanedCopy{entry}},
		"a cluster of another replica adds none":  {row: held(), target: leaves, outcome: withdrawn(&entry), elsewhere: true},
		"a cluster without an ID adds none":       {row: held(), target: leaves, outcome: withdrawn(&hubv1.OrphanedCopy{UID: uid})},
		"a UID that is no UID adds none":          {row: held(), target: leaves, outcome: withdrawn(&hubv1.OrphanedCopy{ClusterID: cluster, UID: types.UID(strings.Repeat("x", maxID+1))})},
		"a row that has it drops the entry":       {before: []hubv1.OrphanedCopy{entry}, row: held(), target: stays, want: nil},
		"a row that has another one leaves it":    {before: []hubv1.OrphanedCopy{other}, row: held(), target: stays, want: []hubv1.OrphanedCopy{other}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			previous := hubv1.BindingStatus{Orphaned: tc.before, ObservedGeneration: 1}
			if tc.row != nil {
				tc.row.UID = uid
				previous.Clusters = []hubv1.ClusterRow{*tc.row}
			}
			in := Input{
				Targets: []hubv1.BindingTarget{tc.target}, BindingGeneration: 1, ObjectUID: hubObject, HubGeneration: 7, Now: noon,
				Facts: map[string]Fact{"a": {Connected: true, Synced: true, Outcome: tc.outcome}}, Elsewhere: map[string]bool{"a": tc.elsewhere},
			}
			status, _ := Status(previous, in)
			if diff := cmp.Diff(tc.want, status.Orphaned); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			again, _ := Status(status, in)
			if diff := cmp.Diff(status, again); diff != "" {
				t.Errorf("the same facts once more change the status:\n%s", diff)
			}
		})
	}
}

// TestManyClustersThatLeaveCostNoMoreThanOneWrite withdraws an object from more clusters than the list of orphaned
// copies may have items.
func TestManyClustersThatLeaveCostNoMoreThanOneWrite(t *testing.T) {
	in := Input{BindingGeneration: 1, ObjectUID: hubObject, Now: noon, Facts: map[string]Fact{}}
	for i := range hubv1.MaxOrphaned + 36 {
		name := fmt.Sprintf("c-%03d", i)
		in.Targets = append(in.Targets, hubv1.BindingTarget{Name: name, State: hubv1.TargetAbsent, Absent: &hubv1.Absence{UID: hubObject, Policy: hubv1.RemovalOrphan}})
		in.Facts[name] = Fact{Connected: true, Synced: true, Outcome: &member.Outcome{
			Applied: metav1.ConditionTrue, Reason: hubv1.ReasonWithdrawn, Orphaned: &hubv1.OrphanedCopy{ClusterID: name, UID: types.UID(name)},
		}}
	}
	status, _ := Status(hubv1.BindingStatus{}, in)
	if n := len(status.Orphaned); n != hubv1.MaxOrphaned || status.Orphaned[0].ClusterID != "c-036" {
		t.Errorf("%d are remembered, the oldest %+v", n, status.Orphaned[0])
	}
	if again, _ := Status(status, in); cmp.Diff(status, again) != "" {
		t.Errorf("the same facts once more change the status:\n%s", cmp.Diff(status, again))
	}
}

func TestTheRowRemembersThatACopyWasAdopted(t *testing.T) {
	in := Input{Targets: []hubv1.BindingTarget{{Name: "a", State: hubv1.TargetPresent}}, BindingGeneration: 1, ObjectUID: hubObject, HubGeneration: 7, Now: noon}
	say := func(adopted bool, reason string, applied metav1.ConditionStatus) {
		in.Facts = map[string]Fact{"a": {Connected: true, Synced: true, Outcome: &member.Outcome{
			Applied: applied, Reason: reason,
			CopyState: member.CopyState{UID: "u1", Digest: "d", Adopted: adopted},
			HubState:  member.HubState{HubGeneration: 7},
		}}}
	}
	say(true, hubv1.ReasonApplied, metav1.ConditionTrue)
	status, _ := Status(hubv1.BindingStatus{}, in)
	if !status.Clusters[0].Adopted {
		t.Fatal("an adopted copy is not known as one")
	}
	in.Facts["a"] = Fact{LinkReason: hubv1.ReasonUnreachable}
	if status, _ = Status(status, in); !status.Clusters[0].Adopted {
		t.Error("it is forgotten while the cluster is away")
	}
	say(false, hubv1.ReasonFieldConflict, metav1.ConditionFalse)
	if status, _ = Status(status, in); !status.Clusters[0].Adopted {
		t.Error("it is forgotten when a write fails")
	}
	say(false, hubv1.ReasonApplied, metav1.ConditionTrue)
	if status, _ = Status(status, in); status.Clusters[0].Adopted {
		t.Error("a copy that the hub made anew is taken for an adopted one")
	}
}

func TestTheRowHasTheVersionOfTheCopy(t *testing.T) {
	in := Input{Targets: []hubv1.BindingTarget{{Name: "a", State: hubv1.TargetPresent}}, BindingGeneration: 1, ObjectUID: hubObject, HubGeneration: 7, Now: noon}
	status := hubv1.BindingStatus{}
	for _, step := range []struct {
		name string
		fact Fact
		want string
	}{
		{"a copy is written", Fact{Connected: true, Synced: true, Outcome: confirmed(func(o *member.Outcome) { o.HubVersion = "v1" })}, "v1"},
		{"the cluster is away", Fact{LinkReason: hubv1.ReasonUnreachable}, "v1"},
		{"a write of another version fails", Fact{Connected: true, Synced: true, Outcome: &member.Outcome{
			Applied: metav1.ConditionFalse, Reason: hubv1.ReasonFieldConflict, HubState: member.HubState{HubVersion: "v2"},
		}}, "v1"},
		{"the other version is written", Fact{Connected: true, Synced: true, Outcome: confirmed(func(o *member.Outcome) { o.HubVersion = "v2" })}, "v2"},
		{"a version is too long", Fact{Connected: true, Synced: true, Outcome: confirmed(func(o *member.Outcome) { o.HubVersion = strings.Repeat("v", maxWhole+1) })}, ""},
	} {
		in.Facts = map[string]Fact{"a": step.fact}
		if status, _ = Status(status, in); status.Clusters[0].Version != step.want {
			t.Errorf("after %s, the row has version %q, want %q", step.name, status.Clusters[0].Version, step.want)
		}
	}
}
