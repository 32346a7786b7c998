package rollup

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// mergeOne merges the given statuses of healthy and applied copies, one for each cluster. status is the YAML of the
// schema's status fields.
func mergeOne(t *testing.T, status string, observed ...string) (map[string]any, []string) {
	t.Helper()
	var props apiextensionsv1.JSONSchemaProps
	if err := yaml.UnmarshalStrict([]byte(status), &props); err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Properties: map[string]apiextensionsv1.JSONSchemaProps{"status": props},
			}},
		}},
	}}
	schema, _, err := NewSchema(crd, "v1")
	if err != nil {
		t.Fatal(err)
	}
	var (
		rows    []hubv1.ClusterRow
		targets []hubv1.BindingTarget
	)
	for i, o := range observed {
		data, err := yaml.YAMLToJSON([]byte(o))
		if err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprint("c", i)
		rows = append(rows, hubv1.ClusterRow{Name: name, Generation: 1, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy, LastTransitionTime: &noon, Observed: raw(data)})
		targets = append(targets, hubv1.BindingTarget{Name: name, State: hubv1.TargetPresent})
	}
	template := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"generation": int64(1)}}}
	got, leftOut, err := MergeStatus(schema, Rules{}, template, rows, targets, noon)
	if err != nil {
		t.Fatal(err)
	}
	return got, leftOut
}

func TestMergeRules(t *testing.T) {
	const phase = "{type: object, properties: {phase: {type: string, enum: [Ready, Pending, Failed]}}}"
	tests := map[string]struct {
		schema   string
		observed []string
		want     map[string]any
		leftOut  []string
	}{
		"the worst phase wins": {
			schema: phase, observed: []string{"{phase: Ready}", "{phase: Failed}", "{phase: Pending}"}, want: map[string]any{"phase": "Failed"},
		},
		"a phase that one has not reported is Unknown, which this schema does not know": {
			schema: phase, observed: []string{"{phase: Ready}", "{a: 1}"}, want: map[string]any{}, leftOut: []string{"phase"},
		},
		"a phase with a word that nobody can weigh is left out": {
			schema: "{type: object, properties: {phase: {type: string, enum: [Ready, Sideways]}}}", observed: []string{"{phase: Ready}"}, want: map[string]any{}, leftOut: []string{"phase"},
		},
		"a phase without enum is left out": {
			schema: "{type: object, properties: {phase: {type: string}}}", observed: []string{"{phase: Ready}"}, want: map[string]any{}, leftOut: []string{"phase"},
		},
		"an expiry that is no time follows the rule of strings": {
			schema:   "{type: object, properties: {expires: {type: string}, notAfter: {type: string, format: date-time}}}",
			observed: []string{"{expires: never, notAfter: soon}", "{expires: never}"}, want: map[string]any{"expires": "never"}, leftOut: []string{"notAfter"},
		},
		"a string that a target has not reported is left out": {
			schema: "{type: object, properties: {version: {type: string}}}", observed: []string{"{version: v1}", "{a: 1}"}, want: map[string]any{}, leftOut: []string{"version"},
		},
		"a value of another type than the schema's is left out": {
			schema: "{type: object, properties: {version: {type: string}}}", observed: []string{"{version: 3}"}, want: map[string]any{}, leftOut: []string{"version"},
		},
		"what belongs to one cluster is left out even if it is equal": {
			schema:   "{type: object, properties: {selector: {type: string}, binding: {type: string}, loadBalancerIP: {type: string}}}",
			observed: []string{"{selector: a, binding: b, loadBalancerIP: c}"}, want: map[string]any{}, leftOut: []string{"binding", "loadBalancerIP", "selector"},
		},
		"a field that nobody reports is not left out, it is not there": {
			schema: "{type: object, properties: {version: {type: string}, readyReplicas: {type: integer}}}", observed: []string{"{a: 1}"}, want: map[string]any{},
		},
		"core counters are summed": {
			schema:   "{type: object, properties: {numberReady: {type: integer}, readyInstances: {type: integer}, count: {type: integer}}}",
			observed: []string{"{numberReady: 1, readyInstances: 2, count: 3}", "{numberReady: 1, readyInstances: 2, count: 3}"},
			want:     map[string]any{"numberReady": int64(2), "readyInstances": int64(4)}, leftOut: []string{"count"},
		},
		"counts of units that a rollout raises are summed, and other numbers of such units are left out": {
			schema: "{type: object, properties: {readyNodes: {type: integer}, upToDateNodes: {type: integer}, availablePods: {type: integer}, " +
				"updatedMembers: {type: integer}, maxNodes: {type: integer}, readyPercent: {type: integer}}}",
			observed: []string{
				"{readyNodes: 3, upToDateNodes: 3, availablePods: 2, updatedMembers: 1, maxNodes: 5, readyPercent: 100}",
				"{readyNodes: 3, upToDateNodes: 1, availablePods: 0, updatedMembers: 1, maxNodes: 5, readyPercent: 100}",
			},
			want:    map[string]any{"readyNodes": int64(6), "upToDateNodes": int64(4), "availablePods": int64(2), "updatedMembers": int64(2)},
			leftOut: []string{"maxNodes", "readyPercent"},
		},
		"a generation in a schema that says it is something else is left out": {
			schema: "{type: object, properties: {observedGeneration: {type: boolean}}}", observed: []string{"{observedGeneration: 1}"}, want: map[string]any{}, leftOut: []string{"observedGeneration"},
		},
		"no generation is made up that a target does not report": {
			schema: "{type: object, properties: {observedGeneration: {type: integer}}}", observed: []string{"{observedGeneration: 1}", "{a: 1}"}, want: map[string]any{},
		},
		"a word is weighed whatever its case": {
			schema: "{type: object, properties: {phase: {type: string, enum: [RUNNING, STOPPED, ABNORMAL, FAILED]}}}", observed: []string{"{phase: RUNNING}", "{phase: ABNORMAL}"},
			want: map[string]any{"phase": "ABNORMAL"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, leftOut := mergeOne(t, tc.schema, tc.observed...)
			if diff := cmp.Diff(tc.want, got) + cmp.Diff(tc.leftOut, leftOut); diff != "" {
				t.Errorf("status or left out (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConditionsKeepToTheSchema(t *testing.T) {
	schema := func(list, item string) string {
		return "{type: object, properties: {conditions: {type: array" + list + ", items: {type: object, " + item + "}}}}"
	}
	const ready = "{conditions: [{type: Ready, status: 'True', reason: Up}]}"
	tests := map[string]struct {
		schema   string
		observed []string
		want     []any // nil: no conditions
	}{
		"only what the schema has is written": {
			schema:   schema("", "properties: {type: {type: string}, status: {type: string}}"),
			observed: []string{ready},
			want:     []any{map[string]any{"type": "Ready", "status": "True"}, map[string]any{"type": "hanse.dev/Healthy", "status": "True"}},
		},
		"a type that the schema does not list is not added": {
			schema:   schema("", "properties: {type: {type: string, enum: [Ready]}, status: {type: string}}"),
			observed: []string{ready},
			want:     []any{map[string]any{"type": "Ready", "status": "True"}},
		},
		"no more entries than the schema allows": {
			schema:   schema(", maxItems: 1", "properties: {type: {type: string}, status: {type: string}}"),
			observed: []string{ready},
			want:     []any{map[string]any{"type": "Ready", "status": "True"}},
		},
		"a status outside the schema's words falls to the worst one": {
			schema:   schema("", "properties: {type: {type: string, enum: [Ready, Degraded]}, status: {type: string, enum: ['True', 'False', Unknown]}}"),
			observed: []string{"{conditions: [{type: Ready, status: Odd}, {type: Degraded, status: Odd}]}"},
			want:     []any{map[string]any{"type": "Degraded", "status": "True"}, map[string]any{"type": "Ready", "status": "False"}},
		},
		"a reason that the schema does not allow is left away": {
			schema:   schema("", "properties: {type: {type: string, enum: [Ready]}, status: {type: string}, reason: {type: string, enum: [Down]}}"),
			observed: []string{ready},
			want:     []any{map[string]any{"type": "Ready", "status": "True"}},
		},
		"an entry whose required reason is not allowed is not written": {
			schema:   schema("", "required: [reason], properties: {type: {type: string}, status: {type: string}, reason: {type: string, enum: [Down]}}"),
			observed: []string{ready},
		},
		"a required time of update is the time of the transition": {
			schema:   schema("", "required: [lastUpdateTime], properties: {type: {type: string, enum: [Ready]}, status: {type: string}, lastUpdateTime: {type: string}}"),
			observed: []string{ready},
			want:     []any{map[string]any{"type": "Ready", "status": "True", "lastUpdateTime": "2026-01-01T12:00:00Z"}},
		},
		"reasons that differ give none, and members that disagree are named": {
			schema: schema("", "properties: {type: {type: string, enum: [Ready, Odd]}, status: {type: string}, reason: {type: string}, message: {type: string}}"),
			observed: []string{
				"{conditions: [{type: Ready, status: 'True', reason: Up}, {type: Odd, status: A}]}", "{conditions: [{type: Ready, status: 'True', reason: Fine}, {type: Odd, status: B}]}",
				"{conditions: [{type: Ready, status: 'True', reason: Fine}, {type: Odd, status: B}]}", "{conditions: [{type: Ready, status: 'True', reason: Fine}]}",
			},
			want: []any{
				map[string]any{"type": "Odd", "status": "Unknown", "reason": "MembersDisagree", "message": "members disagree: c0 (A), c1 (B), c2 (B) and 1 more"},
				map[string]any{"type": "Ready", "status": "True", "message": "True on 4 of 4 clusters"},
			},
		},
		"conditions that are no list of objects are left out": {
			schema: "{type: object, properties: {conditions: {type: object}}}", observed: []string{ready},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, _ := mergeOne(t, tc.schema, tc.observed...)
			conditions, _ := got["conditions"].([]any)
			if diff := cmp.Diff(tc.want, conditions); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAGoodConditionThatSomeClustersLackNamesThoseThatHaveIt(t *testing.T) {
	const schema = "{type: object, properties: {conditions: {type: array, items: {type: object, properties: {type: {type: string}, status: {type: string}, reason: {type: string}, message: {type: string}}}}}}"
	ready := "{conditions: [{type: Ready, status: 'True', reason: Up}]}"
	for name, tc := range map[string]struct {
		observed        []string
		reason, message string
	}{
		"one has it": {
			[]string{ready, "{conditions: [{type: Issuing, status: 'False', reason: Failed}]}", ready}, "Failed", "False on 1 of 3 clusters: c1 (Failed); the other clusters do not have the condition",
		},
		"two have it with different reasons": {
			[]string{"{conditions: [{type: Issuing, status: 'False', reason: Failed}]}", "{conditions: [{type: Issuing, status: 'False'}]}", ready},
			"", "False on 2 of 3 clusters: c0 (Failed), c1 (False); the other clusters do not have the condition",
		},
		"all have it": {
			[]string{"{conditions: [{type: Issuing, status: 'False', reason: Failed}]}", "{conditions: [{type: Issuing, status: 'False', reason: Failed}]}"},
			"Failed", "False on 2 of 2 clusters",
		},
	} {
		t.Run(name, func(t *testing.T) {
			status, _ := mergeOne(t, schema, tc.observed...)
			got := find(status, "Issuing")
			reason, _ := got["reason"].(string)
			if got["status"] != "False" || got["message"] != tc.message || reason != tc.reason {
				t.Errorf("Issuing is %v, want the reason %q and the message %q", got, tc.reason, tc.message)
			}
		})
	}
}
