package overrides

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
)

func TestRenderRefusesMalformedTemplates(t *testing.T) {
	thing := func(metadata any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Thing", "metadata": metadata}}
	}
	tests := map[string]struct {
		template *unstructured.Unstructured
		want     string
	}{
		"no template":                    {nil, "the hub object: is missing"},
		"an empty template":              {&unstructured.Unstructured{}, "the hub object: path /metadata is not an object"},
		"metadata that is text":          {thing("x"), "the hub object: path /metadata is not an object"},
		"a name that is a number":        {thing(map[string]any{"name": int64(5)}), "the hub object: path /metadata/name is not a string"},
		"labels that are text":           {thing(map[string]any{"labels": "x"}), "the hub object: path /metadata/labels is not a map of strings: correct the object on the hub"},
		"labels that are typed":          {thing(map[string]any{"labels": map[string]string{"a": "b"}}), "the hub object: path /metadata/labels is not a map of strings: correct the object on the hub"},
		"an annotation that is null":     {thing(map[string]any{"annotations": map[string]any{"b": nil, "c": nil, "d": "x"}}), "the hub object: path /metadata/annotations/b is not a string: correct the object on the hub"},
		"a key that is no text":          {thing(map[string]any{"annotations": map[string]any{"\xff\n": 1}}), "the hub object: path /metadata/annotations/?? is not a string: correct the object on the hub"},
		"a value that Go made":           {objectWith(map[string]any{"a": 5}), "the hub object: holds a value that JSON cannot represent: correct the object on the hub"},
		"a number that JSON cannot hold": {objectWith(map[string]any{"a": math.NaN()}), "the hub object: holds a value that JSON cannot represent: correct the object on the hub"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := render(tc.template, Cluster{}, nil)
			if diff := cmp.Diff(tc.want, message(err)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestRenderTakesOddTemplates(t *testing.T) {
	many := map[string]any{}
	for i := range 10000 {
		many[fmt.Sprintf("example.com/%d", i)] = "x"
	}
	template := objectWith(map[string]any{"text": "\xff\x00", "big": int64(math.MaxInt64), "list": []any(nil), "map": map[string]any(nil), "null": nil})
	template.Object["metadata"].(map[string]any)["labels"] = many
	template.Object["metadata"].(map[string]any)["annotations"] = nil
	got, err := renderWith(template, policyWith("a", parseRule(t, `mergePatch: {spec: {map: {a: 1}}}`)))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(got.GetLabels()); n != 10000 {
		t.Errorf("%d labels", n)
	}
	if got.Object["spec"].(map[string]any)["map"].(map[string]any)["a"] != int64(1) {
		t.Errorf("got %v", got.Object["spec"])
	}
	for _, field := range []string{"map", "list", "null"} {
		_, err := renderWith(template, policyWith("a", parseRule(t, `patches: [{op: add, path: /spec/`+field+`/x, value: 1}]`)))
		if !isInvalid(err) {
			t.Errorf("adding to %s: %v", field, err)
		}
	}
}

func TestAnUnknownTierIsRefused(t *testing.T) {
	inNamespace := clusterPolicyWith("a", hubv1.TierNamespaced)
	for _, p := range []hubv1.OverridePolicyObject{clusterPolicyWith("a", "Emperor"), inNamespace} {
		if _, err := renderWith(objectWith(map[string]any{}), p); !isInvalid(err) {
			t.Errorf("tier %s: %v", p.OverrideTier(), err)
		}
	}
}

func TestTheLastOfManyRulesWins(t *testing.T) {
	p := policyWith("a")
	for i := range maxRules {
		p.Spec.Rules = append(p.Spec.Rules, parseRule(t, fmt.Sprintf("priority: %d, mergePatch: {spec: {v: %d}}", i*7%5, i)))
	}
	got, err := renderWith(objectWith(map[string]any{}), p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(map[string]any{"v": int64(62)}), got.Object["spec"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNumbersAreComparedByValue(t *testing.T) {
	tests := map[string]struct {
		a, b any
		want bool
	}{
		"an integer and a float":    {int64(1), 1.0, true},
		"a float and an integer":    {1.0, int64(1), true},
		"an integer and a fraction": {int64(1), 1.5, false},
		"inside of lists and maps":  {[]any{map[string]any{"a": int64(1)}}, []any{map[string]any{"a": 1.0}}, true},
		"a number and its text":     {int64(1), "1", false},
		"a list and a map":          {[]any{}, map[string]any{}, false},
		"a null and a missing key":  {map[string]any{"a": nil}, map[string]any{"b": nil}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := equal(tc.a, tc.b); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

// The object and the patch contain a certain value. No error message may contain this value.
func TestErrorsHoldNoValues(t *testing.T) {
	const canary = "canary-7f3a"
	template := objectWith(map[string]any{"password": canary + ": [", "list": []any{canary}})
	rules := []string{
		`edits: [{path: /spec/password, format: YAML, mergePatch: {a: 1}}]`,
		`images: [{path: /spec/password, tag: x}]`,
		`patches: [{op: add, path: /spec/password/x, value: canary-7f3a}]`,
		`patches: [{op: replace, path: /spec/list/5, value: canary-7f3a}]`,
		`patches: [{op: copy, from: /spec/list, path: /metadata/labels/a}]`,
		`mergePatch: canary-7f3a`,
		`mergePatch: {metadata: {labels: {a: [canary-7f3a]}}}`,
	}
	for _, r := range rules {
		_, err := renderWith(template, policyWith("a", parseRule(t, r)))
		if !isInvalid(err) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v", r, err)
		}
	}
	result, err := render(template, Cluster{}, []hubv1.OverridePolicyObject{policyWith("a", parseRule(t, `patches: [{op: test, path: /spec/password, value: canary-7f3a-2}]`))})
	if err != nil || len(result.Skipped) != 1 || strings.Contains(result.Skipped[0].Reason, canary) {
		t.Errorf("skipped %v, %v", result.Skipped, err)
	}
	_, err = renderWith(template, policyWith("a", parseRule(t, `mergePatch: {spec: {password: canary-7f3a-2}}`)),
		policyWith("b", parseRule(t, `mergePatch: {spec: {password: canary-7f3a-3}}`)))
	if !isConflict(err) || strings.Contains(err.Error(), canary) {
		t.Error(err)
	}
	broken := hubv1.OverrideRule{Name: "r", MergePatch: raw(nil)}
	broken.MergePatch.Raw = []byte(`{"a":` + canary)
	if _, err := renderWith(template, policyWith("a", broken)); !isInvalid(err) || strings.Contains(err.Error(), canary) {
		t.Error(err)
	}
}

func TestDigest(t *testing.T) {
	digest := func(text string, salt ...string) string {
		var u unstructured.Unstructured
		if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		return Digest(nil, &u, salt...)
	}
	one := digest(`{"a":1,"b":{"c":[1,2],"d":"x"}}`, "s", "t")
	if len(one) != 32 {
		t.Errorf("got %q", one)
	}
	if other := digest(`{"b":{"d":"x","c":[1,2]},"a":1}`, "s", "t"); other != one {
		t.Error("the order of keys changes the digest")
	}
	all := map[string]string{one: "itself"}
	for name, other := range map[string]string{
		"another value":         digest(`{"a":2,"b":{"c":[1,2],"d":"x"}}`, "s", "t"),
		"another order":         digest(`{"a":1,"b":{"c":[2,1],"d":"x"}}`, "s", "t"),
		"another salt":          digest(`{"a":1,"b":{"c":[1,2],"d":"x"}}`, "s", "u"),
		"no salt":               digest(`{"a":1,"b":{"c":[1,2],"d":"x"}}`),
		"one salt in two parts": digest(`{"a":1,"b":{"c":[1,2],"d":"x"}}`, "st"),
		"no JSON":               Digest(nil, &unstructured.Unstructured{Object: map[string]any{"a": math.Inf(1)}}),
	} {
		if same, ok := all[other]; ok {
			t.Errorf("%s has the digest of %s", name, same)
		}
		all[other] = name
	}
}

func BenchmarkRender(b *testing.B) {
	for _, kib := range []int{2, 50} {
		template, policies := objectOf(kib<<10), []hubv1.OverridePolicyObject{policyWith("metrics", hubv1.OverrideRule{
			Name: "r", MergePatch: raw(map[string]any{"spec": map[string]any{"replicas": 5}}),
			Patches: []hubv1.PatchOperation{patch("replace", "/spec/groups/0/name", "", `"first"`)},
		})}
		b.Run(fmt.Sprintf("%dKiB", kib), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := render(template, Cluster{Name: "c"}, policies); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("%dKiB without policies", kib), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := render(template, Cluster{Name: "c"}, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("%dKiB digest", kib), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Digest(nil, template, "uid")
			}
		})
		b.Run(fmt.Sprintf("%dKiB by the way of bytes", kib), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := throughBytes(template, policies[0].OverrideSpec().Rules[0].Patches); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// objectOf returns an object of about this number of bytes of JSON.
func objectOf(bytes int) *unstructured.Unstructured {
	var groups []any
	for i := range max(1, bytes/330) {
		groups = append(groups, map[string]any{
			"name": fmt.Sprintf("group-%d", i), "interval": "30s", "limit": int64(i),
			"rules": []any{
				map[string]any{"alert": "HighLatency", "expr": strings.Repeat("x", 80), "for": "5m", "labels": map[string]any{"severity": "page"}},
				map[string]any{"record": "job:latency:mean5m", "expr": strings.Repeat("y", 60)},
			},
		})
	}
	return objectWith(map[string]any{"replicas": int64(3), "groups": groups})
}

func TestObjectsOfTheBenchmarkHaveTheirSize(t *testing.T) {
	for _, want := range []int{2 << 10, 50 << 10} {
		if got := len(raw(objectOf(want).Object).Raw); got < want*8/10 || got > want*12/10 {
			t.Errorf("%d bytes instead of %d", got, want)
		}
	}
	if err := fits(objectOf(3 << 20).Object); err != nil {
		t.Errorf("3 MiB do not fit: %v", err)
	}
	if !errors.Is(fits(objectOf(5<<20).Object), ErrTooLarge) {
		t.Error("5 MiB fit")
	}
}

func patch(op hubv1.PatchOp, path, from, value string) hubv1.PatchOperation {
	out := hubv1.PatchOperation{Op: op, Path: path, From: from}
	if value != "" {
		out.Value = &apiextensionsv1.JSON{Raw: []byte(value)}
	}
	return out
}

func render(template *unstructured.Unstructured, cluster Cluster, policies []hubv1.OverridePolicyObject, divided ...Divided) (Result, error) {
	p, err := Prepare(template, nil)
	if err != nil {
		return Result{}, err
	}
	return p.Render(cluster, policies, divided)
}

func TestTheDigestOfASecretIsKeyed(t *testing.T) {
	digest := func(kind, key string) string {
		return Digest(canonical.Key(key), &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "data": map[string]any{"a": "x"}}}, "uid")
	}
	if digest("Secret", "one") == digest("Secret", "other") || digest("Secret", "one") == digest("Secret", "") {
		t.Error("whoever has no key can compute the digest of a Secret")
	}
	if digest("ConfigMap", "one") != digest("ConfigMap", "other") {
		t.Error("the digest of a ConfigMap is keyed: every copy would be written again")
	}
}

func TestExpressionsDoNotSeeTheValuesOfASecret(t *testing.T) {
	template := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "web", "namespace": "team"},
		"data": map[string]any{"password": "aHVudGVyMg=="}, "stringData": map[string]any{"token": "hunter2"},
	}}
	for name, expression := range map[string]string{
		"of data":       "object.data.password",
		"of stringData": "object.stringData.token",
		"of all":        "string(size(object.data))",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(template, clusterOfTest(), []hubv1.OverridePolicyObject{policyWith("p", where("", making(hubv1.PatchAdd, "/metadata/labels/leak", expression)))})
			if err == nil || !strings.Contains(err.Error(), "no such key") {
				t.Errorf("got %v", err)
			}
		})
	}
	result, err := render(template, clusterOfTest(), []hubv1.OverridePolicyObject{policyWith("p", where("", making(hubv1.PatchAdd, "/data/cluster", "cluster.name")))})
	if err != nil || result.Manifest.Object["data"].(map[string]any)["password"] != "aHVudGVyMg==" {
		t.Errorf("%v, %v: what no rule names is to stay", result, err)
	}
}
