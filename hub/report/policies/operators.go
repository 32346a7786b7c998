package policies

import (
	"cmp"
	"context"
	"slices"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/operator"
)

// maxNotReady is the maximum number of clusters that the status of a FederatedOperator names as not ready.
const maxNotReady = 100

// foldOperator counts the clusters on which the operator is placed, and lists those on which the operator is not ready.
// The numbers and the list are in the operator's status.
func foldOperator(o *hubv1.FederatedOperator, objects []bundled) {
	status, on := &o.Status, operator.Clusters(storedOf(objects))
	status.Total, status.Ready, status.NotReady = int32(len(on)), 0, nil
	for _, c := range on {
		switch {
		case c.WaitsFor == "":
			status.Ready++
		case len(status.NotReady) < maxNotReady:
			status.NotReady = append(status.NotReady, hubv1.OperatorOnCluster{Name: c.Name, Message: hubv1.CutMessage(c.WaitsFor, 256)})
		}
	}
}

func storedOf(objects []bundled) []operator.Stored {
	var out []operator.Stored
	for _, b := range objects {
		out = append(out, operator.Stored{ObjectIdentity: b.id, Binding: b.binding, NotOn: b.notOn})
	}
	return out
}

// writeFacts writes the state of an operator on each cluster into status.operators of the MemberCluster. objects are
// all objects that the hub has stored for the operator. again is the time after which writeFacts must be called again,
// or 0.
func (p *bundles) writeFacts(ctx context.Context, name string, objects []bundled) (again time.Duration, err error) {
	fleet, err := p.Clusters.Current(ctx)
	if err != nil {
		return 0, err
	}
	wasInstalled := map[string]bool{}
	for _, c := range fleet.Clusters {
		wasInstalled[c.Name] = slices.ContainsFunc(c.Status.Operators, func(f hubv1.OperatorFact) bool { return f.Name == name && f.Installed })
	}
	facts := operator.Facts(name, storedOf(objects), wasInstalled)
	for _, before := range fleet.Clusters {
		fact, placed := facts[before.Name]
		now := withoutFact(before.Status.Operators, name)
		if placed {
			now = withFact(now, fact)
		}
		if slices.Equal(before.Status.Operators, now) {
			continue
		}
		after := before.DeepCopy()
		after.Status.Operators = now
		written, err := write(ctx, p.Client, before, after)
		if err != nil {
			return 0, err
		}
		if !written {
			again = foldEvery // nothing was written, because the MemberCluster changed after the read
		}
	}
	return again, nil
}

func withoutFact(facts []hubv1.OperatorFact, name string) []hubv1.OperatorFact {
	return slices.DeleteFunc(slices.Clone(facts), func(f hubv1.OperatorFact) bool { return f.Name == name })
}

// withFact returns the facts together with the given one, sorted by the operator's name. A fact is the state of one
// operator on a cluster. If there are too many, it drops the last ones.
func withFact(facts []hubv1.OperatorFact, fact hubv1.OperatorFact) []hubv1.OperatorFact {
	facts = slices.Concat(facts, []hubv1.OperatorFact{fact})
	slices.SortFunc(facts, func(a, b hubv1.OperatorFact) int { return cmp.Compare(a.Name, b.Name) })
	return facts[:min(len(facts), hubv1.MaxOperators)]
}
