package operator_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/operator"
)

// stored returns an object with a target for each row.
func stored(id hubv1.ObjectIdentity, rows ...hubv1.ClusterRow) operator.Stored {
	b := hubv1.NewBinding(id.BindingKey())
	for _, r := range rows {
		b.BindingSpec().Clusters = append(b.BindingSpec().Clusters, hubv1.BindingTarget{Name: r.Name, State: hubv1.TargetPresent})
	}
	b.BindingStatus().Clusters = rows
	return operator.Stored{ObjectIdentity: id, Binding: b}
}

func TestClusters(t *testing.T) {
	t.Parallel()
	deployment := hubv1.ObjectIdentity{Group: "apps", Kind: "Deployment", Namespace: "turbines", Name: "rotors"}
	definition := hubv1.ObjectIdentity{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "rotors.example.com"}
	account := hubv1.ObjectIdentity{Kind: "ServiceAccount", Namespace: "turbines", Name: "rotors"}
	healthy := func(cluster string) hubv1.ClusterRow {
		return hubv1.ClusterRow{Name: cluster, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy}
	}
	evicting := stored(deployment, healthy("us"))
	evicting.Binding.BindingSpec().Clusters[0].State = hubv1.TargetEvicting
	unreported := stored(deployment, healthy("eu"), healthy("us"))
	unreported.Binding.BindingStatus().Clusters = unreported.Binding.BindingStatus().Clusters[:1]
	for name, tc := range map[string]struct {
		objects []operator.Stored
		want    []operator.Cluster
	}{
		"clusters are sorted by name":                              {[]operator.Stored{stored(deployment, healthy("us"), healthy("eu"))}, []operator.Cluster{{Name: "eu"}, {Name: "us"}}},
		"a cluster that the operator moves away from still counts": {[]operator.Stored{evicting}, []operator.Cluster{{Name: "us"}}},
		"a cluster with other objects alone does not count":        {[]operator.Stored{stored(deployment, healthy("eu")), stored(account, healthy("us"))}, []operator.Cluster{{Name: "eu"}}},
		"a definition without a binding is waited for everywhere": {
			[]operator.Stored{stored(deployment, healthy("eu")), {ObjectIdentity: definition}},
			[]operator.Cluster{{Name: "eu", WaitsFor: "CustomResourceDefinition.apiextensions.k8s.io rotors.example.com has no decision for the cluster"}},
		},
		"another object that the cluster refuses is the cause": {
			[]operator.Stored{
				stored(deployment, hubv1.ClusterRow{Name: "eu", Reason: hubv1.ReasonBundleNotReady, Applied: metav1.ConditionFalse}),
				stored(account, hubv1.ClusterRow{Name: "eu", Reason: hubv1.ReasonForbidden, Applied: metav1.ConditionFalse, Message: "the hub may not create it"}),
			},
			[]operator.Cluster{{Name: "eu", WaitsFor: "ServiceAccount turbines/rotors cannot be written: the hub may not create it, and 1 more"}},
		},
		"an object that the revision of a cluster does not have is not waited for": {
			[]operator.Stored{
				stored(deployment, healthy("eu"), healthy("us")), {ObjectIdentity: definition, NotOn: func(cluster string) bool { return cluster == "eu" }},
			},
			[]operator.Cluster{{Name: "eu"}, {Name: "us", WaitsFor: "CustomResourceDefinition.apiextensions.k8s.io rotors.example.com has no decision for the cluster"}},
		},
		"a cluster without a report is waited for": {
			[]operator.Stored{unreported}, []operator.Cluster{{Name: "eu"}, {Name: "us", WaitsFor: "Deployment.apps turbines/rotors is not on the cluster"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, operator.Clusters(tc.objects)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestABindingShowsWhichClustersHoldARevisionWithoutTheObject(t *testing.T) {
	t.Parallel()
	b := hubv1.NewBinding(hubv1.ObjectIdentity{Group: "apps", Kind: "Deployment", Namespace: "turbines", Name: "rotors"}.BindingKey())
	b.BindingSpec().Clusters = []hubv1.BindingTarget{
		{Name: "has", State: hubv1.TargetPresent},
		{Name: "loses", State: hubv1.TargetAbsent, Absent: &hubv1.Absence{Reason: hubv1.ReasonNotInRevision}},
		{Name: "left", State: hubv1.TargetAbsent, Absent: &hubv1.Absence{Reason: hubv1.ReasonNotSelected}},
	}
	b.BindingStatus().Decision = &hubv1.DecisionStatus{Rejected: []hubv1.RejectedClusters{
		{Reason: hubv1.ReasonNotInRevision, Count: 1, Examples: []string{"later: the bundle has not reached the cluster yet"}},
		{Reason: hubv1.ReasonExcluded, Count: 1, Examples: []string{"excluded: by a rule"}},
	}}
	for cluster, want := range map[string]bool{"has": false, "loses": true, "left": false, "later": true, "late": false, "excluded": false} {
		if got := operator.NotInRevision(b)(cluster); got != want {
			t.Errorf("%s: %t", cluster, got)
		}
	}
}
