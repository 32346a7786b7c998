package overrides_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/overrides"
)

// The template is prepared once, and is rendered for each cluster with the policies that select the object.
func Example() {
	template := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "monitoring.coreos.com/v1", "kind": "Prometheus",
		"metadata": map[string]any{"name": "web", "namespace": "monitoring"},
		"spec":     map[string]any{"replicas": int64(3)},
	}}
	var policy hubv1.OverridePolicy
	err := yaml.UnmarshalStrict([]byte(`
metadata: {name: busy-regions, namespace: monitoring}
spec:
  resourceSelectors:
  - {apiGroup: monitoring.coreos.com, kind: Prometheus}
  rules:
  - name: more-in-shanghai
    clusters: {names: [cn-sha-1]}
    mergePatch: {spec: {replicas: 5}}
`), &policy)
	if err != nil {
		fmt.Println(err)
		return
	}
	object := hubv1.SelectableObject{ObjectIdentity: hubv1.ObjectIdentity{
		Group: "monitoring.coreos.com", Kind: "Prometheus", Namespace: "monitoring", Name: "web",
	}}
	matching, err := overrides.Matching([]hubv1.OverridePolicyObject{&policy}, object)
	if err != nil {
		fmt.Println(err)
		return
	}
	prepared, err := overrides.Prepare(template, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"eu-fra-1", "cn-sha-1"} {
		result, err := prepared.Render(overrides.Cluster{Name: name}, matching, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		number, _, _ := unstructured.NestedInt64(result.Manifest.Object, "spec", "replicas")
		fmt.Println(name, number, result.Applied)
	}
	// Output:
	// eu-fra-1 3 []
	// cn-sha-1 5 [OverridePolicy monitoring/busy-regions, rule "more-in-shanghai"]
}
