package policystatus

import (
	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/operator"
)

// mostNotReady is how many clusters the status of a FederatedOperator names.
const mostNotReady = 100

// foldOperator counts the clusters that the operator is placed on, and names the clusters on which it is not ready.
func foldOperator(o *hubv1.FederatedOperator, objects []bundled) {
	var stored []operator.Stored
	for _, b := range objects {
		stored = append(stored, operator.Stored{ObjectIdentity: b.id, Binding: b.binding})
	}
	status, on := &o.Status, operator.Clusters(stored)
	status.Total, status.Ready, status.NotReady = int32(len(on)), 0, nil
	for _, c := range on {
		switch {
		case c.WaitsFor == "":
			status.Ready++
		case len(status.NotReady) < mostNotReady:
			status.NotReady = append(status.NotReady, hubv1.OperatorOnCluster{Name: c.Name, Message: hubv1.CutMessage(c.WaitsFor, 256)})
		}
	}
}
