package overrides

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func parseRule(t *testing.T, text string) hubv1.OverrideRule {
	t.Helper()
	var r hubv1.OverrideRule
	if err := yaml.UnmarshalStrict([]byte("{name: r, "+text+"}"), &r); err != nil {
		t.Fatalf("reading rule %s: %v", text, err)
	}
	return r
}

func TestPoliciesOfEqualRankConflict(t *testing.T) {
	tests := map[string]struct {
		a, b []string // the rules of two policies
		want string   // path of the conflict, empty if they agree
	}{
		"two tests agree wherever they look": {
			a: []string{`patches: [{op: test, path: /spec/map, value: {x: 1}}]`},
			b: []string{`patches: [{op: test, path: /spec/map/x, value: 1}]`},
		},
		"a test and a change of what it looks at conflict": {
			a:    []string{`patches: [{op: test, path: /spec/map, value: {x: 1}}]`},
			b:    []string{`mergePatch: {spec: {map: {v: 1}}}`},
			want: "/spec/map/v",
		},
		"a whole value agrees with an equal part": {
			a: []string{`patches: [{op: replace, path: /spec/map, value: {x: 2, v: {z: [a, b]}}}]`},
			b: []string{`mergePatch: {spec: {map: {v: {z: [a, b]}}}}`, `patches: [{op: replace, path: /spec/map/x, value: 2}]`},
		},
		"a whole value conflicts with a part that it lacks": {
			a:    []string{`patches: [{op: replace, path: /spec/map, value: {x: 2}}]`},
			b:    []string{`mergePatch: {spec: {map: {v: 1}}}`},
			want: "/spec/map/v",
		},
		"a whole value agrees with an empty object inside of it": {
			a: []string{`patches: [{op: replace, path: /spec/map, value: {x: {}}}]`},
			b: []string{`mergePatch: {spec: {map: {x: {}}}}`},
		},
		"a whole value conflicts with an empty object in place of its scalar": {
			a:    []string{`patches: [{op: replace, path: /spec/map, value: {x: 1}}]`},
			b:    []string{`mergePatch: {spec: {map: {x: {}}}}`},
			want: "/spec/map/x",
		},
		"an empty object agrees with what is put into it": {
			a: []string{`mergePatch: {spec: {map: {}}}`},
			b: []string{`mergePatch: {spec: {map: {v: 1, x: null}}}`},
		},
		"an empty object conflicts with a null": {
			a:    []string{`mergePatch: {spec: {map: {}}}`},
			b:    []string{`mergePatch: {spec: {map: null}}`},
			want: "/spec/map",
		},
		"an object in place of a list conflicts with an element of that list": {
			a:    []string{`mergePatch: {spec: {list: {x: 1}}}`},
			b:    []string{`patches: [{op: replace, path: /spec/list/0, value: c}]`},
			want: "/spec/list/0",
		},
		"two elements of a list agree": {
			a: []string{`patches: [{op: replace, path: /spec/list/0, value: c}]`},
			b: []string{`patches: [{op: replace, path: /spec/list/1, value: d}]`},
		},
		"removing an element conflicts with another element": {
			a:    []string{`patches: [{op: remove, path: /spec/list/0}]`},
			b:    []string{`patches: [{op: replace, path: /spec/list/1, value: d}]`},
			want: "/spec/list/1",
		},
		"a number is a key of a map": {
			a: []string{`patches: [{op: add, path: /spec/map/8080, value: a}]`},
			b: []string{`patches: [{op: add, path: /spec/map/9090, value: b}]`},
		},
		"a number below what another rule makes is taken for an index": {
			a:    []string{`patches: [{op: add, path: /spec/new, value: [x]}, {op: add, path: /spec/new/0, value: x}]`},
			b:    []string{`patches: [{op: add, path: /spec/new, value: [x]}]`},
			want: "/spec/new",
		},
		"moving conflicts at its source": {
			a:    []string{`patches: [{op: move, from: /spec/map/x, path: /spec/v}]`},
			b:    []string{`mergePatch: {spec: {map: {x: 2}}}`},
			want: "/spec/map/x",
		},
		"moving conflicts at its target": {
			a:    []string{`patches: [{op: move, from: /spec/map/x, path: /spec/v}]`},
			b:    []string{`mergePatch: {spec: {v: 2}}`},
			want: "/spec/v",
		},
		"the last rule speaks for its policy": {
			a: []string{`mergePatch: {spec: {v: 1}}`, `patches: [{op: replace, path: /spec/v, value: 2}]`},
			b: []string{`mergePatch: {spec: {v: 2}}`},
		},
		"a change to removed in the same policy still conflicts": {
			a:    []string{`mergePatch: {spec: {v: 1}}`, `mergePatch: {spec: {v: null}}`},
			b:    []string{`mergePatch: {spec: {v: 1}}`},
			want: "/spec/v",
		},
		"a null may be the last rule": {
			a: []string{`mergePatch: {spec: {v: 1}}`, `mergePatch: {spec: {v: null}}`},
			b: []string{`mergePatch: {spec: {v: null}}`},
		},
		"a part conflicts with the other policy though both set the whole alike": {
			a:    []string{`patches: [{op: replace, path: /spec/map, value: {x: 1}}, {op: replace, path: /spec/map/x, value: 2}]`},
			b:    []string{`patches: [{op: replace, path: /spec/map, value: {x: 1}}]`},
			want: "/spec/map/x",
		},
		"labels conflict key by key": {
			a:    []string{`mergePatch: {metadata: {labels: {team: red, tier: gold}}}`},
			b:    []string{`mergePatch: {metadata: {labels: {team: blue}}}`},
			want: "/metadata/labels/team",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			template := objectWith(map[string]any{"map": map[string]any{"x": int64(1)}, "list": []any{"a", "b"}})
			a, b := policyWith("a"), policyWith("b")
			for _, r := range tc.a {
				a.Spec.Rules = append(a.Spec.Rules, parseRule(t, r))
			}
			for _, r := range tc.b {
				b.Spec.Rules = append(b.Spec.Rules, parseRule(t, r))
			}
			_, err := renderWith(template, a, b)
			got := ""
			if c := (*ConflictError)(nil); errors.As(err, &c) {
				got = c.Path
			} else if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("conflict at %q, want %q (%v)", got, tc.want, err)
			}
		})
	}
}

func TestConflictNamesBothSides(t *testing.T) {
	third := policyWith("c", parseRule(t, `mergePatch: {spec: {v: 3}}`))
	_, err := renderWith(objectWith(map[string]any{}), third,
		policyWith("b", parseRule(t, `mergePatch: {spec: {v: 2}}`)), policyWith("a", parseRule(t, `mergePatch: {spec: {x: 1}}`)))
	want := &ConflictError{
		Rules: [2]RuleRef{
			{Policy: PolicyRef{Kind: "OverridePolicy", Namespace: "team", Name: "b"}, Rule: "r"},
			{Policy: PolicyRef{Kind: "OverridePolicy", Namespace: "team", Name: "c"}, Rule: "r"},
		},
		Path: "/spec/v", Rank: "Namespaced/0/none/0",
	}
	if diff := cmp.Diff(error(want), err); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
