package overrides

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const selectThings = "resourceSelectors: [{apiGroup: example.com, kind: Thing}]\n"

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		spec string
		want []string
	}{
		"a spec that can be followed": {spec: selectThings + `
rules:
- name: all
  mergePatch: {metadata: {labels: {a: null, b: c}, annotations: {}}, spec: {x: 1}}
- name: some
  priority: 1000
  clusters: {names: [a], labelSelector: {matchLabels: {b: c}}}
  patches: [{op: copy, from: /metadata/name, path: /spec/name}, {op: test, path: /spec/x, value: 1}]
`},
		"every form": {spec: selectThings + `
rules:
- name: all
  images: [{registry: r.example.com}, {path: /spec/image, tag: v1}]
  command: [{containers: [a], value: [x]}]
  args: [{path: /spec, value: []}]
  env: [{set: [{name: A, value: b}], remove: [C]}]
  resources: [{path: /spec, requests: {cpu: 1}}]
  labels: {a: b}
  annotations: {example.com/a: "any text"}
  edits: [{path: /data/a, format: YAML, mergePatch: {status: null, kind: x}, patches: [{op: add, path: /metadata/labels, value: {a: 1}}]}]
- {name: away, exclude: true}
`},
		"every fault of every form is named": {spec: selectThings + `
rules:
- {name: away, exclude: true, labels: {a: b}}
- name: forms
  images: [{}, {registry: mirror}, {tag: v1, containers: [a, a]}, {tag: v1, path: /metadata/name}, {tag: v1, path: x}, {tag: v1, path: /spec/x, containers: [a]}]
  command: [{path: /status, value: [a]}]
  env: [{}, {set: [{name: A}], remove: [A]}, {set: [{name: ""}]}]
  resources: [{containers: [a]}]
  labels: {hanse.dev/a: b, a: "not a value", "not a key": c}
  edits:
  - {path: /kind, format: YAML, mergePatch: {}}
  - {path: /data/a, format: TOML, mergePatch: {}}
  - {path: /data/a, format: YAML}
  - {path: /data/a, format: YAML, mergePatch: [1]}
  - {path: /data/a, format: JSON, patches: [{op: move, path: /b}, {op: remove, path: b}]}
`, want: []string{
			`spec.rules[0].exclude: Invalid value: has exclude and other changes: split it into two rules`,
			`spec.rules[1].images[0]: Invalid value: changes nothing: set registry, repository, tag or digest`,
			`spec.rules[1].images[1].registry: Invalid value: is no registry: write a host with a dot or a port, such as registry.example.com:5000`,
			`spec.rules[1].images[2].containers: Invalid value: names container "a" twice`,
			`spec.rules[1].images[3].path: Invalid value: /metadata/name is the identity of the object, which cannot be overridden: drop it from the rule`,
			`spec.rules[1].images[4].path: Invalid value: x is no JSON pointer below the root: it must start with /, such as /spec/replicas`,
			`spec.rules[1].images[5].path: Invalid value: /spec/x cannot be combined with containers: remove one of the two`,
			`spec.rules[1].command[0].path: Invalid value: /status belongs to the controllers in the member: drop it from the rule`,
			`spec.rules[1].env[0]: Invalid value: changes nothing: name variables to set or to remove`,
			`spec.rules[1].env[1].set: Invalid value: has variable "A" without a name, twice, or in both set and remove`,
			`spec.rules[1].env[2].set: Invalid value: has variable "" without a name, twice, or in both set and remove`,
			`spec.rules[1].resources[0]: Invalid value: changes nothing: set requests or limits`,
			`spec.rules[1].labels: Invalid value: /metadata/labels/a is not a valid value of a label: use at most 63 letters, digits, '-', '_' and '.'`,
			`spec.rules[1].labels: Invalid value: /metadata/labels/hanse.dev~1a is a label or annotation of Hanse, which cannot be overridden: drop it from the rule`,
			`spec.rules[1].labels: Invalid value: /metadata/labels/not a key is not a valid key of a label or annotation: use letters, digits, '-', '_' and '.', after an optional DNS name and /`,
			`spec.rules[1].edits[0].path: Invalid value: /kind is the identity of the object, which cannot be overridden: drop it from the rule`,
			`spec.rules[1].edits[1].format: Invalid value: /data/a has the unknown format "TOML": use YAML or JSON`,
			`spec.rules[1].edits[2]: Invalid value: /data/a is edited without a change: set mergePatch or patches`,
			`spec.rules[1].edits[3].mergePatch: Invalid value: /data/a its mergePatch must be an object`,
			`spec.rules[1].edits[4].patches: Invalid value: /data/a holds a document whose path /b has no from, which op move needs`,
		}},
		"nothing at all": {spec: `{}`, want: []string{
			"spec.resourceSelectors: Required value: at least one", "spec.rules: Required value: at least one",
		}},
		"every selector is looked at": {spec: `
resourceSelectors:
- {kind: "*"}
- {kind: ConfigMap, name: a, labelSelector: {}}
- {apiGroup: example.com, kind: "*", name: a}
- {apiGroup: example.com, kind: Thing, labelSelector: {matchExpressions: [{key: a, operator: Sometimes}]}}
- {}
rules: [{name: r, mergePatch: {}}]
`, want: []string{
			`spec.resourceSelectors[0].kind: Invalid value: "*": needs an apiGroup other than the core group`,
			`spec.resourceSelectors[1].name: Invalid value: "a": cannot be combined with labelSelector or kind "*"`,
			`spec.resourceSelectors[2].name: Invalid value: "a": cannot be combined with labelSelector or kind "*"`,
			`spec.resourceSelectors[3].labelSelector: Invalid value: "Sometimes" is not a valid label selector operator`,
			`spec.resourceSelectors[4].kind: Required value: a kind, or "*" for every kind of a group`,
		}},
		"every fault of every rule is named": {spec: selectThings + `
rules:
- {name: twice, mergePatch: {kind: Other}}
- {name: twice, priority: 1001, mergePatch: [1]}
- name: Upper
  clusters: {labelSelector: {matchExpressions: [{key: a, operator: In}]}}
  patches:
  - {op: replace, path: /status, value: 1}
  - {op: move, from: /metadata/labels/hanse.dev~1hub, path: /spec/x}
  - {op: add, path: /metadata/labels/a, value: 1}
  - {op: swap, path: /spec/x}
- {name: empty}
`, want: []string{
			`spec.rules[0].mergePatch: Invalid value: /kind is the identity of the object, which cannot be overridden: drop it from the rule`,
			`spec.rules[1].name: Duplicate value: "twice"`,
			`spec.rules[1].priority: Invalid value: 1001: must be from -1000 to 1000`,
			`spec.rules[1].mergePatch: Invalid value: its mergePatch must be an object`,
			`spec.rules[2].name: Invalid value: "Upper": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
			`spec.rules[2].clusters.labelSelector: Invalid value: values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty`,
			`spec.rules[2].patches[0].path: Invalid value: /status belongs to the controllers in the member: drop it from the rule`,
			`spec.rules[2].patches[1].from: Invalid value: /metadata/labels/hanse.dev~1hub is a label or annotation of Hanse, which cannot be moved: drop it from the rule`,
			`spec.rules[2].patches[2].value: Invalid value: /metadata/labels/a is a label or annotation and takes only a string: put the value in quotes`,
			`spec.rules[2].patches[3].op: Invalid value: /spec/x has the unknown operation "swap": use add, remove, replace, move, copy or test`,
			`spec.rules[3]: Invalid value: changes nothing: set exclude, images, command, args, env, resources, labels, annotations, mergePatch, patches or edits`,
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var spec hubv1.OverridePolicySpec
			if err := yaml.UnmarshalStrict([]byte(tc.spec), &spec); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, err := range Validate(&spec, field.NewPath("spec")) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestValidateBoundsWhatItLooksAt(t *testing.T) {
	spec := hubv1.OverridePolicySpec{ResourceSelectors: make([]hubv1.ResourceSelector, 1000), Rules: make([]hubv1.OverrideRule, 1000)}
	spec.Rules[0].Clusters = &hubv1.RuleClusters{Names: make([]string, maxNames+1)}
	errs := Validate(&spec, field.NewPath("spec"))
	for _, want := range []string{"spec.resourceSelectors: Too many: 1000", "spec.rules: Too many: 1000", "spec.rules[0].clusters.names: Too many: 257"} {
		if !strings.Contains(errs.ToAggregate().Error(), want) {
			t.Errorf("no %q", want)
		}
	}
	if len(errs) > 500 {
		t.Errorf("%d errors", len(errs))
	}
}

// The CRD refuses these paths, too. But a policy may be older than the validation rules of the CRD, or the rules may be
// incomplete.
func TestWhatIsClosedIsRefusedInEveryWay(t *testing.T) {
	closed := []string{
		"/apiVersion", "/kind", "/kind/x", "/status", "/status/replicas", "/metadata",
		"/metadata/name", "/metadata/namespace", "/metadata/uid", "/metadata/generateName", "/metadata/ownerReferences",
		"/metadata/ownerReferences/0", "/metadata/finalizers", "/metadata/finalizers/-", "/metadata/managedFields",
		"/metadata/resourceVersion", "/metadata/creationTimestamp", "/metadata/deletionTimestamp", "/metadata/generation",
		"/metadata/labels", "/metadata/annotations", "/metadata/labels/hanse.dev~1hub", "/metadata/annotations/hanse.dev~1pause",
		"/metadata/labels/a/b",
	}
	for _, path := range closed {
		rules := map[string]hubv1.OverrideRule{
			"add":       {Patches: []hubv1.PatchOperation{patch("add", path, "", `"x"`)}},
			"replace":   {Patches: []hubv1.PatchOperation{patch("replace", path, "", `"x"`)}},
			"remove":    {Patches: []hubv1.PatchOperation{patch("remove", path, "", "")}},
			"test":      {Patches: []hubv1.PatchOperation{patch("test", path, "", `"x"`)}},
			"copy to":   {Patches: []hubv1.PatchOperation{patch("copy", path, "/spec/a", "")}},
			"move to":   {Patches: []hubv1.PatchOperation{patch("move", path, "/spec/a", "")}},
			"move from": {Patches: []hubv1.PatchOperation{patch("move", "/spec/b", path, "")}},
			"merge":     {MergePatch: raw(along(path, "x"))},
			"null":      {MergePatch: raw(along(path, nil))},
		}
		for way, rule := range rules {
			rule.Name = "r"
			_, err := renderWith(objectWith(map[string]any{"a": "x"}), policyWith("a", rule))
			// In a merge patch, a list index is only a key, so that the reason may differ. But a path into metadata is refused
			// in any case.
			if !isInvalid(err) || !strings.Contains(err.Error(), "cannot be") && !strings.Contains(err.Error(), "belongs to") && !strings.Contains(err.Error(), "takes only a string") {
				t.Errorf("%s of %s: %v", way, path, err)
			}
			if len(Validate(&hubv1.OverridePolicySpec{
				ResourceSelectors: []hubv1.ResourceSelector{{Kind: "A"}}, Rules: []hubv1.OverrideRule{rule},
			}, nil)) != 1 {
				t.Errorf("%s of %s is valid", way, path)
			}
		}
	}
	open := []string{"/metadata/name", "/metadata/namespace", "/metadata/labels", "/metadata/labels/a", "/metadata", "/kind"}
	for _, from := range open {
		if _, err := renderWith(objectWith(map[string]any{}), policyWith("a", rulesOf([]hubv1.PatchOperation{patch("copy", "/spec/a", from, "")})...)); err != nil {
			t.Errorf("copying from %s: %v", from, err)
		}
	}
	for _, from := range []string{"/status", "/status/phase", "/metadata/uid", "/metadata/finalizers/0", "/metadata/labels/hanse.dev~1hub"} {
		if _, err := renderWith(objectWith(map[string]any{}), policyWith("a", rulesOf([]hubv1.PatchOperation{patch("copy", "/spec/a", from, "")})...)); !isInvalid(err) {
			t.Errorf("copying from %s: %v", from, err)
		}
	}
}

// along returns a merge patch that sets the field at the path to the value v.
func along(path string, v any) any {
	steps, _ := parsePointer(path)
	for i := len(steps) - 1; i >= 0; i-- {
		v = map[string]any{steps[i]: v}
	}
	return v
}

// rulesOf divides operations among as many rules as needed.
func rulesOf(ops []hubv1.PatchOperation) []hubv1.OverrideRule {
	var out []hubv1.OverrideRule
	for len(ops) > 0 {
		n := min(len(ops), maxPatches)
		out = append(out, hubv1.OverrideRule{Name: fmt.Sprintf("r%d", len(out)), Patches: ops[:n]})
		ops = ops[n:]
	}
	return out
}
