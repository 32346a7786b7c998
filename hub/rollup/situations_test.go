package rollup

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/health"
	"github.com/hanse-dev/hanse/test/operators"
)

// What an expert says of a row, of the binding and of the whole merged status, for each situation: what a row says is
// made by package health, as a member's replica makes it.
func TestSituationsOfOperators(t *testing.T) {
	for _, s := range operators.Situations(t) {
		t.Run(s.Operator+"/"+s.Name, func(t *testing.T) {
			gvk := s.Object.GroupVersionKind()
			crd := operators.Definition(t, gvk.GroupKind())
			conventions := health.ReadConventions(crd, gvk.Version)
			var rows []hubv1.ClusterRow
			var targets []hubv1.BindingTarget
			for _, name := range s.Names() {
				obj, want := s.On(t, name), s.Clusters[name]
				got := health.Assess(obj, conventions)
				if got.Health != want.Health || want.Reason != "" && got.Reason != want.Reason {
					t.Errorf("%s is %s (%s: %s), want %s %s: %s", name, got.Health, got.Reason, got.Message, want.Health, want.Reason, s.Why)
				}
				status, _ := obj.Object["status"].(map[string]any)
				rows = append(rows, hubv1.ClusterRow{
					Name: name, UID: types.UID(name), Generation: obj.GetGeneration(), Applied: metav1.ConditionTrue,
					Health: got.Health, Reason: got.Reason, Message: got.Message, LastTransitionTime: &noon, Observed: raw(health.Project(status)),
				})
				targets = append(targets, hubv1.BindingTarget{Name: name, State: hubv1.TargetPresent})
			}
			if c := healthy(rows, targets); string(c.Status) != s.Healthy {
				t.Errorf("Healthy of the binding is %s (%s: %s), want %s", c.Status, c.Reason, c.Message, s.Healthy)
			}
			schema, subresource, err := NewSchema(crd, gvk.Version)
			if err != nil {
				t.Fatal(err)
			}
			if subresource == s.NoSubresource {
				t.Fatalf("status subresource: %v", subresource)
			}
			if s.NoSubresource {
				return
			}
			merged, leftOut, err := MergeStatus(schema, Rules{}, s.Object, rows, targets, noon)
			if s.Lacks != "" {
				if !errors.Is(err, ErrRequired) || !strings.HasSuffix(err.Error(), ": "+s.Lacks) {
					t.Errorf("merged %v, %v: want that %s is missing", merged, err, s.Lacks)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(plainJSON(t, s.Merged), plainJSON(t, summarised(merged))); diff != "" {
				t.Errorf("merged status (-want +got), left out %v:\n%s", leftOut, diff)
			}
			if diff := cmp.Diff(sortedOf(s.Generations), dated(merged)); diff != "" {
				t.Errorf("conditions with an observedGeneration (-want +got):\n%s", diff)
			}
		})
	}
}

// summarised is a status whose conditions are a map of their types to their values.
func summarised(status map[string]any) map[string]any {
	out := map[string]any{}
	for name, value := range status {
		out[name] = value
	}
	if _, ok := status[conditionsField]; ok {
		conditions := map[string]any{}
		for _, c := range entries(status) {
			conditions[fmt.Sprint(c["type"])] = c["status"]
		}
		out[conditionsField] = conditions
	}
	return out
}

func dated(status map[string]any) []string {
	var out []string
	for _, c := range entries(status) {
		if c[observedGenerationField] != nil && c["type"] != hubv1.ConditionObjectHealthy {
			out = append(out, fmt.Sprint(c["type"]))
		}
	}
	return sortedOf(out)
}

func sortedOf(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return names
}

func plainJSON(t *testing.T, value map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
