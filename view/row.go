package view

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/rollup"
)

// Row is the state of an object on one cluster.
type Row struct {
	Cluster string            `json:"cluster"`
	Region  string            `json:"region,omitempty"`
	State   hubv1.TargetState `json:"state"`
	// Generation is the generation of the hub object that the cluster holds.
	Generation int64 `json:"generation,omitempty"`
	// Revision is the number of the object's revision that the cluster holds. It is absent if the placement has no
	// rollout.
	Revision int64 `json:"revision,omitempty"`
	Report
	// Away is true while the hub does not observe the cluster. The row then has the last known state.
	Away bool `json:"away,omitempty"`
	// LastObservedTime is the time at which the hub last observed the copy. It is absent while the hub still observes
	// the copy, and if the time is not known.
	LastObservedTime   *metav1.Time `json:"lastObservedTime,omitempty"`
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
	// UID is the UID of the copy. Digest is the digest of the manifest that the copy was last confirmed to have.
	UID    types.UID `json:"uid,omitempty"`
	Digest string    `json:"digest,omitempty"`

	liveness
}

// Report is the state of a copy as the binding records it: whether the copy has the wanted content, its replicas and
// its health.
type Report struct {
	Applied  metav1.ConditionStatus `json:"applied"`
	Ready    *int64                 `json:"ready,omitempty"`
	Replicas *int64                 `json:"replicas,omitempty"`
	Health   hubv1.Health           `json:"health"`
	Reason   string                 `json:"reason,omitempty"`
	Message  string                 `json:"message,omitempty"`
	// ChangedByCluster names fields that the cluster has stored with other values than the hub sent.
	ChangedByCluster string `json:"changedByCluster,omitempty"`
}

// why returns the reason and the message. If they do not say that the cluster has changed values, it adds the fields.
func (r Report) why() string {
	text := why(r.Reason, r.Message)
	if r.ChangedByCluster != "" && r.Reason != hubv1.ReasonChangedByCluster {
		text += "; " + hubv1.ReasonChangedByCluster + ": " + r.ChangedByCluster
	}
	return text
}

// liveness tells whether a row may be out of date.
type liveness struct {
	noRow        bool         // the binding has no row for the cluster
	silent       bool         // no hub runs
	unsure       bool         // it is not known whether a hub runs
	overdue      bool         // see MemberCluster.IsOverdue: the hub does not observe the cluster
	lastObserved *metav1.Time // status.lastObservedTime of the MemberCluster
	mayBeLost    bool         // see MemberCluster.MayBeLost: not observed for an hour
}

func rowOf(t hubv1.BindingTarget, r *hubv1.ClusterRow, m *hubv1.MemberCluster, now time.Time) Row {
	row := Row{Cluster: t.Name, State: t.State, Report: Report{Applied: metav1.ConditionUnknown, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonPending}}
	if m != nil {
		row.Region, row.lastObserved, row.mayBeLost = region(m), m.Status.LastObservedTime, m.MayBeLost(now)
		row.overdue = m.IsOverdue(now)
	}
	if r == nil {
		row.Away, row.noRow = away(m), true
		return row
	}
	row.Generation, row.Reason, row.Message, row.LastObservedTime = r.Generation, r.Reason, r.Message, r.LastObservedTime
	row.Revision, row.ChangedByCluster = r.Revision, r.ChangedByCluster
	row.LastTransitionTime, row.UID, row.Digest = r.LastTransitionTime, r.UID, r.Digest
	row.Applied = cmp.Or(r.Applied, metav1.ConditionUnknown)
	row.Health = cmp.Or(r.Health, hubv1.HealthUnknown)
	row.Away = r.LastObservedTime != nil || away(m)
	// The row may lack lastObservedTime: if the cluster has been away only for a moment, or if no hub runs to write it.
	// The row then gets the time from the status of the MemberCluster.
	if row.LastObservedTime == nil && r.UID != "" && (row.Away || row.overdue) {
		row.LastObservedTime = row.lastObserved
	}
	row.Ready, row.Replicas = rollup.Replicas(r.Observed)
	return row
}

// during changes a row while no hub runs. digest is the digest of the manifest that a hub would send now, or empty if
// this digest is not known. If the hub observed the copy until the hub stopped, LastObservedTime becomes the time of
// this last observation. If Applied is True but the copy is not known to have this digest, Applied becomes Unknown.
func (r *Row) during(silence *Silence, digest string) {
	r.silent, r.mayBeLost = true, false
	if r.noRow {
		return
	}
	if !r.Away {
		r.LastObservedTime = silence.Since
		if silence.Since == nil || r.lastObserved.Before(silence.Since) {
			r.LastObservedTime = r.lastObserved
		}
	}
	if r.Applied != metav1.ConditionTrue || r.Reason == hubv1.ReasonIsTemplate || (digest != "" && digest == r.Digest) {
		return
	}
	r.Applied, r.Reason = metav1.ConditionUnknown, hubv1.ReasonPending
	r.Message = "the desired content has changed, but no hub runs to write it"
	if digest == "" || r.Digest == "" {
		r.Message = "no hub runs, so it is unknown whether the cluster holds the desired content"
	}
}

// Copy returns the state of the copy, such as Healthy or Unknown.
func (r Row) Copy() rollup.CopyState {
	return rollup.StateOf(r.State, &hubv1.ClusterRow{Applied: r.Applied, Health: r.Health, Reason: r.Reason}, !r.lastKnown())
}

// lastKnown reports whether the row may be out of date.
func (r Row) lastKnown() bool { return r.Away || r.silent || r.overdue }

// away reports whether the hub marks the cluster as unreachable.
func away(m *hubv1.MemberCluster) bool {
	return m != nil && m.IsAway()
}
