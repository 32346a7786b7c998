//go:build !race

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

// Each situation is a test case that an expert has written. It says what the row, the binding and the merged status
// must show. Package health computes the health in the row, as on a member.
func TestSituationsOfOperators(t *testing.T) {
	for _, s := range operators.Situations(t) {
		t.Run(s.Operator+"/"+s.Name, func(t *testing.T) {
			gvk := s.Object.GroupVersionKind()
			crd := operators.Definition(t, gvk.GroupKind())
			conventions := health.ReadConventions(crd, gvk.Version)
			rules, err := NewRules(s.StatusAggregation)
			if err != nil {
				t.Fatal(err)
			}
			var rows []hubv1.ClusterRow
			var targets []hubv1.BindingTarget
			for _, name := range s.Names() {
				rows = append(rows, rowOf(t, s, name, conventions))
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
			merged, leftOut, err := MergeStatus(schema, rules, s.Object, rows, targets, noon)
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

// rowOf returns the row of a cluster in a situation. It fails the test if the health is not the one that the expert has
// written down.
func rowOf(t *testing.T, s operators.Situation, cluster string, conventions health.Conventions) hubv1.ClusterRow {
	t.Helper()
	obj, want := s.On(t, cluster), s.Clusters[cluster]
	got := health.Assess(obj, conventions)
	applied := metav1.ConditionTrue
	if want.Away {
		applied, got = metav1.ConditionUnknown, health.Verdict{Health: hubv1.HealthUnknown, Reason: hubv1.ReasonUnreachable}
	}
	if got.Health != want.Health || want.Reason != "" && got.Reason != want.Reason {
		t.Errorf("%s is %s (%s: %s), want %s %s: %s", cluster, got.Health, got.Reason, got.Message, want.Health, want.Reason, s.Why)
	}
	var paths []string
	for _, r := range s.StatusAggregation.Reducers {
		paths = append(paths, r.Path)
	}
	status, _ := obj.Object["status"].(map[string]any)
	return hubv1.ClusterRow{
		Name: cluster, UID: types.UID(cluster), Generation: obj.GetGeneration(), Applied: applied,
		Health: got.Health, Reason: got.Reason, Message: got.Message, LastTransitionTime: &noon, Observed: raw(health.Project(s.Object.GroupVersionKind().GroupKind(), status, paths...)),
	}
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
