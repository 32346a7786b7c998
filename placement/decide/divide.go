package decide

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement"
	"github.com/hanse-dev/hanse/placement/replicas"
)

// nothingNew has the reasons for which a chosen cluster may keep the object but must get no additional replicas. An
// example is that the cluster is drained.
var nothingNew = map[string]bool{
	hubv1.ReasonClusterNotReady: true, hubv1.ReasonUnschedulable: true, hubv1.ReasonTaintNotTolerated: true,
	hubv1.ReasonNamespaceNotAllowed: true, hubv1.ReasonKindNotServed: true, hubv1.ReasonVersionNotServed: true, hubv1.ReasonDraining: true,
	hubv1.ReasonRemovalHeld: true,
}

// divide gives each chosen cluster its share, if the placement divides replicas. A new cluster whose share would be 0
// does not get the object. A cluster that already has the object keeps its copy, if necessary with 0 replicas, because
// a division never withdraws a copy. rest is the number of replicas for which no cluster has room, and total is the
// number of all replicas.
func (in input) divide(p *Plan, d *placement.Decision, winner hubv1.PlacementObject) (rest, total int64, err error) {
	spec := winner.PlacementSpec()
	p.Spec.Division = nil
	for i := range p.Spec.Clusters {
		// An entry with the state Evicting keeps its number of replicas while the placement divides replicas.
		if e := &p.Spec.Clusters[i]; e.State != hubv1.TargetEvicting || !spec.Replicas.Divides() {
			e.Replicas = nil
		}
	}
	if !spec.Replicas.Divides() {
		return 0, 0, nil
	}
	field, err := replicas.Locate(in.Object.ID.GroupKind(), spec, in.Object.Template, in.Object.ScalePath)
	if err != nil {
		return 0, 0, err
	}
	ask, by, err := in.divisible(p, d, spec, field)
	if err != nil {
		return 0, 0, err
	}
	division, err := replicas.Divide(ask)
	if err != nil {
		return 0, 0, err
	}
	if in.replay != nil {
		in.replay.Division = &ReplayedDivision{Field: field, Input: ask, Result: division}
	}
	p.Spec.Division = by
	p.Spec.Clusters = slices.DeleteFunc(p.Spec.Clusters, func(e hubv1.BindingTarget) bool {
		return e.State == hubv1.TargetPresent && division.Shares[e.Name] == 0 && field.Total > 0 && in.Spec().Target(e.Name) == nil
	})
	for i := range p.Spec.Clusters {
		if e := &p.Spec.Clusters[i]; e.State == hubv1.TargetPresent || e.Returns() {
			e.Replicas = ptr.To(int32(division.Shares[e.Name]))
		}
	}
	rejectZeroShares(p, d)
	return division.Rest, field.Total, nil
}

// divisible returns the input of package replicas for this division, and the record of the division for spec.division
// of the binding.
func (in input) divisible(p *Plan, d *placement.Decision, spec *hubv1.PlacementSpec, field replicas.Field) (replicas.Input, *hubv1.Division, error) {
	way := spec.Replicas.Way()
	by := &hubv1.Division{Path: field.Path}
	ask := replicas.Input{By: way.By, Total: field.Total, Key: in.Object.ID.Namespace + "/" + in.Object.ID.Name, Rebalance: ptr.Deref(way.Rebalance, false)}
	terms, err := replicas.TermsOf(way)
	if err != nil {
		return ask, nil, err
	}
	room := func(*replicas.Cluster, *hubv1.MemberCluster) {}
	if DividesByCapacity(spec) {
		requests, err := replicas.Requests(&spec.Replicas, in.Object.Template)
		if err != nil {
			return ask, nil, err
		}
		if by.TermsHash, err = replicas.TermsHash(way, requests); err != nil {
			return ask, nil, err
		}
		sameTerms := in.Spec().Division != nil && *in.Spec().Division == *by
		room = func(c *replicas.Cluster, m *hubv1.MemberCluster) {
			capacity, known := in.capacity(m)
			c.Room = replicas.Room(capacity.Allocatable, requests)
			ask.Unsettled = ask.Unsettled || capacity.SettlesIn > 0 && sameTerms
			p.Again = earlier(p.Again, capacity.SettlesIn)
			if !known {
				c.Room = ptr.Deref(c.Held, 0) // the hub has never read the nodes of the cluster
			}
		}
	}
	closed := map[string]bool{}
	for _, t := range d.Targets {
		closed[t.Cluster] = nothingNew[t.Reason]
	}
	for _, e := range p.Spec.Clusters {
		if e.State != hubv1.TargetPresent && !e.Returns() {
			continue
		}
		held, settled := in.share(e.Name, field)
		m := in.Facts.Cluster(e.Name)
		if m == nil { // the MemberCluster is deleted: the cluster keeps its share
			ask.Clusters = append(ask.Clusters, replicas.Cluster{Name: e.Name, Held: held, Fixed: true})
			continue
		}
		c := terms.Cluster(e.Name, in.Memo.cluster(m).Labels)
		c.Held, c.Fixed = held, settled
		room(&c, m)
		if closed[e.Name] && held != nil { // the cluster had no share, so it has all replicas and will get fewer
			c.Max = min(c.Max, *held)
		}
		ask.Clusters = append(ask.Clusters, c)
	}
	return ask, by, nil
}

// DividesByCapacity reports whether a placement divides replicas by the capacity of clusters.
func DividesByCapacity(spec *hubv1.PlacementSpec) bool {
	by := spec.Replicas.Way().By
	return spec.Replicas.Divides() && (by == hubv1.DivideByCapacity || by == hubv1.DivideByPack)
}

// share returns the number of replicas that the binding records for a cluster. held is nil if the binding records no
// number for this field of the object. settled is true if the cluster must keep the number, because API servers refuse
// any change of the field.
func (in input) share(cluster string, field replicas.Field) (held *int64, settled bool) {
	e := in.Spec().Target(cluster)
	if e == nil || e.Replicas == nil || in.Spec().Division == nil || in.Spec().Division.Path != field.Path {
		return nil, false
	}
	return ptr.To(int64(*e.Replicas)), field.Fixed && in.Spec().ObjectRef.UID == in.Object.Template.GetUID()
}

// rejectZeroShares moves chosen clusters from d.Targets to d.Rejected if the plan has no entry for them, because their
// share of the replicas is 0.
func rejectZeroShares(p *Plan, d *placement.Decision) {
	d.Targets = slices.DeleteFunc(slices.Clone(d.Targets), func(t placement.Target) bool {
		if p.Spec.Target(t.Cluster) != nil {
			return false
		}
		d.Rejected = append(d.Rejected, placement.Rejection{Cluster: t.Cluster, Reason: hubv1.ReasonNoReplicas, Message: "its share of the replicas is 0", Score: t.Score})
		return true
	})
}

// withRest returns the condition Scheduled with the number of replicas for which no cluster has room. rest is this
// number, and total is the number of all replicas. If rest is 0, the condition does not change. Otherwise a true
// condition becomes false.
func withRest(c metav1.Condition, rest, total int64) metav1.Condition {
	if rest == 0 {
		return c
	}
	message := fmt.Sprintf("%s; %d of %d replicas have no room", c.Message, rest, total)
	if c.Status != metav1.ConditionTrue {
		return condition(c.Status, c.Reason, message)
	}
	return condition(metav1.ConditionFalse, hubv1.ReasonReplicasUnplaced, message)
}
