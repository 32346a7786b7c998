package rollup

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/health"
)

// FuzzMergeStatus merges arbitrary bytes from two members, because a member may send anything. The merge must not
// panic, or exceed its size limit, or return a status that the hub refuses. The order of the members must not matter.
func FuzzMergeStatus(f *testing.F) {
	for _, status := range [][2]string{
		{`{"replicas":3,"conditions":[{"type":"Ready","status":"True"}]}`, `{"replicas":-9007199254740991,"conditions":[{"type":"Ready","status":"Sideways"}]}`},
		{`{"pools":[{"name":"x","readyReplicas":1},{"name":"x"}]}`, `{"pools":{"name":"x"}}`},
		{`{"~":7}`, `{"~":"a","/temperature":[[[]]],"/version":{"a":1}}`},
		{`{"temperature":1e308,"/temperature":1e308}`, `{"temperature":"1e999999999","/temperature":"1e999999999"}`},
		{`{"notAfter":"2030-01-01T00:00:00Z","lastFailureTime":"2030-01-01T00:00:00+23:59"}`, `{"notAfter":"never","observedGeneration":"-1"}`},
		{`{"readyReplicas":{"":1,"a/b~":2}}`, `[]`},
		{`null`, `{"conditions":[null,{"type":"hanse.dev/Healthy","status":"False"}],"canary":null}`},
	} {
		f.Add([]byte(status[0]), []byte(status[1]), true)
		f.Add([]byte(status[0]), []byte(status[1]), false)
	}
	crd := hostileKind(f)
	schema, _, err := NewSchema(crd, "v1")
	if err != nil {
		f.Fatal(err)
	}
	rules, err := NewRules(hubv1.StatusAggregation{
		Reducers: []hubv1.StatusReducer{
			{Path: "/status/temperature", Reducer: hubv1.ReducerSum}, {Path: "/status/version", Reducer: hubv1.ReducerJoin},
			{Path: "/status/canary/image", Reducer: hubv1.ReducerCEL, Expression: "values.map(v, string(v.value)).join()"}, {Path: "/status/step", Reducer: hubv1.ReducerLatest},
		},
		ConditionPolarity: []hubv1.ConditionPolarity{{Type: "Odd", Polarity: hubv1.PolarityNegative}},
	})
	if err != nil {
		f.Fatal(err)
	}
	w := scenario{Spec: map[string]any{}}
	f.Fuzz(func(t *testing.T, a, b []byte, projected bool) {
		rows := []hubv1.ClusterRow{hostileRow("a", a, projected), hostileRow("b", b, projected)}
		targets := []hubv1.BindingTarget{{Name: "a", State: hubv1.TargetPresent}, {Name: "b", State: hubv1.TargetPresent}}
		status, leftOut, err := MergeStatus(schema, rules, w.template(), rows, targets, noon)
		if err != nil {
			if !errors.Is(err, ErrRequired) && !errors.Is(err, ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		runtime.DeepCopyJSON(status)
		if faults := faults(t, crd, status); faults != nil {
			t.Fatalf("%v\n%v", faults, status)
		}
		const bound = 64 << 10
		if data, err := json.Marshal(status); err != nil || len(data) > bound {
			t.Fatalf("%d bytes, %v", len(data), err)
		}
		rows[0], rows[1] = rows[1], rows[0]
		again, leftOutAgain, err := MergeStatus(schema, rules, w.template(), rows, targets, noon)
		if diff := cmp.Diff(status, again) + cmp.Diff(leftOut, leftOutAgain); diff != "" || err != nil {
			t.Fatalf("another order: %v\n%s", err, diff)
		}
	})
}

// hostileKind returns a CRD whose status has a field of every type that the property tests use.
func hostileKind(tb testing.TB) *apiextensionsv1.CustomResourceDefinition {
	tb.Helper()
	s := scenario{Schema: map[string]apiextensionsv1.JSONSchemaProps{}}
	for name, field := range drawnFields {
		var p apiextensionsv1.JSONSchemaProps
		if err := yaml.UnmarshalStrict([]byte(field.schema), &p); err != nil {
			tb.Fatal(err)
		}
		s.Schema[name] = p
	}
	return s.crd()
}

func hostileRow(cluster string, status []byte, projected bool) hubv1.ClusterRow {
	row := hubv1.ClusterRow{Name: cluster, Generation: 1, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy, LastTransitionTime: &noon}
	if projected {
		var object map[string]any
		if json.Unmarshal(status, &object) == nil {
			status = health.Project(schema.GroupKind{}, object, "/status/temperature", "/status/version", "/status/canary/image", "/status/step")
		}
	}
	row.Observed = raw(status)
	return row
}

func TestClustersCannotFillTheHubObject(t *testing.T) {
	crd := hostileKind(t)
	schema, _, err := NewSchema(crd, "v1")
	if err != nil {
		t.Fatal(err)
	}
	var rows []hubv1.ClusterRow
	var targets []hubv1.BindingTarget
	for i := range 1000 {
		name := fmt.Sprintf("cluster-%d", i)
		status := map[string]any{
			"readyReplicas": map[string]any{name: int64(1)}, "pools": []any{map[string]any{"name": name, "readyReplicas": int64(1)}},
			"conditions": []any{map[string]any{"type": name, "status": "True"}, map[string]any{"type": "Available", "status": "True"}},
		}
		rows = append(rows, hostileRow(name, []byte(jsonText(status)), true))
		targets = append(targets, hubv1.BindingTarget{Name: name, State: hubv1.TargetPresent})
	}
	status, leftOut, err := MergeStatus(schema, Rules{}, scenario{}.template(), rows, targets, noon)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(leftOut, "pools") || !slices.Contains(leftOut, "readyReplicas") {
		t.Errorf("left out is %v", leftOut)
	}
	if find(status, "Available") == nil || len(entries(status)) != maxConditions+1 {
		t.Errorf("%d conditions, among them Available: %v", len(entries(status)), find(status, "Available"))
	}
}

func jsonText(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func TestWhatCannotBeReadHoldsNobodyElseUp(t *testing.T) {
	f := load(t, "prometheus")
	f.rows[0].Observed = raw([]byte("]"))
	_, leftOut, err := MergeStatus(f.schema, Rules{}, f.template, f.rows, f.targets(), noon)
	if !errors.Is(err, ErrRequired) || len(leftOut) == 0 {
		t.Errorf("left out %v, error %v: want required numbers to be missing", leftOut, err)
	}
}
