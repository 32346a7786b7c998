package dispatch

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

func TestADigestDoesNotSeeWhatIsLeftToTheMember(t *testing.T) {
	manifest := func(replicas, size int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": replicas, "size": size}}}
	}
	r := newRun(&fakeCluster{}, 0)
	r.out.rendering = &rendering{}
	all := r.digest(manifest(3, 1))
	p := &hubv1.Placement{}
	p.Spec.Apply.MemberOwnedFields = []string{"/spec/replicas"}
	r.in.placement = p
	m := manifest(3, 1)
	owned := r.digest(m)
	if owned == all {
		t.Error("leaving a field to the member changes nothing")
	}
	if diff := cmp.Diff(manifest(3, 1), m); diff != "" {
		t.Errorf("the manifest was changed: %s", diff)
	}
	if r.digest(manifest(9, 1)) != owned || r.digest(manifest(3, 2)) == owned {
		t.Error("the field is seen, or another one is not")
	}
}

func TestAnOutcomeKeepsItsNoteWhileNothingChanges(t *testing.T) {
	seen := &member.Observation{Owner: object, OwnerUID: "hub", CopyState: member.CopyState{UID: "u", ResourceVersion: "20", Digest: "d", Hash: "h"}}
	r := newRun(&fakeCluster{seen: seen, synced: true}, 0)
	w := &wanted{digest: "d", record: record{gvk: kind}, lastConfirmed: lastConfirmed{confirmed: "h", confirmedDigest: "d", noteReason: hubv1.ReasonAutoscaled, note: "left"}}
	if o, known, _ := r.compare(w); !known || o.Reason != hubv1.ReasonAutoscaled || o.Message != "left" || o.Applied != metav1.ConditionTrue {
		t.Errorf("%+v", o)
	}
	w.noteReason = hubv1.ReasonPending
	if o, _, _ := r.compare(w); o.Reason != hubv1.ReasonApplied || o.Message != "" {
		t.Errorf("%+v", o)
	}
}

func TestACopyIsContestedWhileAFightLasts(t *testing.T) {
	seen := &member.Observation{Owner: object, OwnerUID: "hub", CopyState: member.CopyState{UID: "u", ResourceVersion: "20", Digest: "d", Hash: "h"}}
	r := newRun(&fakeCluster{seen: seen, synced: true}, 0)
	r.out.rendering = &rendering{}
	for range fightRounds {
		r.queue.copies.corrected(r.key, member.FieldDrift{Path: ".spec.replicas", Manager: "tuner"})
	}
	w := func() *wanted {
		return &wanted{digest: "d", record: record{gvk: kind}, lastConfirmed: lastConfirmed{confirmed: "h", confirmedDigest: "d"}}
	}
	if o, _, _ := r.compare(w()); o.Reason != hubv1.ReasonContested || o.Applied != metav1.ConditionTrue || o.Retry != member.RetryAfter {
		t.Errorf("%+v", o)
	}
	r.queue.copies.clock = testclock.NewFakePassiveClock(now.Add(fightRounds*calm + time.Second))
	if o, _, _ := r.compare(w()); o.Reason != hubv1.ReasonApplied || o.Retry != member.RetryNever {
		t.Errorf("%+v", o)
	}
}

func TestAPlacementThatOnlyReportsNeverWithdraws(t *testing.T) {
	p := &hubv1.Placement{}
	p.Spec.Apply.Mode = hubv1.ApplyReportOnly
	for name, seen := range map[string]*member.Observation{
		"nothing that is watched": nil, "a copy": {Owner: object, OwnerUID: "hub", CopyState: member.CopyState{UID: types.UID("u"), ResourceVersion: "20"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(&fakeCluster{seen: seen, synced: true}, 0) // a call of Withdraw would panic
			r.in.placement = p
			r.target = &hubv1.BindingTarget{Name: "eu", State: hubv1.TargetAbsent, Absent: &hubv1.Absence{UID: "hub", Policy: hubv1.RemovalDelete}}
			o, known := r.withdraw(t.Context())
			if !known || o.Reason != hubv1.ReasonWithdrawn || (seen != nil) != (o.UID == "u") {
				t.Errorf("%+v", o)
			}
		})
	}
}
