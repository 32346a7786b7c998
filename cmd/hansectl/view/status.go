package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/rollup"
)

// Status is what `status` shows of one object.
type Status struct {
	Object Object `json:"object"`
	// Silence is absent while a hub runs, and for users who may not know.
	Silence *Silence `json:"silence,omitempty"`
	// NotFederated says why there is no binding; every field below is empty then.
	NotFederated *NotFederated `json:"notFederated,omitempty"`

	Placement       *hubv1.PlacementReference `json:"placement,omitempty"`
	OtherPlacements []string                  `json:"otherPlacements,omitempty"`
	// StatusTo says where the merged status goes.
	StatusTo   *StatusTo             `json:"statusTo,omitempty"`
	Summary    *hubv1.BindingSummary `json:"summary,omitempty"`
	Replicas   *Replicas             `json:"replicas,omitempty"`
	Conditions []metav1.Condition    `json:"conditions,omitempty"`
	Clusters   []Row                 `json:"clusters,omitempty"`
	// Unplaced is absent if every cluster that the placement selects gets the object.
	Unplaced *Unplaced `json:"unplaced,omitempty"`
	Regions  []Region  `json:"regions,omitempty"`
	OnObject *OnObject `json:"onObject,omitempty"`
	// Rollout is absent if the placement has none.
	Rollout *hubv1.BindingRollout `json:"rollout,omitempty"`
	Waiting []Wait                `json:"waiting,omitempty"`

	withdrawing string // from how many clusters, in words
	// decided is the generation of the binding: its last decision. Conditions may be of an earlier one for some seconds.
	decided int64
}

// Silence means that no hub renews its Lease: what is shown is what one wrote last.
type Silence struct {
	// Since is when the Lease was last renewed; absent if it never was.
	Since *metav1.Time `json:"since,omitempty"`
}

// Object names a hub object.
type Object struct {
	Group      string `json:"group,omitempty"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	Generation int64  `json:"generation,omitempty"`
	// State is Present, Deleting (it has a deletionTimestamp) or Deleted.
	State string `json:"state"`
}

// States of an Object.
const (
	Present  = "Present"
	Deleting = "Deleting"
	Deleted  = "Deleted"
)

// StatusTo says where the merged status goes.
type StatusTo struct {
	// Mode is OnObject, BindingOnly, or Pending while the hub has not said.
	Mode    string `json:"mode"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// LeftOut are status fields that cannot be merged.
	LeftOut []string `json:"leftOut,omitempty"`
}

// Row is one cluster's part.
type Row struct {
	Cluster string            `json:"cluster"`
	Region  string            `json:"region,omitempty"`
	State   hubv1.TargetState `json:"state"`
	// Generation of the hub object that the cluster holds.
	Generation int64 `json:"generation,omitempty"`
	// Revision that the cluster holds; absent without a rollout.
	Revision int64                  `json:"revision,omitempty"`
	Applied  metav1.ConditionStatus `json:"applied"`
	Ready    *int64                 `json:"ready,omitempty"`
	Replicas *int64                 `json:"replicas,omitempty"`
	Health   hubv1.Health           `json:"health"`
	Reason   string                 `json:"reason,omitempty"`
	Message  string                 `json:"message,omitempty"`
	// Away is true while the hub does not hear the cluster: the row says what was last known.
	Away bool `json:"away,omitempty"`
	// LastObservedTime is as of when the row is; absent while it is live, and if that is not known.
	LastObservedTime   *metav1.Time `json:"lastObservedTime,omitempty"`
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
	// UID of the copy, and Digest of the manifest that it was last confirmed to be made from.
	UID    types.UID `json:"uid,omitempty"`
	Digest string    `json:"digest,omitempty"`

	unheard   bool         // the cluster has not reported on the object
	silent    bool         // no hub runs that would hear it
	unsure    bool         // whether a hub runs that would hear it is not known
	overdue   bool         // the hub has not said for long that it observes the cluster
	sight     *metav1.Time // when the hub last observed the cluster, as far as it has said
	mayBeLost bool         // it has not been observed for an hour
}

// Replicas sums up the rows that have replicas.
type Replicas struct {
	ReadyLive      int64 `json:"readyLive"`
	ReadyLastKnown int64 `json:"readyLastKnown"` // on clusters that are away, or all while no hub runs
	Total          int64 `json:"total"`
}

// Region sums up the clusters of one region.
type Region struct {
	Region  string `json:"region"` // empty for clusters without one
	Applied int    `json:"applied"`
	Healthy int    `json:"healthy"`
	Unknown int    `json:"unknown"`
	Total   int    `json:"total"`
	// Replicas and those that are ready, as last known; absent if no copy says so.
	Replicas      *int64 `json:"replicas,omitempty"`
	ReadyReplicas *int64 `json:"readyReplicas,omitempty"`
}

// OnObject is what the hub object's own status says.
type OnObject struct {
	Integers map[string]int64 `json:"integers,omitempty"`
	// Available is the status of the condition Available; empty if there is none.
	Available string `json:"available,omitempty"`
}

// Wait is a cluster that is waited for.
type Wait struct {
	Cluster string `json:"cluster"`
	Reason  string `json:"reason,omitempty"`
	// Withdrawing is true if the object is to go from there.
	Withdrawing bool `json:"withdrawing,omitempty"`
	// Replaced is true if others have taken its place, and the copy goes when they are healthy.
	Replaced bool `json:"replaced,omitempty"`
	// Away is true if the cluster does not answer.
	Away bool `json:"away,omitempty"`
	// MayBeLost is true if it has not been observed for an hour although a hub runs: only then it is offered to give it
	// up.
	MayBeLost bool `json:"mayBeLost,omitempty"`
}

// StatusInput is what a Status is made of.
type StatusInput struct {
	ID hubv1.ObjectIdentity
	// Object is nil if it is deleted, Binding nil if there is none.
	Object  *unstructured.Unstructured
	Binding hubv1.BindingObject
	Members []hubv1.MemberCluster
	// Silence is nil while a hub runs. During one, Digests by cluster are those of what the hub would send now, as far as
	// that is known.
	Silence *Silence
	Digests map[string]string
	// Blind is true if the user may not see whether a hub runs: then only a cluster that says when it was observed can be
	// live.
	Blind bool
	Now   time.Time
}

// Of returns the status of an object.
func Of(in StatusInput) Status {
	s := Status{Object: objectOf(in.ID, in.Object), Silence: in.Silence}
	if in.Binding == nil {
		return s
	}
	spec, status := in.Binding.BindingSpec(), in.Binding.BindingStatus()
	byName := map[string]*hubv1.MemberCluster{}
	for i := range in.Members {
		byName[in.Members[i].Name] = &in.Members[i]
	}
	s.Placement, s.OtherPlacements, s.Conditions = spec.PlacementRef, status.OtherPlacements, status.Conditions
	s.StatusTo, s.Unplaced, s.withdrawing = statusTo(status.Conditions), unplacedOf(in.Binding), Withdrawing(in.Binding)
	s.Rollout, s.decided = spec.Rollout, in.Binding.GetGeneration()
	summary := status.Summary
	summary.Desired = 0 // the status may be of an earlier decision
	if in.Silence != nil {
		summary.Applied = 0 // what the hub counted may have changed since
	}
	for _, t := range spec.Clusters {
		row := rowOf(t, status.Row(t.Name), byName[t.Name], in.Now)
		row.unsure = in.Blind && row.sight == nil
		if in.Silence != nil {
			digest := in.Digests[t.Name] // of the newest revision
			if s.Rollout != nil && t.Revision != s.Rollout.Newest {
				digest = ""
			}
			row.during(in.Silence, digest)
		}
		if t.State == hubv1.TargetPresent {
			summary.Desired++
			if in.Silence != nil && row.Applied == metav1.ConditionTrue {
				summary.Applied++
			}
		}
		s.Clusters = append(s.Clusters, row)
	}
	s.Summary = &summary
	slices.SortFunc(s.Clusters, func(a, b Row) int { return cmp.Compare(a.Cluster, b.Cluster) })
	s.Replicas = sum(s.Clusters)
	s.Regions = regions(s.Clusters)
	s.Waiting = waiting(s.Clusters)
	if in.Object != nil && s.StatusTo.Mode == string(hubv1.StatusOnObject) {
		s.OnObject = onObject(in.Object)
	}
	return s
}

func objectOf(id hubv1.ObjectIdentity, object *unstructured.Unstructured) Object {
	o := Object{Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name, State: Deleted}
	if object == nil {
		return o
	}
	o.Generation, o.State = object.GetGeneration(), Present
	if object.GetDeletionTimestamp() != nil {
		o.State = Deleting
	}
	return o
}

// leftOut starts the message of StatusWritten if fields could not be merged.
const leftOut = "left out: "

func statusTo(conditions []metav1.Condition) *StatusTo {
	c := meta.FindStatusCondition(conditions, hubv1.ConditionStatusWritten)
	switch {
	case c == nil:
		return &StatusTo{Mode: "Pending"}
	case c.Status == metav1.ConditionTrue:
		to := &StatusTo{Mode: string(hubv1.StatusOnObject), Reason: c.Reason, Message: c.Message}
		if fields, ok := strings.CutPrefix(c.Message, leftOut); ok {
			fields, _, _ = strings.Cut(fields, "; ") // why a rule of the placement cannot be followed
			to.LeftOut = strings.Split(fields, ", ")
		}
		return to
	}
	return &StatusTo{Mode: string(hubv1.StatusBindingOnly), Reason: c.Reason, Message: c.Message}
}

func rowOf(t hubv1.BindingTarget, r *hubv1.ClusterRow, m *hubv1.MemberCluster, now time.Time) Row {
	row := Row{Cluster: t.Name, State: t.State, Applied: metav1.ConditionUnknown, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonPending}
	if m != nil {
		row.Region, row.sight, row.mayBeLost = region(m), m.Status.LastObservedTime, m.MayBeLost(now)
	}
	if r == nil {
		row.Away, row.unheard = away(m), true
		return row
	}
	row.Generation, row.Reason, row.Message, row.LastObservedTime = r.Generation, r.Reason, r.Message, r.LastObservedTime
	row.Revision = r.Revision
	row.LastTransitionTime, row.UID, row.Digest = r.LastTransitionTime, r.UID, r.Digest
	row.Applied = cmp.Or(r.Applied, metav1.ConditionUnknown)
	row.Health = cmp.Or(r.Health, hubv1.HealthUnknown)
	row.Away = r.LastObservedTime != nil || away(m)
	row.overdue = m != nil && overdue(m, now)
	if row.LastObservedTime == nil && r.UID != "" && (row.Away || row.overdue) { // the cluster may come back in a moment, or no hub runs
		row.LastObservedTime = row.sight
	}
	row.Ready, row.Replicas = rollup.Replicas(r.Observed)
	return row
}

// during dates a row that would be live if a hub ran, and takes back what it says of Applied unless digest shows that
// it still holds: digest is that of what the hub would send now, or empty.
func (r *Row) during(silence *Silence, digest string) {
	r.silent, r.mayBeLost = true, false
	if r.unheard {
		return
	}
	if !r.Away {
		r.LastObservedTime = silence.Since
		if silence.Since == nil || r.sight.Before(silence.Since) {
			r.LastObservedTime = r.sight
		}
	}
	if r.Applied != metav1.ConditionTrue || r.Reason == hubv1.ReasonIsTemplate || (digest != "" && digest == r.Digest) {
		return
	}
	r.Applied, r.Reason = metav1.ConditionUnknown, hubv1.ReasonPending
	r.Message = "the hub would send another content now, but no hub runs"
	if digest == "" || r.Digest == "" {
		r.Message = "no hub runs, so it is unknown whether the cluster holds the desired content"
	}
}

// lastKnown is true for a row that may say what is no longer so.
func (r Row) lastKnown() bool { return r.Away || r.silent || r.overdue }

// away is true for a cluster of which the hub says that it does not answer.
func away(m *hubv1.MemberCluster) bool {
	if m == nil {
		return false
	}
	ready := meta.FindStatusCondition(m.Status.Conditions, hubv1.ConditionReady)
	return ready != nil && ready.Status != metav1.ConditionTrue && ready.Reason != hubv1.ReasonLeaving
}

func sum(rows []Row) *Replicas {
	var r Replicas
	found := false
	for _, row := range rows {
		if row.State != hubv1.TargetPresent || row.Ready == nil || row.Replicas == nil {
			continue
		}
		found = true
		r.Total += *row.Replicas
		if row.lastKnown() {
			r.ReadyLastKnown += *row.Ready
		} else {
			r.ReadyLive += *row.Ready
		}
	}
	if !found {
		return nil
	}
	return &r
}

func regions(rows []Row) []Region {
	byName := map[string]*Region{}
	for _, row := range rows {
		if row.State != hubv1.TargetPresent {
			continue
		}
		r := byName[row.Region]
		if r == nil {
			r = &Region{Region: row.Region}
			byName[row.Region] = r
		}
		r.Total++
		if row.Applied == metav1.ConditionTrue {
			r.Applied++
		}
		r.Replicas, r.ReadyReplicas = plus(r.Replicas, row.Replicas), plus(r.ReadyReplicas, row.Ready)
		switch row.Health {
		case hubv1.HealthHealthy:
			r.Healthy++
		case hubv1.HealthUnknown:
			r.Unknown++
		}
	}
	var out []Region
	for _, r := range byName {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b Region) int { return cmp.Compare(a.Region, b.Region) })
	return out
}

func plus(sum, n *int64) *int64 {
	switch {
	case n == nil:
		return sum
	case sum == nil:
		sum = new(int64)
	}
	both := *sum + *n
	return &both
}

func waiting(rows []Row) []Wait {
	var out []Wait
	for _, row := range rows {
		withdrawing := row.State == hubv1.TargetAbsent && row.Reason != hubv1.ReasonWithdrawn
		replaced := row.State == hubv1.TargetEvicting
		if row.Away || withdrawing || replaced {
			out = append(out, Wait{Cluster: row.Cluster, Reason: row.Reason, Withdrawing: withdrawing, Replaced: replaced, Away: row.Away, MayBeLost: row.Away && row.mayBeLost})
		}
	}
	return out
}

func onObject(object *unstructured.Unstructured) *OnObject {
	out := &OnObject{Integers: map[string]int64{}}
	status, _, _ := unstructured.NestedMap(object.Object, "status")
	for name, value := range status {
		if n, ok := value.(int64); ok && name != "observedGeneration" {
			out.Integers[name] = n
		}
	}
	conditions, _, _ := unstructured.NestedSlice(status, "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Available" {
			out.Available, _ = c["status"].(string)
		}
	}
	return out
}
