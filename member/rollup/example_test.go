package rollup_test

import (
	"encoding/json"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/rollup"
)

// The states of two clusters become the rows of a binding, and the rows become the status of the hub object.
func Example() {
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	targets := []hubv1.BindingTarget{{Name: "eu-fra-1", State: hubv1.TargetPresent}, {Name: "cn-sha-1", State: hubv1.TargetPresent}}
	observed := func(status string) rollup.Fact {
		return rollup.Fact{
			Connected: true, Synced: true,
			Outcome:     &member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied, HubState: member.HubState{HubGeneration: 1}},
			Observation: &member.Observation{ObservedGeneration: -1, Observed: []byte(status), Assessment: member.Assessment{Health: hubv1.HealthHealthy}},
		}
	}
	status, rows := rollup.Status(hubv1.BindingStatus{}, rollup.Input{
		Targets: targets, BindingGeneration: 1, HubGeneration: 1, Now: now,
		Facts: map[string]rollup.Fact{
			"eu-fra-1": observed(`{"availableReplicas":3}`),
			"cn-sha-1": observed(`{"availableReplicas":5}`),
		},
	})
	for _, row := range status.Clusters {
		fmt.Println(row.Name, row.Applied, row.Health)
	}

	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal([]byte(`
spec:
  versions:
  - name: v1
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        properties:
          status: {properties: {availableReplicas: {type: integer}}}
`), &definition); err != nil {
		fmt.Println(err)
		return
	}
	schema, _, err := rollup.NewSchema(&definition, "v1")
	if err != nil {
		fmt.Println(err)
		return
	}
	template := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"generation": int64(1)}}}
	merged, _, err := rollup.MergeStatus(schema, rollup.Rules{}, template, rows, targets, now)
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := json.Marshal(merged)
	fmt.Println(string(text), err)
	// Output:
	// cn-sha-1 True Healthy
	// eu-fra-1 True Healthy
	// {"availableReplicas":8} <nil>
}
