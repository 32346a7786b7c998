package overrides

import (
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestPoliciesThatShareRulesAreNamedApart(t *testing.T) {
	rules := []hubv1.OverrideRule{parseRule(t, `mergePatch: {spec: {v: 1}}`)}
	result, err := render(objectWith(map[string]any{}), Cluster{}, []hubv1.OverridePolicyObject{
		policyWith("a", rules...), policyWith("b", rules...), clusterPolicyWith("c", hubv1.TierAdmin, rules...),
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range result.Applied {
		got = append(got, r.Policy.String())
	}
	if diff := cmp.Diff([]string{"OverridePolicy team/a", "OverridePolicy team/b", "ClusterOverridePolicy c"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRulesThatGrowAreReadAgain(t *testing.T) {
	rules := make([]hubv1.OverrideRule, 0, 2)
	rules = append(rules, parseRule(t, `mergePatch: {spec: {v: 1}}`))
	template := objectWith(map[string]any{})
	if _, err := renderWith(template, policyWith("a", rules...)); err != nil {
		t.Fatal(err)
	}
	rules = append(rules, parseRule(t, `mergePatch: {spec: {v: 2}}`))
	got, err := renderWith(template, policyWith("a", rules...))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(map[string]any{"v": int64(2)}), got.Object["spec"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// An object must get its own copy of the values in a compiled rule, because the next rule changes the object.
func TestCompiledRulesAreNotChanged(t *testing.T) {
	p := policyWith("a", parseRule(t, `mergePatch: {spec: {m: {list: [{a: 1}]}}}, patches: [{op: add, path: /spec/x, value: {list: [1]}}]`),
		parseRule(t, `priority: 1, patches: [{op: add, path: /spec/x/list/-, value: 2}, {op: replace, path: /spec/m/list/0/a, value: 2}]`))
	template := objectWith(map[string]any{})
	var first any
	for range 3 {
		got, err := renderWith(template, p)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = got.Object
		}
		if diff := cmp.Diff(first, any(got.Object)); diff != "" {
			t.Fatalf("-first +later:\n%s", diff)
		}
	}
}

func TestCompiledRulesAreForgotten(t *testing.T) {
	known := func() (n int) {
		compiledPolicies.Range(func(any, any) bool { n++; return true })
		return n
	}
	for range 1000 {
		if _, err := renderWith(objectWith(map[string]any{}), policyWith("a", parseRule(t, `mergePatch: {spec: {v: 1}}`))); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.After(30 * time.Second)
	for known() > 900 {
		runtime.GC()
		select {
		case <-deadline:
			t.Fatalf("%d lists of rules are kept", known())
		default:
		}
	}
}
