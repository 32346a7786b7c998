package dispatch

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	testclock "k8s.io/utils/clock/testing"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

const twoForFour = ".spec.replicas 2 instead of 4"

// changedCopy returns a cluster that changes what the hub writes, and whose watch shows a settled copy.
func changedCopy() *fakeCluster {
	seen := &member.Observation{Owner: object, OwnerUID: "hub", CopyState: member.CopyState{UID: "u", ResourceVersion: "20", Digest: "d", Hash: "h"}}
	changed := member.Outcome{
		Applied: metav1.ConditionTrue, Reason: hubv1.ReasonChangedByCluster, Message: member.ChangedMessage(twoForFour), Changed: twoForFour, CopyState: seen.CopyState,
	}
	return &fakeCluster{seen: seen, synced: true, answer: changed}
}

// settledRun compares the copy, as a run does with the row or the record of the last write.
func settledRun(t *testing.T, r *run) (*wanted, member.Outcome) {
	t.Helper()
	w := &wanted{
		digest: "d", manifest: &unstructured.Unstructured{Object: map[string]any{}}, record: record{gvk: kind},
		lastConfirmed: lastConfirmed{confirmed: "h", confirmedDigest: "d", changed: twoForFour},
	}
	o, known, _ := r.compare(w)
	if !known || !w.settled || o.Reason != hubv1.ReasonChangedByCluster || o.Changed != twoForFour || o.Applied != metav1.ConditionTrue {
		t.Fatalf("known %t, settled %t: %+v", known, w.settled, o)
	}
	return w, o
}

func TestACopyThatTheClusterChangesIsTriedAgainMoreAndMoreSlowly(t *testing.T) {
	cluster := changedCopy()
	r := newRun(cluster, 0)
	at := now
	var pauses []time.Duration
	for range 9 {
		w, settled := settledRun(t, r)
		o := r.again(t.Context(), w, settled)
		if o.Retry != member.RetryAfter || o.Changed != twoForFour {
			t.Fatalf("%+v", o)
		}
		pauses = append(pauses, o.After)
		before := cluster.applies
		if w, settled = settledRun(t, r); r.again(t.Context(), w, settled).After != o.After || cluster.applies != before {
			t.Errorf("an event before the time wrote the copy, or changed the time")
		}
		at = at.Add(o.After)
		r.queue.copies.clock = testclock.NewFakePassiveClock(at)
	}
	want := []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 32 * time.Minute, time.Hour, time.Hour}
	if diff := cmp.Diff(want, pauses); diff != "" {
		t.Errorf("pauses, -want +got:\n%s", diff)
	}
	if cluster.applies != len(want)-1 {
		t.Errorf("%d writes", cluster.applies)
	}
}

func TestTheValuesOfTheHubReturnWhenTheClusterChangesThemNoMore(t *testing.T) {
	cluster := changedCopy()
	r := newRun(cluster, 0)
	w, settled := settledRun(t, r)
	r.again(t.Context(), w, settled)
	r.queue.copies.clock = testclock.NewFakePassiveClock(now.Add(calm))
	cluster.answer = member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied, Wrote: true, CopyState: member.CopyState{UID: "u", ResourceVersion: "21", Digest: "d", Hash: "h2"}}
	w, settled = settledRun(t, r)
	o := r.again(t.Context(), w, settled)
	if o.Reason != hubv1.ReasonApplied || o.Changed != "" || o.Retry != member.RetryNever {
		t.Errorf("%+v", o)
	}
	if last := r.queue.copies.get(r.key).last; last.Hash != "h2" || last.Changed != "" {
		t.Errorf("recorded %+v", last)
	}
	if r.queue.copies.states[r.key].extra != nil {
		t.Error("the copy is tried for ever")
	}
}

func TestAWriteThatFailsLeavesAChangedCopyApplied(t *testing.T) {
	cluster := changedCopy()
	r := newRun(cluster, 0)
	r.queue.copies.alteredWait(r.key)
	r.queue.copies.clock = testclock.NewFakePassiveClock(now.Add(calm))
	cluster.answer = member.Outcome{Applied: metav1.ConditionUnknown, Reason: hubv1.ReasonServerError, Retry: member.RetrySoon}
	w, settled := settledRun(t, r)
	o := r.again(t.Context(), w, settled)
	if cluster.applies != 1 || o.Reason != hubv1.ReasonChangedByCluster || o.Applied != metav1.ConditionTrue || o.After != time.Minute {
		t.Errorf("%d writes: %+v", cluster.applies, o)
	}
}

func TestASuspendedClusterGetsAChangedCopyNotAgain(t *testing.T) {
	cluster := changedCopy()
	r := newRun(cluster, 0)
	p := &hubv1.Placement{}
	p.Spec.Suspend.Clusters = []string{"eu"}
	r.in.placement = p
	r.queue.copies.alteredWait(r.key)
	r.queue.copies.clock = testclock.NewFakePassiveClock(now.Add(calm))
	w, settled := settledRun(t, r)
	if o := r.again(t.Context(), w, settled); cluster.applies != 0 || o.Applied != metav1.ConditionTrue {
		t.Errorf("%d writes: %+v", cluster.applies, o)
	}
}
