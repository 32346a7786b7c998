package policystatus

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/operator"
)

// mostNotReady is how many clusters the status of a FederatedOperator names.
const mostNotReady = 100

// foldOperator counts the clusters that the operator is placed on, and names the clusters on which it is not ready.
func foldOperator(o *hubv1.FederatedOperator, objects []bundled) {
	on := map[string][]operator.Object{}
	for _, b := range objects {
		if !operator.Needs(b.id) || b.binding == nil {
			continue
		}
		for _, t := range b.binding.BindingSpec().Clusters {
			if t.State != hubv1.TargetAbsent {
				on[t.Name] = nil
			}
		}
	}
	status := &o.Status
	status.Total, status.Ready, status.NotReady = int32(len(on)), 0, nil
	for cluster := range on {
		for _, b := range objects {
			if operator.Needs(b.id) {
				on[cluster] = append(on[cluster], b.on(cluster))
			}
		}
		if waits := operator.WaitsFor(on[cluster]); waits != "" {
			status.NotReady = append(status.NotReady, hubv1.OperatorOnCluster{Name: cluster, Message: hubv1.CutMessage(waits, 256)})
			continue
		}
		status.Ready++
	}
	slices.SortFunc(status.NotReady, func(a, b hubv1.OperatorOnCluster) int { return cmp.Compare(a.Name, b.Name) })
	status.NotReady = status.NotReady[:min(len(status.NotReady), mostNotReady)]
}

// on returns the object as its row describes the copy on a cluster.
func (o bundled) on(cluster string) operator.Object {
	out := operator.Object{ObjectIdentity: o.id}
	if o.binding == nil {
		return out
	}
	target := o.binding.BindingSpec().Target(cluster)
	out.Placed = target != nil && target.State != hubv1.TargetAbsent
	row := o.binding.BindingStatus().Row(cluster)
	switch {
	case row == nil:
	case row.Applied != metav1.ConditionTrue:
		out.Health, out.Message = hubv1.HealthUnknown, row.Message
	default:
		out.Health, out.Message = row.Health, row.Message
	}
	return out
}
