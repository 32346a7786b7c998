package decide

import (
	"cmp"
	"slices"
	"strings"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Loss is a copy that a cluster loses by a decision.
type Loss struct {
	Cluster, Reason, Message string
	// Policy determines whether the copy is deleted, or stays without the hub's labels and annotations.
	Policy hubv1.RemovalPolicy
	// Removal is the removal of the copy, as an input for package guard. Removal is nil if the guard does not judge this
	// removal.
	Removal *Removal
}

// losses returns the copies that clusters lose by the plan p.
func (i Input) losses(p Plan) []Loss {
	if i.Binding == nil || p.Spec == nil {
		return nil
	}
	var out []Loss
	for _, e := range p.Spec.Clusters {
		before := i.Spec().Target(e.Name)
		if e.State != hubv1.TargetAbsent || before == nil || before.State == hubv1.TargetAbsent {
			continue
		}
		l := Loss{Cluster: e.Name, Reason: e.Absent.Reason, Policy: e.Absent.Policy, Message: p.Status.rejection(e.Name)}
		if (input{Input: i}).orphansAdopted(e.Name) {
			l.Policy = hubv1.RemovalOrphan
		}
		out = append(out, l)
	}
	if len(out) == 0 {
		return nil
	}
	judged := claimedRemovals(i)
	for n := range out {
		at := slices.IndexFunc(judged, func(r Removal) bool { return r.Cluster == out[n].Cluster && r.Reason == out[n].Reason })
		if at >= 0 {
			out[n].Removal, out[n].Message = &judged[at], cmp.Or(judged[at].Message, out[n].Message)
		}
	}
	return out
}

// rejection returns the message that says why a cluster was not chosen. It is empty if the status has no such message.
func (s Status) rejection(cluster string) string {
	if s.Decision == nil {
		return ""
	}
	for _, r := range s.Decision.Rejected {
		for _, example := range r.Examples {
			if message, ok := strings.CutPrefix(example, cluster+": "); ok {
				return message
			}
		}
	}
	return ""
}
