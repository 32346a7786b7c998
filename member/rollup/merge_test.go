package rollup

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

var update = flag.Bool("update", false, "rewrite want.yaml of every fixture")

func read(t *testing.T, into any, path ...string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		t.Fatal(err)
	}
}

type fixture struct {
	schema      Schema
	subresource bool
	template    *unstructured.Unstructured
	rows        []hubv1.ClusterRow
}

func load(t *testing.T, name string) fixture {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	read(t, &crd, "testdata", name, "crd.yaml")
	schema, subresource, err := NewSchema(&crd, "v1")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join("testdata", name, "template.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if data, err = yaml.YAMLToJSON(data); err != nil {
		t.Fatal(err)
	}
	f := fixture{schema: schema, subresource: subresource, template: &unstructured.Unstructured{}}
	if err := f.template.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	read(t, &f.rows, "testdata", name, "rows.yaml")
	return f
}

func (f fixture) targets() []hubv1.BindingTarget {
	var out []hubv1.BindingTarget
	for _, row := range f.rows {
		out = append(out, hubv1.BindingTarget{Name: row.Name, State: hubv1.TargetPresent})
	}
	return out
}

var noon = metav1.Unix(1767268800, 0) // 2026-01-01T12:00:00Z

func TestMergeStatusFixtures(t *testing.T) {
	cases, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if !c.IsDir() || c.Name() == "rapid" || c.Name() == "fuzz" {
			continue
		}
		t.Run(c.Name(), func(t *testing.T) {
			f := load(t, c.Name())
			status, leftOut, err := MergeStatus(f.schema, Rules{}, f.template, f.rows, f.targets(), noon)
			if err != nil {
				t.Fatal(err)
			}
			got, err := yaml.Marshal(map[string]any{"status": status, "leftOut": leftOut})
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", c.Name(), "want.yaml")
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			f.template.Object["status"] = status
			again, _, err := MergeStatus(f.schema, Rules{}, f.template, f.rows, f.targets(), metav1.NewTime(noon.Add(1000)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(status, again); diff != "" {
				t.Errorf("a second merge differs:\n%s", diff)
			}
		})
	}
}

func TestNewSchema(t *testing.T) {
	if f := load(t, "prometheus"); !f.subresource || !f.schema.HasStatus() {
		t.Error("Prometheus has a status and a subresource for it")
	}
	if f := load(t, "odd-schema"); f.subresource || !f.schema.HasStatus() {
		t.Error("the oddity has a status and no subresource for it")
	}
	var crd apiextensionsv1.CustomResourceDefinition
	read(t, &crd, "testdata", "prometheus", "crd.yaml")
	if _, _, err := NewSchema(&crd, "v2"); err == nil || err.Error() != "reading the schema of CustomResourceDefinition prometheuses.monitoring.coreos.com: it has no version v2" {
		t.Errorf("error %v", err)
	}
	crd.Spec.Versions[0].Schema = nil
	schema, _, err := NewSchema(&crd, "v1")
	if err != nil || schema.HasStatus() {
		t.Errorf("a version without schema: %v, %v", schema, err)
	}
	status, leftOut, err := MergeStatus(schema, Rules{}, &unstructured.Unstructured{Object: map[string]any{}}, nil, nil, noon)
	if status != nil || leftOut != nil || err != nil {
		t.Errorf("nothing can be merged without schema: %v, %v, %v", status, leftOut, err)
	}
}

func TestMergeStatusNeverHalfWrites(t *testing.T) {
	tests := map[string]struct {
		edit func(f *fixture)
		want error
	}{
		"a required number that no member reports": {
			edit: func(f *fixture) {
				for i := range f.rows {
					f.rows[i].Observed = nil
				}
			},
			want: ErrRequired,
		},
		"a sum beyond what the schema allows": {
			edit: func(f *fixture) { f.rows[0].Observed = raw([]byte(`{"replicas": 2147483647}`)) }, want: ErrRequired,
		},
		"a row that was cut and whose cluster has not reported since": {
			edit: func(f *fixture) { f.rows[0].LastTransitionTime = nil }, want: ErrIncomplete,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := load(t, "prometheus")
			tc.edit(&f)
			status, _, err := MergeStatus(f.schema, Rules{}, f.template, f.rows, f.targets(), noon)
			if !errors.Is(err, tc.want) || status != nil {
				t.Errorf("status %v, error %v", status, err)
			}
		})
	}
}

func TestMergeStatusCountsEveryTarget(t *testing.T) {
	condition := func(t *testing.T, f fixture, targets []hubv1.BindingTarget, kind string) [2]any {
		t.Helper()
		status, _, err := MergeStatus(f.schema, Rules{}, f.template, f.rows, targets, noon)
		if err != nil {
			t.Fatal(err)
		}
		c := find(status, kind)
		return [2]any{c["status"], c["observedGeneration"]}
	}
	tests := map[string]struct {
		edit      func(f *fixture, targets []hubv1.BindingTarget) []hubv1.BindingTarget
		available [2]any
	}{
		"all are there": {
			edit: func(_ *fixture, t []hubv1.BindingTarget) []hubv1.BindingTarget { return t }, available: [2]any{"True", int64(7)},
		},
		"a target without a row is Unknown": {
			edit: func(_ *fixture, t []hubv1.BindingTarget) []hubv1.BindingTarget {
				return append(t, hubv1.BindingTarget{Name: "new", State: hubv1.TargetPresent})
			},
			available: [2]any{"Unknown", nil},
		},
		"a cluster that is to lose the object does not count": {
			edit: func(_ *fixture, t []hubv1.BindingTarget) []hubv1.BindingTarget {
				return append(t, hubv1.BindingTarget{Name: "old", State: hubv1.TargetAbsent})
			},
			available: [2]any{"True", int64(7)},
		},
		"a member whose operator has not seen the last generation holds the generation back": {
			edit: func(f *fixture, t []hubv1.BindingTarget) []hubv1.BindingTarget {
				f.rows[1].Health, f.rows[1].Reason = hubv1.HealthProgressing, "GenerationNotObserved"
				return t
			},
			available: [2]any{"True", nil},
		},
		"a member that is healthy because it is paused holds the generation back as well": {
			edit: func(f *fixture, t []hubv1.BindingTarget) []hubv1.BindingTarget {
				f.rows[1].Reason = "GenerationNotObserved"
				return t
			},
			available: [2]any{"True", nil},
		},
		"a member that holds an older generation is Unknown": {
			edit: func(f *fixture, t []hubv1.BindingTarget) []hubv1.BindingTarget {
				f.rows[1].Applied, f.rows[1].Generation, f.rows[1].Reason = metav1.ConditionFalse, 6, hubv1.ReasonPending
				return t
			},
			available: [2]any{"Unknown", nil},
		},
		"a member that went away holds the generation back, though it had it": {
			edit: func(f *fixture, t []hubv1.BindingTarget) []hubv1.BindingTarget {
				f.rows[1].Applied, f.rows[1].Health, f.rows[1].Reason = metav1.ConditionUnknown, hubv1.HealthUnknown, hubv1.ReasonUnreachable
				return t
			},
			available: [2]any{"Unknown", nil},
		},
		"a positive condition that a target does not have is Unknown": {
			edit: func(f *fixture, t []hubv1.BindingTarget) []hubv1.BindingTarget {
				f.rows[1].Observed = raw([]byte(`{"replicas":1,"conditions":[{"type":"Reconciled","status":"True"}]}`))
				return t
			},
			available: [2]any{"Unknown", nil},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := load(t, "prometheus")
			if diff := cmp.Diff(tc.available, condition(t, f, tc.edit(&f, f.targets()), "Available")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPolarity(t *testing.T) {
	tests := map[string]struct {
		kind   string
		values []string // "-" is a target without the condition
		want   string
	}{
		"False is the worst of a positive type":           {kind: "Ready", values: []string{"True", "Unknown", "False"}, want: "False"},
		"a value of its own is worse than Unknown":        {kind: "Ready", values: []string{"True", "Degraded", "Unknown"}, want: "Degraded"},
		"and better than False":                           {kind: "Ready", values: []string{"Degraded", "False"}, want: "False"},
		"True is the worst of a negative type":            {kind: "Degraded", values: []string{"False", "Unknown", "True"}, want: "True"},
		"a negative type that is absent is False":         {kind: "DiskPressure", values: []string{"False", "-"}, want: "False"},
		"a positive type that is absent is Unknown":       {kind: "Synced", values: []string{"True", "-"}, want: "Unknown"},
		"a type in neither takes the common value":        {kind: "Odd", values: []string{"False", "False"}, want: "False"},
		"and is Unknown where members disagree":           {kind: "Odd", values: []string{"False", "True"}, want: "Unknown"},
		"an error type is negative":                       {kind: "SyncError", values: []string{"False", "True"}, want: "True"},
		"a negative type is good only if False on all":    {kind: "Stalled", values: []string{"False", "False"}, want: "False"},
		"Unknown wins over good for a negative type, too": {kind: "Stalled", values: []string{"False", "Unknown"}, want: "Unknown"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := merger{}
			for i, v := range tc.values {
				p := part{row: hubv1.ClusterRow{Name: string(rune('a' + i)), Applied: metav1.ConditionTrue}, observed: map[string]any{"replicas": 1.0}}
				if v != "-" {
					p.observed["conditions"] = []any{map[string]any{"type": tc.kind, "status": v}}
				}
				m.parts = append(m.parts, p)
			}
			if got := m.fold(tc.kind); got.status != tc.want {
				t.Errorf("%+v, want %s", got, tc.want)
			}
		})
	}
}

func TestOrderOfRowsChangesNothing(t *testing.T) {
	f := load(t, "prometheus-away")
	want, wantLeftOut, err := MergeStatus(f.schema, Rules{}, f.template, f.rows, f.targets(), noon)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		rows, targets := rapid.Permutation(f.rows).Draw(rt, "rows"), rapid.Permutation(f.targets()).Draw(rt, "targets")
		got, leftOut, err := MergeStatus(f.schema, Rules{}, f.template, rows, targets, noon)
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(want, got) + cmp.Diff(wantLeftOut, leftOut); diff != "" {
			rt.Fatal(diff)
		}
	})
}

func TestOneMemberEqualsItsOwnProjection(t *testing.T) {
	f := load(t, "prometheus")
	rapid.Check(t, func(rt *rapid.T) {
		observed := map[string]any{"paused": rapid.Bool().Draw(rt, "paused")}
		for _, name := range []string{"replicas", "availableReplicas", "updatedReplicas", "unavailableReplicas"} {
			observed[name] = int64(rapid.Int32Range(0, 1000).Draw(rt, name))
		}
		value := rapid.SampledFrom([]string{"True", "False", "Unknown", "Degraded"})
		observed["conditions"] = []any{
			map[string]any{"type": "Available", "status": value.Draw(rt, "available"), "reason": "A"},
			map[string]any{"type": "Reconciled", "status": value.Draw(rt, "reconciled"), "reason": "R"},
		}
		data, err := json.Marshal(observed)
		if err != nil {
			rt.Fatal(err)
		}
		row := hubv1.ClusterRow{Name: "a", Generation: 7, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy, LastTransitionTime: &noon, Observed: raw(data)}
		got, _, err := MergeStatus(f.schema, Rules{}, f.template, []hubv1.ClusterRow{row}, []hubv1.BindingTarget{{Name: "a", State: hubv1.TargetPresent}}, noon)
		if err != nil {
			rt.Fatal(err)
		}
		var conditions []any
		for _, c := range entries(got) {
			if c["type"] != hubv1.ConditionObjectHealthy {
				conditions = append(conditions, map[string]any{"type": c["type"], "status": c["status"], "reason": c["reason"]})
			}
		}
		got["conditions"] = conditions
		if diff := cmp.Diff(observed, got); diff != "" {
			rt.Fatal(diff)
		}
	})
}
