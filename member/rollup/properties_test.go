package rollup

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/health"
)

// drawn is a random field of a status. It has the field's schema, the values that members may have, and the merged
// value if there is only one member.
type drawn struct {
	schema string // the schema as YAML
	value  *rapid.Generator[any]
	kept   func(value any) any // nil: the field is left out
}

func same(value any) any { return value }

var (
	smallCount = rapid.Map(rapid.Int64Range(0, 1000), func(i int64) any { return i })
	yesOrNo    = rapid.Map(rapid.Bool(), func(b bool) any { return b })
	word       = rapid.Map(rapid.StringMatching(`[a-z]{1,12}`), func(s string) any { return s })
	aTime      = rapid.Map(rapid.IntRange(10, 28), func(day int) any { return fmt.Sprintf("2030-01-%dT12:00:00Z", day) })
	phaseWord  = rapid.Map(rapid.SampledFrom([]string{"Ready", "Pending", "Failed"}), func(s string) any { return s })
)

// pools draws a list with some of the items x, y and z.
var pools = rapid.Custom(func(t *rapid.T) any {
	var out []any
	for _, name := range []string{"x", "y", "z"} {
		if rapid.Bool().Draw(t, "has "+name) {
			out = append(out, map[string]any{"name": name, "readyReplicas": smallCount.Draw(t, "ready"), "image": word.Draw(t, "image")})
		}
	}
	return out
})

func withoutImages(value any) any {
	list, _ := value.([]any)
	if len(list) == 0 {
		return nil
	}
	out := []any{}
	for _, e := range list {
		entry := maps.Clone(e.(map[string]any))
		delete(entry, "image")
		out = append(out, entry)
	}
	return out
}

var drawnFields = map[string]drawn{
	"replicas":        {schema: "{type: integer, format: int32, minimum: 0}", value: smallCount, kept: same},
	"readyInstances":  {schema: "{type: integer, maximum: 1500}", value: smallCount, kept: same},
	"updatedReplicas": {schema: "{x-kubernetes-int-or-string: true}", value: smallCount, kept: same},
	"temperature":     {schema: "{type: integer}", value: smallCount},
	"paused":          {schema: "{type: boolean}", value: yesOrNo, kept: same},
	"version":         {schema: "{type: string}", value: word, kept: same},
	"short":           {schema: "{type: string, maxLength: 12, pattern: '^[a-z]*$'}", value: word, kept: same},
	"phase":           {schema: "{type: string, enum: [Ready, Pending, Unknown, Failed]}", value: phaseWord, kept: same},
	"step":            {schema: "{type: string, format: date-time}", value: aTime},
	"notAfter":        {schema: "{type: string, format: date-time}", value: aTime, kept: same},
	"lastFailureTime": {schema: "{type: string, format: date-time}", value: aTime, kept: same},
	"url":             {schema: "{type: string}", value: word},
	"tags":            {schema: "{type: array, items: {type: string}}", value: rapid.Map(word, func(w any) any { return []any{w} })},
	"pools": {
		schema: "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, readyReplicas: {type: integer, maximum: 1500}, image: {type: string}}}}",
		value:  pools, kept: withoutImages,
	},
	"canary": {
		schema: "{type: object, properties: {readyReplicas: {type: integer}, image: {type: string}}}",
		value: rapid.Custom(func(t *rapid.T) any {
			return map[string]any{"readyReplicas": smallCount.Draw(t, "ready"), "image": word.Draw(t, "image")}
		}),
		kept: func(v any) any { return map[string]any{"readyReplicas": v.(map[string]any)["readyReplicas"]} },
	},
	"readyReplicas": {
		schema: "{type: object, additionalProperties: {type: integer}}",
		value:  rapid.Map(smallCount, func(n any) any { return map[string]any{"x": n} }), kept: same,
	},
	"conditions": {
		schema: "{type: array, items: {type: object, required: [type, status], properties: {type: {type: string}, status: {type: string, enum: ['True', 'False', Unknown]}, reason: {type: string, maxLength: 20}}}}",
		value: rapid.Custom(func(t *rapid.T) any {
			var out []any
			for _, kind := range []string{"Available", "Degraded", "Odd"} {
				if rapid.Bool().Draw(t, "has "+kind) {
					out = append(out, map[string]any{"type": kind, "status": rapid.SampledFrom([]string{"True", "False", "Unknown"}).Draw(t, "status"), "reason": "Because"})
				}
			}
			return out
		}),
		kept: same,
	},
}

// world is a kind and the statuses of one object on some members.
type world struct {
	scenario
	names []string
}

func drawWorld(t *rapid.T, members int) world {
	names := slices.Sorted(maps.Keys(drawnFields))
	names = slices.DeleteFunc(names, func(name string) bool { return !rapid.Bool().Draw(t, "has "+name) })
	w := world{names: names, scenario: scenario{
		Kind: "Thing", Group: "example.com", Schema: map[string]apiextensionsv1.JSONSchemaProps{}, Clusters: map[string]map[string]any{}, Spec: map[string]any{"paused": true},
	}}
	for _, name := range names {
		var p apiextensionsv1.JSONSchemaProps
		if err := yaml.UnmarshalStrict([]byte(drawnFields[name].schema), &p); err != nil {
			t.Fatal(err)
		}
		w.Schema[name] = p
		if rapid.IntRange(0, 9).Draw(t, "required") == 0 {
			w.Required = append(w.Required, name)
		}
	}
	for i := range members {
		status := map[string]any{}
		for _, name := range names {
			if rapid.IntRange(0, 4).Draw(t, "reports") > 0 {
				status[name] = drawnFields[name].value.Draw(t, name)
			}
		}
		cluster := fmt.Sprint("c", i)
		w.Clusters[cluster] = status
		if members > 1 && rapid.IntRange(0, 4).Draw(t, "away") == 0 {
			w.Away = append(w.Away, cluster)
		}
	}
	for _, name := range []string{"temperature", "url", "tags", "version", "canary/image", "nowhere"} {
		if members > 1 && rapid.IntRange(0, 3).Draw(t, "reduced") == 0 {
			r := hubv1.StatusReducer{Path: "/status/" + name, Reducer: rapid.SampledFrom(anyReducer).Draw(t, "reducer")}
			if r.Reducer == hubv1.ReducerCEL {
				r.Expression = rapid.SampledFrom([]string{"values[0].value", "values.size()", "values.map(v, v.cluster)", "values"}).Draw(t, "expression")
			}
			w.StatusAggregation.Reducers = append(w.StatusAggregation.Reducers, r)
		}
	}
	return w
}

var anyReducer = []hubv1.Reducer{
	hubv1.ReducerSum, hubv1.ReducerMin, hubv1.ReducerMax, hubv1.ReducerAll, hubv1.ReducerAny, hubv1.ReducerWorst,
	hubv1.ReducerLatest, hubv1.ReducerFirst, hubv1.ReducerJoin, hubv1.ReducerCEL,
}

// faults returns the errors with which an API server would refuse the status of an object.
func faults(t test, crd *apiextensionsv1.CustomResourceDefinition, status map[string]any) []string {
	t.Helper()
	props := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&props, &internal, nil); err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, fault := range validation.ValidateCustomResource(nil, status, validator) {
		out = append(out, fault.Error())
	}
	for name := range status {
		if _, ok := props.Properties[name]; !ok {
			out = append(out, name+" is no field of the schema")
		}
	}
	return out
}

func TestAMergedStatusIsValidAndKnowsNoOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, rapid.IntRange(1, 4).Draw(t, "members"))
		schema, _, err := NewSchema(w.crd(), "v1")
		if err != nil {
			t.Fatal(err)
		}
		rules, err := NewRules(w.StatusAggregation)
		if err != nil {
			t.Fatal(err)
		}
		rows, targets := w.rows()
		status, leftOut, err := MergeStatus(schema, rules, w.template(), rows, targets, noon)
		if err != nil && !errors.Is(err, ErrRequired) && !errors.Is(err, ErrInvalid) {
			t.Fatal(err)
		}
		if status != nil {
			if faults := faults(t, w.crd(), status); faults != nil {
				t.Fatalf("%v\n%v", faults, status)
			}
			runtime.DeepCopyJSON(status) // panics for a value that unstructured objects cannot have
		}
		rows, targets = rapid.Permutation(rows).Draw(t, "rows"), rapid.Permutation(targets).Draw(t, "targets")
		again, leftOutAgain, errAgain := MergeStatus(schema, rules, w.template(), rows, targets, noon)
		if diff := cmp.Diff(status, again) + cmp.Diff(leftOut, leftOutAgain) + cmp.Diff(fmt.Sprint(err), fmt.Sprint(errAgain)); diff != "" {
			t.Fatalf("another order:\n%s", diff)
		}
		if status == nil {
			return
		}
		// A second merge, with the first result as the status of the hub object, must give the same result.
		reported := w.template()
		reported.Object["status"] = status
		if again, _, err = MergeStatus(schema, rules, reported, rows, targets, noon); err != nil || !reflect.DeepEqual(status, again) {
			t.Fatalf("a second merge: %v\n%s", err, cmp.Diff(status, again))
		}
	})
}

func TestOneMemberEqualsItsOwnStatus(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, 1)
		w.Required = nil
		own := w.Clusters["c0"]
		if p, err := health.ReadProjection(health.Project(schema.GroupKind{}, own)); err != nil || p.Lost != health.LostNothing {
			t.Skip("it does not fit")
		}
		want := map[string]any{}
		for name, value := range own {
			if kept := drawnFields[name].kept; kept != nil {
				if v := kept(value); v != nil && !reflect.DeepEqual(v, []any(nil)) {
					want[name] = v
				}
			}
		}
		got := w.merge(t).Status
		delete(got, "conditions")
		wantConditions, _ := want["conditions"].([]any)
		delete(want, "conditions")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("of %v (-want +got):\n%s", own, diff)
		}
		var conditions []any
		for _, c := range entries(w.merge(t).Status) {
			if c["type"] != hubv1.ConditionObjectHealthy {
				conditions = append(conditions, map[string]any{"type": c["type"], "status": c["status"], "reason": c["reason"]})
			}
		}
		if diff := cmp.Diff(wantConditions, conditions); diff != "" {
			t.Fatalf("conditions (-want +got):\n%s", diff)
		}
	})
}
