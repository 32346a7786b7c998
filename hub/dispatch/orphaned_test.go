package dispatch

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// leavingMember accepts every apply, unless fails is true. It orphans the copy at every withdrawal. It records the last
// apply and the last withdrawal.
type leavingMember struct {
	*fakeMember
	applied   member.ApplyIntent
	withdrawn member.WithdrawIntent
	fails     bool
}

// Apply implements member.Cluster.
func (m *leavingMember) Apply(ctx context.Context, in member.ApplyIntent) member.Outcome {
	m.applied = in
	if m.fails {
		return member.Outcome{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonFieldConflict}
	}
	o := m.fakeMember.Apply(ctx, in)
	o.Adopted = in.Orphaned != nil && in.Orphaned.Adopted
	return o
}

// Withdraw implements member.Cluster.
func (m *leavingMember) Withdraw(_ context.Context, in member.WithdrawIntent) member.Outcome {
	m.withdrawn = in
	delete(m.copies, in.Owner.Name)
	return member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonWithdrawn, Wrote: true, Orphaned: &hubv1.OrphanedCopy{UID: "w", Digest: in.ConfirmedDigest, Adopted: in.Adopted}}
}

func TestWhatWasLeftOnAClusterIsKnownWhenTheClusterIsATargetAgain(t *testing.T) {
	m := &leavingMember{fakeMember: takes("eu")}
	w := newWorld(t, m.fakeMember)
	q, err := newQueue("eu", w.dispatcher.opts, w.dispatcher.fresh, w.dispatcher.renderings)
	if err != nil {
		t.Fatal(err)
	}
	b := w.add(kind, "w")
	b.Status.Clusters = []hubv1.ClusterRow{{Name: "eu", UID: "w", Digest: "d0", Hash: "h0", Adopted: true}}
	run := func(state hubv1.TargetState) member.Outcome {
		t.Helper()
		b.Spec.Clusters = []hubv1.BindingTarget{{Name: "eu", State: state}}
		if state == hubv1.TargetAbsent {
			b.Spec.Clusters[0].Absent = &hubv1.Absence{Reason: "NotSelected", UID: "w", Policy: hubv1.RemovalOrphan}
		}
		b.Generation++
		r := &run{queue: q, key: hubv1.ObjectOf(b).BindingKey(), binding: b, target: &b.Spec.Clusters[0], cluster: m}
		if err := r.gather(t.Context()); err != nil {
			t.Fatal(err)
		}
		step := r.apply
		if state == hubv1.TargetAbsent {
			step = r.withdraw
		}
		o, _ := step(t.Context())
		return o
	}
	left := &hubv1.OrphanedCopy{ClusterID: "id-eu", UID: "w", Digest: "d0", Adopted: true}
	if diff := cmp.Diff(left, run(hubv1.TargetAbsent).Orphaned); diff != "" {
		t.Errorf("what the withdrawal tells (-want +got):\n%s", diff)
	}
	if !m.withdrawn.Adopted || m.withdrawn.PolicyIfAdopted != hubv1.RemovalOrphan {
		t.Errorf("the withdrawal does not know that the copy was adopted: %+v", m.withdrawn)
	}
	if diff := cmp.Diff(left, run(hubv1.TargetAbsent).Orphaned); diff != "" {
		t.Errorf("what it tells once more (-want +got):\n%s", diff)
	}
	// The target is wanted again before the binding's status shows the orphaned copy. This process remembers the orphaned
	// copy, also if the first try fails.
	m.fails = true
	for range 2 {
		run(hubv1.TargetPresent)
		if diff := cmp.Diff(left, m.applied.Orphaned); diff != "" {
			t.Errorf("what is to be taken back (-want +got):\n%s", diff)
		}
	}
	m.fails = false
	if o := run(hubv1.TargetPresent); !o.Adopted {
		t.Errorf("%+v", o)
	}
	if o := run(hubv1.TargetPresent); !o.Adopted || m.served != 1 {
		t.Errorf("after %d writes: %+v", m.served, o)
	}
	// A new process reads the orphaned copy from the status, and only the copy of this cluster.
	q.forget(hubv1.ObjectOf(b).BindingKey())
	m.copies, b.Status.Clusters = nil, nil
	b.Status.Orphaned = []hubv1.OrphanedCopy{{ClusterID: "id-us", UID: "x"}, *left}
	run(hubv1.TargetPresent)
	if diff := cmp.Diff(left, m.applied.Orphaned); diff != "" {
		t.Errorf("what a new process is to take back (-want +got):\n%s", diff)
	}
}
