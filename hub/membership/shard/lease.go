package shard

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
)

const (
	// leaseLabel is a label of all Leases of this package. Its value is peerLease or fenceLease.
	leaseLabel = hubv1.Prefix + "lease"
	peerLease  = "replica"
	fenceLease = "member"
	// seatLabel is a label of a peer Lease. Its value is the identity of the replica.
	seatLabel = hubv1.Prefix + "replica"

	peerPrefix  = "hanse-replica-"
	fencePrefix = "hanse-member-"
)

const (
	// leaseLasts is how long a peer Lease is valid after it was renewed.
	leaseLasts = 15 * time.Second
	renewEvery = leaseLasts / 3
	// requestTimeout is the timeout of one request for a Lease. It leaves time for two attempts to renew a Lease before
	// the Lease expires.
	requestTimeout = (leaseLasts-renewEvery)/2 - pace.RetryAfter
)

func newPeerLease(namespace, id, seat string, notes map[string]string, now time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: peerPrefix + id, Labels: map[string]string{leaseLabel: peerLease, seatLabel: seat}, Annotations: notes,
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &id, LeaseDurationSeconds: ptr.To(int32(leaseLasts / time.Second)),
			AcquireTime: ptr.To(metav1.NewMicroTime(now)), RenewTime: ptr.To(metav1.NewMicroTime(now)),
		},
	}
}

func newFence(namespace, member, holder string) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fencePrefix + member, Labels: map[string]string{leaseLabel: fenceLease}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder},
	}
}

func holderOf(l *coordinationv1.Lease) string { return ptr.Deref(l.Spec.HolderIdentity, "") }
