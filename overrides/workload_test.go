package overrides

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// drawWorkload draws an object with containers and texts.
func drawWorkload(t *rapid.T) *unstructured.Unstructured {
	var containers []any
	for _, name := range rapid.Permutation([]string{"a", "b"}).Draw(t, "containers") {
		c := map[string]any{"name": name, "image": rapid.SampledFrom([]string{"nginx", "ghcr.io/x/y:1", "x/y:1@sha256:" + strings.Repeat("a", 64)}).Draw(t, "image")}
		if rapid.Bool().Draw(t, "has env") {
			c["env"] = []any{map[string]any{"name": "A", "value": "1"}, map[string]any{"name": "B", "value": "1"}}
		}
		containers = append(containers, c)
	}
	return objectWith(map[string]any{
		"template": map[string]any{"spec": map[string]any{"containers": containers}},
		"n":        int64(rapid.IntRange(0, 2).Draw(t, "n")),
		"yaml":     rapid.SampledFrom([]string{"a: 1 # one\nc: {x: [1, 2]}\n", "c:\n- x\n# foot\nb: {}\n", "{}"}).Draw(t, "yaml"),
		"json":     rapid.SampledFrom([]string{`{"b":1,"a":{"x":2}}`, "{\n \"a\": []\n}\n"}).Draw(t, "json"),
	})
}

// drawWorkloadRule generates a rule for the objects of drawWorkload. It uses only a few values, so that some policies
// agree.
func drawWorkloadRule(t *rapid.T, name string) hubv1.OverrideRule {
	rule := hubv1.OverrideRule{Name: name, Priority: int32(rapid.IntRange(0, 1).Draw(t, "priority"))}
	for range rapid.IntRange(1, 3).Draw(t, "changes") {
		switch rapid.IntRange(0, 8).Draw(t, "change") {
		case 0:
			parts := rapid.SampledFrom([]hubv1.ImageOverride{{Registry: "r.io"}, {Repository: "team/z"}, {Tag: "2"}, {Registry: "r.io", Tag: "3"}}).Draw(t, "parts")
			if parts.Path = rapid.SampledFrom([]string{"", "/spec/template/spec/containers/*/image", "/spec/template/spec/*/0/image", "/spec/template/spec/containers/[name=b]/image"}).Draw(t, "path"); parts.Path == "" {
				parts.Containers = drawTarget(t).Containers
			}
			rule.Images = append(rule.Images, parts)
		case 1:
			rule.Args = append(rule.Args, hubv1.CommandOverride{ContainerTarget: drawTarget(t), Value: []string{rapid.SampledFrom([]string{"x", "y"}).Draw(t, "arg")}})
		case 2:
			env := hubv1.EnvOverride{ContainerTarget: drawTarget(t), Set: []hubv1.EnvVariable{{EnvVar: corev1.EnvVar{Name: rapid.SampledFrom([]string{"A", "B", "C"}).Draw(t, "variable"), Value: "2"}}}}
			if rapid.Bool().Draw(t, "removes") && env.Set[0].Name != "A" {
				env.Remove = []string{"A"}
			}
			rule.Env = append(rule.Env, env)
		case 3:
			cpu := rapid.SampledFrom([]string{"1", "2"}).Draw(t, "cpu")
			rule.Resources = append(rule.Resources, hubv1.ResourcesOverride{ContainerTarget: drawTarget(t), Limits: corev1.ResourceList{"cpu": resource.MustParse(cpu)}})
		case 4:
			rule.Labels = map[string]string{rapid.SampledFrom([]string{"a", "b"}).Draw(t, "label"): "c"}
		case 5, 6:
			rule.Edits = append(rule.Edits, drawEdit(t))
		case 7:
			rule.MergePatch = raw(map[string]any{"spec": drawWorkloadMerge(t)})
		case 8:
			rule.Patches = append(rule.Patches, drawWorkloadPatch(t))
		}
	}
	return rule
}

func drawTarget(t *rapid.T) hubv1.ContainerTarget {
	return hubv1.ContainerTarget{Containers: rapid.SampledFrom([][]string{nil, {"a"}, {"b"}}).Draw(t, "target")}
}

func drawEdit(t *rapid.T) hubv1.StringEdit {
	e := rapid.SampledFrom([]hubv1.StringEdit{
		{Path: "/spec/yaml", Format: hubv1.TextYAML}, {Path: "/spec/json", Format: hubv1.TextJSON},
	}).Draw(t, "text")
	if rapid.Bool().Draw(t, "merges") {
		e.MergePatch = raw(drawMerge(t, 1))
		return e
	}
	op := drawOperation(t, map[string]any{"a": map[string]any{"x": int64(1)}})
	e.Patches = []hubv1.EditOperation{{Op: op.Op, Path: strings.TrimPrefix(op.Path, "/spec"), From: strings.TrimPrefix(op.From, "/spec"), Value: op.Value}}
	return e
}

func drawWorkloadMerge(t *rapid.T) map[string]any {
	return rapid.SampledFrom([]map[string]any{
		{"n": int64(1)}, {"n": nil}, {"yaml": "a: 2\n"}, {"json": "{}"},
		{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "b", "image": "new"}, map[string]any{"name": "a", "image": "new"}}}}},
	}).Draw(t, "merge")
}

func drawWorkloadPatch(t *rapid.T) hubv1.PatchOperation {
	const containers = "/spec/template/spec/containers"
	return rapid.SampledFrom([]hubv1.PatchOperation{
		patch("test", "/spec/n", "", "1"), patch("replace", "/spec/n", "", "1"), patch("replace", "/spec/n", "", "2"),
		patch("test", containers+"/0/name", "", `"a"`), patch("replace", containers+"/0/image", "", `"nginx:2"`),
		patch("remove", containers+"/1", "", ""), patch("add", containers+"/0", "", `{"name":"c","image":"c"}`),
		patch("add", containers+"/0/args", "", `["x"]`), patch("copy", "/spec/image", containers+"/0/image", ""),
		patch("add", containers+"/1/env", "", `[{"name":"C","value":"2"}]`),
		patch("replace", containers+"/*/image", "", `"nginx:2"`), patch("replace", containers+"/[name=b]/image", "", `"nginx:2"`),
		patch("remove", containers+"/[name=a]", "", ""), patch("remove", containers+"/*/env/[name=A]", "", ""), patch("replace", containers+"/*/env/*/value", "", `"2"`),
		patch("add", containers+"/*/args", "", `["x"]`), patch("test", containers+"/[name=b]/image", "", `"nginx"`), patch("replace", containers+"/0/name", "", `"b"`),
		patch("replace", containers+"/0/env/0/name", "", `"C"`), patch("replace", containers+"/*/env/1/name", "", `"A"`),
		patch("copy", containers+"/[name=c]/image", containers+"/[name=a]/image", ""),
	}).Draw(t, "patch")
}

func TestOrderOfPoliciesForWorkloadsChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		template := drawWorkload(t)
		var policies []hubv1.OverridePolicyObject
		for _, name := range []string{"a", "b", "c"} {
			policies = append(policies, policyWith(name, drawWorkloadRule(t, "one"), drawWorkloadRule(t, "two")))
		}
		policies = append(policies, clusterPolicyWith("a", hubv1.TierAdmin, drawWorkloadRule(t, "admin")))
		before := raw([]any{template, policies}).Raw

		want, wantErr := render(template, Cluster{}, policies)
		got, gotErr := render(template, Cluster{}, rapid.Permutation(policies).Draw(t, "order"))
		if diff := cmp.Diff([]any{want, message(wantErr)}, []any{got, message(gotErr)}); diff != "" {
			t.Fatalf("-one order +another:\n%s", diff)
		}
		again, againErr := render(template, Cluster{}, policies)
		if diff := cmp.Diff([]any{want, message(wantErr)}, []any{again, message(againErr)}); diff != "" {
			t.Fatalf("-once +again:\n%s", diff)
		}
		if after := raw([]any{template, policies}).Raw; string(before) != string(after) {
			t.Fatalf("Render has changed its input from\n%s\nto\n%s", before, after)
		}
	})
}

// textsParsed returns the object with each text replaced by the value of the text, because two texts may write the same
// empty map in different ways.
func textsParsed(t *rapid.T, u *unstructured.Unstructured) map[string]any {
	out := u.DeepCopy().Object
	spec := out["spec"].(map[string]any)
	for field, format := range map[string]hubv1.TextFormat{"yaml": hubv1.TextYAML, "json": hubv1.TextJSON} {
		if text, ok := spec[field].(string); ok {
			d, message := parseDocument(format, text)
			if message != "" {
				t.Fatal(message)
			}
			spec[field] = d.value
		}
	}
	return out
}

// If two policies do not conflict, the result does not depend on their names. drawWorkloadRule draws the rules of both
// policies. A rule sets one or more of these fields: images, args, env, resources, labels, edits, mergePatch and
// patches.
func TestNamesOfPoliciesForWorkloadsWithoutConflictChangeNothing(t *testing.T) {
	agreed := 0
	rapid.Check(t, func(t *rapid.T) {
		template := drawWorkload(t)
		one := []hubv1.OverrideRule{drawWorkloadRule(t, "one"), drawWorkloadRule(t, "two")}
		other := []hubv1.OverrideRule{drawWorkloadRule(t, "one"), drawWorkloadRule(t, "two")}
		first, firstErr := renderWith(template, policyWith("a", one...), policyWith("b", other...))
		second, secondErr := renderWith(template, policyWith("b", one...), policyWith("a", other...))
		if isConflict(firstErr) != isConflict(secondErr) && !isInvalid(firstErr) && !isInvalid(secondErr) {
			t.Fatalf("errors %v and %v", firstErr, secondErr)
		}
		if firstErr != nil || secondErr != nil {
			return
		}
		agreed++
		if diff := cmp.Diff(textsParsed(t, first), textsParsed(t, second)); diff != "" {
			t.Fatalf("%s\n%s\n%s\n-one first +the other first:\n%s", raw(template).Raw, raw(one).Raw, raw(other).Raw, diff)
		}
	})
	if agreed == 0 && !testing.Short() {
		t.Error("no two policies without a conflict were drawn")
	}
	t.Logf("%d pairs of policies agreed", agreed)
}

// The test draws rules that set values, and do not append, move or remove by index. If such rules are applied a second
// time, the object does not change.
func TestRenderingTheRenderedChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := drawWorkloadRule(t, "r")
		rule.Patches = nil
		rule.Edits = slices.DeleteFunc(rule.Edits, func(e hubv1.StringEdit) bool { return e.Patches != nil })
		if rule.MergePatch == nil && len(rule.Edits) == 0 {
			rule.MergePatch = raw(map[string]any{})
		}
		once, err := renderWith(drawWorkload(t), policyWith("a", rule))
		if err != nil {
			return
		}
		twice, err := renderWith(once, policyWith("a", rule))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(once.Object, twice.Object); diff != "" {
			t.Fatalf("%s\n-once +twice:\n%s", raw(rule).Raw, diff)
		}
	})
}

func TestExplainNamesExactlyTheFieldsThatDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		template := drawWorkload(t)
		policies := []hubv1.OverridePolicyObject{
			policyWith("a", drawWorkloadRule(t, "one"), drawWorkloadRule(t, "two")), policyWith("b", drawRule(t, "one", template.Object["spec"])),
			clusterPolicyWith("a", hubv1.TierAdmin, drawWorkloadRule(t, "admin")),
		}
		divided := []Divided{{Path: "/spec/replicas", Number: int64(rapid.IntRange(0, 1).Draw(t, "replicas"))}}
		want, wantErr := render(template, Cluster{}, policies, divided...)
		prepared, err := Prepare(template, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, gotErr := prepared.Explain(Cluster{}, policies, divided)
		if message(wantErr) != message(gotErr) {
			t.Fatalf("Render says %v and Explain %v", wantErr, gotErr)
		}
		if gotErr != nil {
			return
		}
		fields := got.Fields
		got.Fields = nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("-Render +Explain:\n%s", diff)
		}
		checkFields(t, leavesOf(prepared.manifest.Object), leavesOf(got.Manifest.Object), fields, got.Applied)
	})
}

func checkFields(t *rapid.T, before, after map[string]any, fields []FieldOrigin, applied []RuleRef) {
	differs := map[string]bool{}
	for path, v := range after {
		if was, ok := before[path]; !ok || !equal(was, v) {
			differs[path] = true
		}
	}
	for path := range before {
		if _, ok := after[path]; !ok {
			differs[path] = true
		}
	}
	for _, f := range fields {
		if !differs[f.Path] {
			t.Errorf("%s does not differ, or is named twice", f.Path)
		}
		delete(differs, f.Path)
		is, has := after[f.Path]
		if f.Removed == has || has && !equal(f.Value, is) {
			t.Errorf("%s is %v (there: %t), explained as %+v", f.Path, is, has, f.FieldValue)
		}
		if place := slices.Index(applied, f.By.Rule); place < 0 && !f.By.Division {
			t.Errorf("%s was set by %s, which was not applied", f.Path, f.By)
		}
		for i, s := range f.Shadowed {
			if slices.Index(applied, s.By.Rule) > slices.Index(applied, f.By.Rule) {
				t.Errorf("%s: %s is shadowed by %s, which comes first", f.Path, s.By, f.By)
			}
			if was, had := before[f.Path]; s.By == (Author{}) && (i != len(f.Shadowed)-1 || !had || !equal(s.Value, was)) {
				t.Errorf("%s: the template had %v, not %v", f.Path, was, s.Value)
			}
		}
	}
	if len(differs) > 0 {
		t.Errorf("not explained: %v", differs)
	}
}

func TestExplain(t *testing.T) {
	template := objectWith(map[string]any{"replicas": int64(3), "paused": false, "list": []any{"a", "b"}, "image": "x/y:1"})
	admin := clusterPolicyWith("ceiling", hubv1.TierAdmin, parseRule(t, `mergePatch: {spec: {retention: 7d}}`))
	policies := []hubv1.OverridePolicyObject{
		admin,
		policyWith("a", parseRule(t, `priority: 5, mergePatch: {spec: {replicas: 5, retention: 30d}}`)),
		policyWith("b", parseRule(t, `mergePatch: {spec: {replicas: 4, paused: null}}, patches: [{op: remove, path: /spec/list/0}], images: [{path: /spec/image, tag: "2"}]`)),
		policyWith("c", parseRule(t, `priority: 9, mergePatch: {spec: {replicas: 5}}`)),
	}
	prepared, err := Prepare(template, nil)
	if err != nil {
		t.Fatal(err)
	}
	result, err := prepared.Explain(Cluster{}, policies, []Divided{{Path: "/spec/shards", Number: 2}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range result.Fields {
		line := fmt.Sprintf("%s = %s", f.Path, says(f.FieldValue))
		for _, s := range f.Shadowed {
			line += " | " + says(s)
		}
		got = append(got, line)
	}
	want := []string{
		`/spec/image = x/y:2 by OverridePolicy team/b, rule "r" (Namespaced/0/none/0) | x/y:1 by template`,
		`/spec/list/0 = b by OverridePolicy team/b, rule "r" (Namespaced/0/none/0) | a by template`,
		`/spec/list/1 = nothing by OverridePolicy team/b, rule "r" (Namespaced/0/none/0) | b by template`,
		`/spec/paused = nothing by OverridePolicy team/b, rule "r" (Namespaced/0/none/0) | false by template`,
		`/spec/replicas = 5 by OverridePolicy team/c, rule "r" (Namespaced/9/none/0) | 5 by OverridePolicy team/a, rule "r" (Namespaced/5/none/0) | 4 by OverridePolicy team/b, rule "r" (Namespaced/0/none/0) | 3 by template`,
		`/spec/retention = 7d by ClusterOverridePolicy ceiling, rule "r" (Admin/0/none/0) | 30d by OverridePolicy team/a, rule "r" (Namespaced/5/none/0)`,
		`/spec/shards = 2 by division of replicas`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestExplainRefusesWhatWouldTakeLong(t *testing.T) {
	p := policyWith("a")
	for i := range 20 {
		p.Spec.Rules = append(p.Spec.Rules, parseRule(t, fmt.Sprintf("mergePatch: {spec: {n: %d}}", i)))
	}
	prepared, err := Prepare(objectWith(map[string]any{"a": strings.Repeat("x", 900<<10)}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := prepared.Explain(Cluster{}, []hubv1.OverridePolicyObject{p}, nil); !isInvalid(err) || !strings.Contains(err.Error(), "too large to be explained") {
		t.Errorf("got %v", err)
	}
}

func says(v FieldValue) string {
	value := "nothing"
	if !v.Removed {
		value = fmt.Sprint(v.Value)
	}
	value += " by " + v.By.String()
	if v.By.Rank != "" {
		value += " (" + v.By.Rank + ")"
	}
	return value
}
