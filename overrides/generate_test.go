package overrides

import (
	"encoding/json"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// There are only a few keys, so that generated patches often concern the same fields.
var keys = rapid.SampledFrom([]string{"a", "b", "c", "0", "~", "x/y"})

func drawValue(t *rapid.T, depth int) any {
	kinds := 5
	if depth > 0 {
		kinds = 7
	}
	switch rapid.IntRange(1, kinds).Draw(t, "kind") {
	case 1:
		return int64(rapid.IntRange(0, 3).Draw(t, "int"))
	case 2:
		return rapid.SampledFrom([]string{"", "x", "<é>"}).Draw(t, "string")
	case 3:
		return rapid.Bool().Draw(t, "bool")
	case 4:
		return rapid.SampledFrom([]float64{0.5, 1e21}).Draw(t, "float")
	case 5:
		return map[string]any{}
	case 6:
		list := make([]any, rapid.IntRange(0, 3).Draw(t, "len"))
		for i := range list {
			list[i] = drawValue(t, depth-1)
		}
		return list
	}
	return drawObject(t, depth)
}

func drawObject(t *rapid.T, depth int) map[string]any {
	out := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(t, "fields") {
		out[keys.Draw(t, "key")] = drawValue(t, depth-1)
	}
	return out
}

// drawMerge generates a merge patch: an object that may contain nulls.
func drawMerge(t *rapid.T, depth int) map[string]any {
	out := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(t, "fields") {
		var v any
		switch kind := rapid.IntRange(0, 3).Draw(t, "merge"); {
		case kind == 0:
		case kind == 1 && depth > 0:
			v = drawMerge(t, depth-1)
		default:
			v = drawValue(t, depth)
		}
		out[keys.Draw(t, "key")] = v
	}
	return out
}

// drawPointer generates a pointer to a value in v, or to a value that does not exist in v.
func drawPointer(t *rapid.T, v any) pointer {
	p := pointer{"spec"}
	for {
		var next []string
		switch v := v.(type) {
		case map[string]any:
			next = []string{"a", "b", "0"}
			for k := range v {
				if k != "a" && k != "b" && k != "0" {
					next = append(next, k)
				}
			}
		case []any:
			next = []string{"0", "1", "2", "-"}
		default:
			next = []string{"a"}
		}
		// Two maps with the same content must be generated in the same order.
		slices.Sort(next)
		step := rapid.SampledFrom(next).Draw(t, "step")
		p = append(p, step)
		var ok bool
		if v, ok = child(v, step); !ok || rapid.IntRange(0, 2).Draw(t, "stop") == 0 {
			return p
		}
	}
}

func drawOperation(t *rapid.T, spec any) hubv1.PatchOperation {
	op := hubv1.PatchOperation{
		Op: rapid.SampledFrom([]hubv1.PatchOp{
			hubv1.PatchAdd, hubv1.PatchRemove, hubv1.PatchReplace, hubv1.PatchMove, hubv1.PatchCopy, hubv1.PatchTest,
		}).Draw(t, "op"),
		Path: text(drawPointer(t, spec)),
	}
	if takesFrom(op.Op) {
		op.From = text(drawPointer(t, spec))
	}
	if takesValue(op.Op) {
		op.Value = raw(drawValue(t, 2))
	}
	return op
}

func drawRule(t *rapid.T, name string, spec any) hubv1.OverrideRule {
	rule := hubv1.OverrideRule{Name: name, Priority: int32(rapid.IntRange(0, 1).Draw(t, "priority"))}
	if rapid.Bool().Draw(t, "merges") {
		rule.MergePatch = raw(map[string]any{"spec": drawMerge(t, 2)})
	}
	for range rapid.IntRange(0, 2).Draw(t, "operations") {
		rule.Patches = append(rule.Patches, drawOperation(t, spec))
	}
	if rule.MergePatch == nil && len(rule.Patches) == 0 {
		rule.MergePatch = raw(map[string]any{})
	}
	return rule
}

func drawTemplate(t *rapid.T) *unstructured.Unstructured {
	return objectWith(drawObject(t, 3))
}

func objectWith(spec any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing",
		"metadata": map[string]any{"name": "web", "namespace": "team", "uid": "u", "labels": map[string]any{"a": "b"}},
		"spec":     spec,
		"status":   map[string]any{"phase": "Running"},
	}}
}

func policyWith(name string, rules ...hubv1.OverrideRule) *hubv1.OverridePolicy {
	return &hubv1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name},
		Spec:       hubv1.OverridePolicySpec{Rules: rules},
	}
}

func raw(v any) *apiextensionsv1.JSON {
	out, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return &apiextensionsv1.JSON{Raw: out}
}

// text returns the whole pointer as text. The method String cuts long pointers.
func text(p pointer) string {
	out := ""
	for _, step := range p {
		out += "/" + escape.Replace(step)
	}
	return out
}

func clusterPolicyWith(name string, tier hubv1.Tier, rules ...hubv1.OverrideRule) *hubv1.ClusterOverridePolicy {
	p := &hubv1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Tier = tier
	p.Spec.Rules = rules
	return p
}
