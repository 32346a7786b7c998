package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Definitions of databases have as many fields as this one. The member decides whether it takes them.
func TestADefinitionOfMoreThanAMebibyteTravels(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	fields := map[string]any{}
	for i := range 1200 {
		fields[fmt.Sprintf("field%d", i)] = map[string]any{
			"type": "object", "description": strings.Repeat("it sets one thing or another ", 36),
			"properties": map[string]any{"value": map[string]any{"type": "string"}, "count": map[string]any{"type": "integer"}},
		}
	}
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "giants.test.hanse.dev", "labels": map[string]any{"giant": ns}},
		"spec": map[string]any{
			"group": "test.hanse.dev", "scope": "Namespaced",
			"names": map[string]any{"plural": "giants", "singular": "giant", "kind": "Giant", "listKind": "GiantList"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object", "properties": fields}}},
			}}},
		},
	}}
	if text, err := json.Marshal(crd.Object); err != nil || len(text) < 5<<20>>2 || len(text) > 3<<20>>1 {
		t.Fatalf("%d bytes, %v: more than 1.25 MiB, and less than what API servers store, are wanted", len(text), err)
	}
	p := &hubv1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: "giant-" + ns}, Spec: hubv1.ClusterPlacementSpec{PlacementSpec: hubv1.PlacementSpec{
		ResourceSelectors: []hubv1.ResourceSelector{{
			APIGroup: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"giant": ns}},
		}},
		Clusters: hubv1.ClusterSelection{Names: []string{frankfurt}},
		Deletion: hubv1.DeletionPolicy{WhenDeleted: hubv1.RemovalDelete},
	}}}
	must(t, suite.Hub.Create(ctx, p))
	must(t, suite.Hub.Create(ctx, crd.DeepCopy()))
	eventually(t, time.Minute, func() error { return rowIs(ctx, crd, frankfurt, metav1.ConditionTrue, "") })
	eventually(t, 30*time.Second, func() error { return healthIs(ctx, crd, frankfurt, hubv1.HealthHealthy, "") })
	must(t, suite.Hub.Delete(ctx, crd))
	eventually(t, 30*time.Second, func() error { return goneFrom(ctx, frankfurt, crd) })
	must(t, suite.Hub.Delete(ctx, p))
}
