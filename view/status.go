package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/overrides"
)

// Status is the output of the command status for one object.
type Status struct {
	Object Object `json:"object"`
	// Silence says since when no hub runs. It is absent while a hub runs, and for users who may not read the hub's Lease.
	Silence *Silence `json:"silence,omitempty"`
	// NotFederated says why there is no binding. If it is set, Federated is empty.
	NotFederated *NotFederated `json:"notFederated,omitempty"`
	Federated

	// decided is the generation of the binding. Each decision increases this generation. For some seconds after a
	// decision, a condition may still have an older observedGeneration.
	decided int64
}

// Federated is the part of the status that comes from the binding.
type Federated struct {
	Placement       *hubv1.PlacementReference `json:"placement,omitempty"`
	OtherPlacements []string                  `json:"otherPlacements,omitempty"`
	// StatusTo says where the hub writes the merged status.
	StatusTo   *StatusTo             `json:"statusTo,omitempty"`
	Summary    *hubv1.BindingSummary `json:"summary,omitempty"`
	Replicas   *Replicas             `json:"replicas,omitempty"`
	Conditions []metav1.Condition    `json:"conditions,omitempty"`
	Clusters   []Row                 `json:"clusters,omitempty"`
	// Unplaced has the selected clusters that do not get the object. It is absent if every cluster that the placement
	// selects gets the object.
	Unplaced *Unplaced `json:"unplaced,omitempty"`
	Regions  []Region  `json:"regions,omitempty"`
	OnObject *OnObject `json:"onObject,omitempty"`
	// Rollout is the state of the object's rollout. It is absent if the placement has no rollout.
	Rollout *hubv1.BindingRollout `json:"rollout,omitempty"`
	// BundleRollout is the rollout of the bundle that contains the object. The text shows it instead of Rollout.
	BundleRollout *BundleRollout `json:"bundleRollout,omitempty"`
	Waiting       []Wait         `json:"waiting,omitempty"`
	// NotSent has the labels, annotations, finalizers and owner references of the hub object that its copies do not get,
	// such as "label argocd.argoproj.io/instance".
	NotSent []string `json:"notSent,omitempty"`
}

// Silence means that no hub renews its Lease. The displayed state is then the last state that a hub has written.
type Silence struct {
	// Since is the time at which a hub last renewed its Lease. It is absent if the Lease was never renewed.
	Since *metav1.Time `json:"since,omitempty"`
}

// Object names a hub object.
type Object struct {
	Group      string `json:"group,omitempty"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	Generation int64  `json:"generation,omitempty"`
	// State says whether the hub object exists: Present, Deleting (it has a deletionTimestamp) or Deleted.
	State string `json:"state"`
	// Bundle is the bundle that contains the object, such as "Bundle shop/web". It is empty for an object of the hub.
	Bundle string `json:"bundle,omitempty"`
}

// These are the states of an Object.
const (
	Present  = "Present"
	Deleting = "Deleting"
	Deleted  = "Deleted"
)

// StatusTo says where the hub writes the merged status.
type StatusTo struct {
	// Mode says where the hub writes the merged status: OnObject means the hub object and the binding, BindingOnly means
	// only the binding. It is Pending before the hub's first report.
	Mode    string `json:"mode"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// LeftOut are status fields that the hub leaves out of the merged status, because their values cannot be merged.
	LeftOut []string `json:"leftOut,omitempty"`
}

// Replicas has the sums of the replicas of the copies that shall stay. It leaves out copies that have no replicas.
type Replicas struct {
	ReadyLive      int64 `json:"readyLive"`
	ReadyLastKnown int64 `json:"readyLastKnown"` // on unreachable clusters, or on all while no hub runs
	Total          int64 `json:"total"`
}

// Region counts the copies of the object in one region, and has the sums of their replicas.
type Region struct {
	Region  string `json:"region"` // empty for clusters without a region
	Applied int    `json:"applied"`
	Healthy int    `json:"healthy"`
	Unknown int    `json:"unknown"`
	Total   int    `json:"total"`
	// Replicas and ReadyReplicas are the last known sums over the copies of the object. They are absent if no copy has
	// them.
	Replicas      *int64 `json:"replicas,omitempty"`
	ReadyReplicas *int64 `json:"readyReplicas,omitempty"`
}

// OnObject is the status of the hub object itself.
type OnObject struct {
	Integers map[string]int64 `json:"integers,omitempty"`
	// Available and Ready are the statuses of the conditions with these types. They are empty if the object has no such
	// condition.
	Available string `json:"available,omitempty"`
	Ready     string `json:"ready,omitempty"`
}

// Wait is a cluster for which the hub waits: the cluster does not answer, or a copy is to be removed from it.
type Wait struct {
	Cluster string `json:"cluster"`
	Reason  string `json:"reason,omitempty"`
	// Withdrawing is true if the copy of the object is to be removed from the cluster.
	Withdrawing bool `json:"withdrawing,omitempty"`
	// Replaced is true if other clusters replace this cluster. The copy on this cluster is removed when the copies on the
	// other clusters are healthy.
	Replaced bool `json:"replaced,omitempty"`
	// Away is true if the cluster does not answer.
	Away bool `json:"away,omitempty"`
	// MayBeLost is true if the cluster has not been observed for an hour although a hub runs. Only then does the output
	// suggest to abandon the copy.
	MayBeLost bool `json:"mayBeLost,omitempty"`
}

// StatusInput has the inputs of a Status.
type StatusInput struct {
	ID hubv1.ObjectIdentity
	// Object is the hub object, or nil if it was deleted. Binding is the binding of the object, or nil if the object has
	// no binding.
	Object  *unstructured.Unstructured
	Binding hubv1.BindingObject
	Members []hubv1.MemberCluster
	// Silence says since when no hub runs. It is nil while a hub runs. If no hub runs, Digests has by cluster the digest
	// of the manifest that a hub would send now, if the digest is known.
	Silence *Silence
	Digests map[string]string
	// Blind is true if the user may not read the hub's Lease. A cluster then counts as live only if it was observed
	// recently.
	Blind bool
	// BundleRollout is the rollout of the bundle that contains the object, see RolloutOfBundle. It may be nil.
	BundleRollout *BundleRollout
	Now           time.Time
}

// Of returns the status of an object.
func Of(in StatusInput) Status {
	s := Status{Object: objectOf(in.ID, in.Object), Silence: in.Silence}
	if in.Binding == nil {
		return s
	}
	spec, status := in.Binding.BindingSpec(), in.Binding.BindingStatus()
	s.Object.Bundle = BundleOf(spec.ObjectRef)
	byName := map[string]*hubv1.MemberCluster{}
	for i := range in.Members {
		byName[in.Members[i].Name] = &in.Members[i]
	}
	s.Placement, s.OtherPlacements, s.Conditions = spec.PlacementRef, status.OtherPlacements, status.Conditions
	s.StatusTo, s.Unplaced = statusTo(status.Conditions), unplacedOf(in.Binding)
	s.Rollout, s.BundleRollout, s.decided = spec.Rollout, in.BundleRollout, in.Binding.GetGeneration()
	summary := status.Summary
	summary.Desired = 0 // the status may belong to an earlier decision
	if in.Silence != nil {
		summary.Applied = 0 // the counts of the hub may be outdated
	}
	for _, t := range spec.Clusters {
		row := rowOf(t, status.Row(t.Name), byName[t.Name], in.Now)
		row.unsure = in.Blind && row.lastObserved == nil
		if in.Silence != nil {
			digest := in.Digests[t.Name] // digest of the newest revision
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
			// The hub counted this copy in summary.Healthy when it last observed the cluster. The copy's health is unknown now.
			if row.lastKnown() && row.Health == hubv1.HealthHealthy {
				summary.Healthy = max(summary.Healthy-1, 0)
			}
		}
		s.Clusters = append(s.Clusters, row)
	}
	s.Summary = &summary
	slices.SortFunc(s.Clusters, func(a, b Row) int { return cmp.Compare(a.Cluster, b.Cluster) })
	s.Replicas = sum(s.Clusters)
	s.Regions = regions(s.Clusters)
	s.Waiting = waiting(s.Clusters)
	if in.Object != nil {
		s.NotSent = overrides.Dropped(in.Object, nil)
	}
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
	if bundle := hubv1.BundleOf(object); bundle != nil {
		o.Bundle = bundle.String()
	}
	if object.GetDeletionTimestamp() != nil {
		o.State = Deleting
	}
	return o
}

// leftOut is the start of the message of the condition StatusWritten if the hub could not merge all fields.
const leftOut = "left out: "

func statusTo(conditions []metav1.Condition) *StatusTo {
	c := meta.FindStatusCondition(conditions, hubv1.ConditionStatusWritten)
	switch {
	case c == nil:
		return &StatusTo{Mode: "Pending"}
	case c.Status == metav1.ConditionTrue:
		to := &StatusTo{Mode: string(hubv1.StatusOnObject), Reason: c.Reason, Message: c.Message}
		if fields, ok := strings.CutPrefix(c.Message, leftOut); ok {
			fields, _, _ = strings.Cut(fields, "; ") // the second part is a rule of the placement that cannot be followed
			to.LeftOut = strings.Split(fields, ", ")
		}
		return to
	}
	return &StatusTo{Mode: string(hubv1.StatusBindingOnly), Reason: c.Reason, Message: c.Message}
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
		switch {
		case row.lastKnown() || row.Health == hubv1.HealthUnknown:
			r.Unknown++
		case row.Health == hubv1.HealthHealthy:
			r.Healthy++
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
		c, _ := c.(map[string]any)
		switch c["type"] {
		case "Available":
			out.Available, _ = c["status"].(string)
		case "Ready":
			out.Ready, _ = c["status"].(string)
		}
	}
	return out
}
