package decide_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

// A Widget of 10 replicas is divided among the clusters in Europe.
func ExampleDecide() {
	cluster := func(name, region string) *hubv1.MemberCluster {
		return &hubv1.MemberCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"region": region}},
			Spec:       hubv1.MemberClusterSpec{AllowedNamespaces: hubv1.AllowedNamespaces{From: hubv1.NamespacesFromAll}},
			Status:     hubv1.MemberClusterStatus{Conditions: []metav1.Condition{{Type: hubv1.ConditionReady, Status: metav1.ConditionTrue}}},
		}
	}
	europe := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "europe"}}
	europe.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: "example.com", Kind: "Widget"}}
	europe.Spec.Clusters.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"region": "eu"}}
	europe.Spec.Replicas = hubv1.ReplicasPolicy{Type: hubv1.ReplicasDivide, Path: "/spec/replicas"}

	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": "shop", "name": "web"},
		"spec":     map[string]any{"replicas": int64(10)},
	}}
	plan := decide.Decide(decide.Input{
		Object: decide.Object{ID: hubv1.IdentityOf(widget), Template: widget},
		Facts: decide.Facts{
			Placements: []hubv1.PlacementObject{europe},
			Clusters:   []*hubv1.MemberCluster{cluster("fra", "eu"), cluster("par", "eu"), cluster("sin", "asia")},
		},
		Now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	})
	fmt.Println(plan.Status.Scheduled.Reason+":", plan.Status.Scheduled.Message)
	for _, target := range plan.Spec.Clusters {
		fmt.Println(target.Name, target.State, ptr.Deref(target.Replicas, 0))
	}
	// Output:
	// Scheduled: 2 of 3 clusters: 1 not selected
	// fra Present 5
	// par Present 5
}
