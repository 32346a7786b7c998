package policystatus

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// rows returns an object of an operator with a binding that has these rows, and a target for each.
func rows(id hubv1.ObjectIdentity, rows ...hubv1.ClusterRow) bundled {
	b := hubv1.NewBinding(id.BindingKey())
	for _, r := range rows {
		b.BindingSpec().Clusters = append(b.BindingSpec().Clusters, hubv1.BindingTarget{Name: r.Name, State: hubv1.TargetPresent})
	}
	b.BindingStatus().Clusters = rows
	return bundled{id, 1, b}
}

func healthy(cluster string) hubv1.ClusterRow {
	return hubv1.ClusterRow{Name: cluster, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy}
}

func TestTheStatusOfAnOperatorNamesTheClustersWhereItIsNotReady(t *testing.T) {
	t.Parallel()
	deployment := hubv1.ObjectIdentity{Group: "apps", Kind: "Deployment", Namespace: "turbines", Name: "rotors"}
	definition := hubv1.ObjectIdentity{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "rotors.example.com"}
	role := hubv1.ObjectIdentity{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "rotors"}
	progressing := hubv1.ClusterRow{Name: "us", Applied: metav1.ConditionTrue, Health: hubv1.HealthProgressing, Message: "0/1 replicas are available"}
	refused := hubv1.ClusterRow{Name: "us", Applied: metav1.ConditionFalse, Health: hubv1.HealthHealthy, Message: "no right to create"}
	absent := rows(deployment, healthy("eu"))
	absent.binding.BindingSpec().Clusters[0].State = hubv1.TargetAbsent
	tests := map[string]struct {
		objects      []bundled
		total, ready int32
		notReady     []hubv1.OperatorOnCluster
	}{
		"an operator without bindings is on no cluster": {objects: []bundled{{id: deployment}}},
		"all objects are healthy everywhere": {
			objects: []bundled{rows(deployment, healthy("eu"), healthy("us")), rows(definition, healthy("eu"), healthy("us"))}, total: 2, ready: 2,
		},
		"a workload is not healthy on one cluster": {
			objects: []bundled{rows(deployment, healthy("eu"), progressing), rows(definition, healthy("eu"), healthy("us"))}, total: 2, ready: 1,
			notReady: []hubv1.OperatorOnCluster{{Name: "us", Message: "Deployment.apps turbines/rotors is Progressing: 0/1 replicas are available"}},
		},
		"a copy is not applied on one cluster": {
			objects: []bundled{rows(deployment, healthy("eu"), refused)}, total: 2, ready: 1,
			notReady: []hubv1.OperatorOnCluster{{Name: "us", Message: "Deployment.apps turbines/rotors is Unknown: no right to create"}},
		},
		"a definition has no decision for one cluster": {
			objects: []bundled{rows(deployment, healthy("eu")), rows(definition)}, total: 1,
			notReady: []hubv1.OperatorOnCluster{{Name: "eu", Message: "CustomResourceDefinition.apiextensions.k8s.io rotors.example.com has no decision for the cluster"}},
		},
		"roles do not matter":                           {objects: []bundled{rows(deployment, healthy("eu")), rows(role, progressing)}, total: 1, ready: 1},
		"a cluster that the operator leaves is no more": {objects: []bundled{absent}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var o hubv1.FederatedOperator
			foldOperator(&o, tc.objects)
			if o.Status.Total != tc.total || o.Status.Ready != tc.ready {
				t.Errorf("%d of %d clusters are ready", o.Status.Ready, o.Status.Total)
			}
			if diff := cmp.Diff(tc.notReady, o.Status.NotReady); diff != "" {
				t.Errorf("not ready (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("at most 100 clusters are named", func(t *testing.T) {
		var all []hubv1.ClusterRow
		for i := range 150 {
			r := progressing
			r.Name = fmt.Sprintf("c-%03d", i)
			all = append(all, r)
		}
		var o hubv1.FederatedOperator
		foldOperator(&o, []bundled{rows(deployment, all...)})
		if len(o.Status.NotReady) != 100 || o.Status.NotReady[99].Name != "c-099" || o.Status.Total != 150 || o.Status.Ready != 0 {
			t.Errorf("%d clusters are named, up to %s; total %d, ready %d", len(o.Status.NotReady), o.Status.NotReady[99].Name, o.Status.Total, o.Status.Ready)
		}
	})
}
