package schedule

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement"
	"github.com/hanse-dev/hanse/replicas"
)

// nothingNew are the reasons for which a cluster keeps the replicas that it has and gets no more of them.
var nothingNew = map[string]bool{
	hubv1.ReasonClusterNotReady: true, hubv1.ReasonUnschedulable: true, hubv1.ReasonTaintNotTolerated: true,
	hubv1.ReasonNamespaceNotAllowed: true, hubv1.ReasonKindNotServed: true, hubv1.ReasonVersionNotServed: true, hubv1.ReasonDraining: true,
	hubv1.ReasonRemovalHeld: true,
}

// divide gives the chosen clusters their shares, if the placement divides. A cluster that would get the object only to have no replicas of it
// is not chosen; one that has it keeps it, with none: a division never withdraws. rest is how many replicas have no room.
func (f facts) divide(p *plan, d *placement.Decision, winner hubv1.PlacementObject) (rest, total int64, err error) {
	spec := winner.PlacementSpec()
	p.spec.Division = nil
	for i := range p.spec.Clusters {
		if e := &p.spec.Clusters[i]; e.State != hubv1.TargetEvicting || !spec.Replicas.Divides() { // which keeps what it had
			e.Replicas = nil
		}
	}
	if !spec.Replicas.Divides() {
		return 0, 0, nil
	}
	field, err := replicas.Locate(f.id.GroupKind(), spec, f.template, f.scalePath)
	if err != nil {
		return 0, 0, err
	}
	in, by, err := f.divisible(p, d, spec, field)
	if err != nil {
		return 0, 0, err
	}
	division, err := replicas.Divide(in)
	if err != nil {
		return 0, 0, err
	}
	if f.replayed != nil {
		f.replayed.Division = &ReplayedDivision{Field: field, Input: in, Result: division}
	}
	p.spec.Division = by
	p.spec.Clusters = slices.DeleteFunc(p.spec.Clusters, func(e hubv1.BindingTarget) bool {
		return e.State == hubv1.TargetPresent && division.Shares[e.Name] == 0 && field.Total > 0 && f.spec().Target(e.Name) == nil
	})
	for i := range p.spec.Clusters {
		if e := &p.spec.Clusters[i]; e.State == hubv1.TargetPresent {
			e.Replicas = ptr.To(int32(division.Shares[e.Name]))
		}
	}
	idle(p, d)
	return division.Rest, field.Total, nil
}

// divisible gathers what a division depends on, and what the binding says of it.
func (f facts) divisible(p *plan, d *placement.Decision, spec *hubv1.PlacementSpec, field replicas.Field) (replicas.Input, *hubv1.Division, error) {
	way := spec.Replicas.Way()
	by := &hubv1.Division{Path: field.Path}
	in := replicas.Input{By: way.By, Total: field.Total, Key: f.id.Namespace + "/" + f.id.Name, Rebalance: ptr.Deref(way.Rebalance, false)}
	terms, err := replicas.TermsOf(way)
	if err != nil {
		return in, nil, err
	}
	room := func(*replicas.Cluster, *hubv1.MemberCluster) {}
	if fits(spec) {
		requests, err := replicas.Requests(&spec.Replicas, f.template)
		if err != nil {
			return in, nil, err
		}
		if by.TermsHash, err = replicas.TermsHash(way, requests); err != nil {
			return in, nil, err
		}
		sameTerms := f.spec().Division != nil && *f.spec().Division == *by
		room = func(c *replicas.Cluster, m *hubv1.MemberCluster) {
			allocatable, known, wait := f.capacities.of(m, f.now)
			c.Room = replicas.Room(allocatable, requests)
			in.Unsettled = in.Unsettled || wait > 0 && sameTerms
			p.again = earlier(p.again, wait)
			if !known {
				c.Room = ptr.Deref(c.Held, 0) // nobody has looked at its nodes
			}
		}
	}
	closed := map[string]bool{}
	for _, t := range d.Targets {
		closed[t.Cluster] = nothingNew[t.Reason]
	}
	for _, e := range p.spec.Clusters {
		if e.State != hubv1.TargetPresent {
			continue
		}
		held, settled := f.share(e.Name, field)
		m := f.world.cluster(e.Name)
		if m == nil { // it keeps what it has, whatever that is
			in.Clusters = append(in.Clusters, replicas.Cluster{Name: e.Name, Held: held, Fixed: true})
			continue
		}
		c := terms.Cluster(e.Name, f.memory.see(m).Labels)
		c.Held, c.Fixed = held, settled
		room(&c, m)
		if closed[e.Name] && held != nil { // without a share until now it has all of them: that is less in any case
			c.Max = min(c.Max, *held)
		}
		in.Clusters = append(in.Clusters, c)
	}
	return in, by, nil
}

// fits says whether the division asks how many replicas fit into a cluster.
func fits(spec *hubv1.PlacementSpec) bool {
	by := spec.Replicas.Way().By
	return spec.Replicas.Divides() && (by == hubv1.DivideByCapacity || by == hubv1.DivideByPack)
}

// share is what a cluster has until now, nil if it has no share of this number. It is settled if the member would not take another one.
func (f facts) share(cluster string, field replicas.Field) (held *int64, settled bool) {
	e := f.spec().Target(cluster)
	if e == nil || e.Replicas == nil || f.spec().Division == nil || f.spec().Division.Path != field.Path {
		return nil, false
	}
	return ptr.To(int64(*e.Replicas)), field.Fixed && f.spec().ObjectRef.UID == f.template.GetUID()
}

// idle moves the targets that got no entry to the rejected clusters.
func idle(p *plan, d *placement.Decision) {
	d.Targets = slices.DeleteFunc(slices.Clone(d.Targets), func(t placement.Target) bool {
		if p.spec.Target(t.Cluster) != nil {
			return false
		}
		d.Rejected = append(d.Rejected, placement.Rejection{Cluster: t.Cluster, Reason: hubv1.ReasonNoReplicas, Message: "its share of the replicas is 0", Score: t.Score})
		return true
	})
}

// withRest says of a decision that replicas have no room, unless there is something worse to say.
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

// suggestion is the scale path of the object's kind, read only if a placement in sight fails to say where its replicas are.
func (s *Scheduler) suggestion(ctx context.Context, kind schema.GroupKind, placements []hubv1.PlacementObject) string {
	if s.ScalePath == nil {
		return ""
	}
	for _, p := range placements {
		spec := p.PlacementSpec()
		if replicas.NeedsPath(kind, &spec.Replicas) && slices.ContainsFunc(spec.ResourceSelectors, func(r hubv1.ResourceSelector) bool {
			return r.APIGroup == kind.Group && (r.Kind == kind.Kind || r.Kind == everyKind)
		}) {
			return s.ScalePath(ctx, kind)
		}
	}
	return ""
}
