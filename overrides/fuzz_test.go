package overrides

import (
	"encoding/json"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Each fuzz test fails on a panic, on a changed input, and on a result beyond the limits. Its seeds are in
// testdata/fuzz.

// FuzzRender reads a hub object and a rule, both as JSON. The rules include those that the CRD would refuse.
func FuzzRender(f *testing.F) {
	f.Add(`{"metadata":{"name":"a"},"spec":{"list":[1,{"a":null}]}}`, `{"patches":[{"op":"add","path":"/spec/list/1/b","value":[]}],"mergePatch":{"spec":{"x":{"y":null}}}}`)
	f.Add(`{"metadata":{"name":"a"},"spec":{"list":[{"n":"a","v":[1,2]},{"n":1}]}}`, `{"when":"object.spec.list.size() > 1","patches":[{"op":"replace","path":"/spec/list/[n=a]/v/*","value":3}],"images":[{"path":"/spec/list/*/v/*","tag":"x"}],"env":[{"path":"/spec/list/[n=1]","set":[{"name":"A","expression":"cluster.name"}]}]}`)
	f.Fuzz(func(t *testing.T, object, rule string) {
		template := &unstructured.Unstructured{}
		if utiljson.Unmarshal([]byte(object), &template.Object) != nil {
			return
		}
		var r hubv1.OverrideRule
		_ = json.Unmarshal([]byte(rule), &r)
		r.Name, r.Clusters, r.Exclude = "r", nil, false
		fuzzRender(t, template, r)
	})
}

// FuzzMergePatch reads a hub object and a merge patch, which may be invalid JSON.
func FuzzMergePatch(f *testing.F) {
	f.Add(`{"metadata":{},"a":{"b":[[[]]]}}`, `{"a":{"b":{"":{}}}}`)
	f.Fuzz(func(t *testing.T, object, patch string) {
		template := &unstructured.Unstructured{}
		if utiljson.Unmarshal([]byte(object), &template.Object) != nil {
			return
		}
		fuzzRender(t, template, hubv1.OverrideRule{Name: "r", MergePatch: &apiextensionsv1.JSON{Raw: []byte(patch)}})
	})
}

// FuzzStringEdit reads a text, and a merge patch and operations for the document in the text.
func FuzzStringEdit(f *testing.F) {
	f.Add("a: 1 # one\nb: {c: [1, 2]}\n", false, `{"a":2,"d":{"e":null}}`, `[{"op":"add","path":"/b/c/0","value":"yes"}]`)
	f.Fuzz(func(t *testing.T, text string, isJSON bool, mergePatch, patches string) {
		edit := hubv1.StringEdit{Path: "/data/text", Format: hubv1.TextYAML, MergePatch: &apiextensionsv1.JSON{Raw: []byte(mergePatch)}}
		if isJSON {
			edit.Format = hubv1.TextJSON
		}
		_ = json.Unmarshal([]byte(patches), &edit.Patches)
		template := func(text string) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}, "data": map[string]any{"text": text}}}
		}
		rule := hubv1.OverrideRule{Name: "r", Edits: []hubv1.StringEdit{edit}}
		fuzzRender(t, template(text), rule)
		if edit.Patches != nil {
			return
		}
		once, err := renderWith(template(text), policyWith("a", rule))
		if err != nil {
			return
		}
		changed := once.Object["data"].(map[string]any)["text"].(string)
		twice, err := renderWith(template(changed), policyWith("a", rule))
		if err != nil {
			return // the text has become too long to edit
		}
		if again := twice.Object["data"].(map[string]any)["text"]; again != changed {
			t.Errorf("%q becomes %q, and that %q", text, changed, again)
		}
	})
}

func fuzzRender(t *testing.T, template *unstructured.Unstructured, rule hubv1.OverrideRule) {
	t.Helper()
	before := raw(template.Object).Raw
	for _, policies := range [][]hubv1.OverridePolicyObject{
		{policyWith("a", rule)}, {policyWith("a", rule), policyWith("b", rule)},
	} {
		checkRendered(t, template, policies)
	}
	if after := raw(template.Object).Raw; string(before) != string(after) {
		t.Fatalf("the template was changed from\n%s\nto\n%s", before, after)
	}
}

func checkRendered(t *testing.T, template *unstructured.Unstructured, policies []hubv1.OverridePolicyObject) {
	t.Helper()
	result, err := render(template, Cluster{Name: "c"}, policies)
	if err != nil {
		if result.Manifest != nil {
			t.Error("a manifest came with an error")
		}
		return
	}
	if len(Digest(nil, result.Manifest)) != 32 {
		t.Error("no digest")
	}
	if err := fits(result.Manifest.Object); err != nil {
		t.Error(err)
	}
	if _, ok := result.Manifest.Object["status"]; ok {
		t.Error("the status has travelled")
	}
	if result.Manifest.GetName() != template.GetName() || result.Manifest.GetKind() != template.GetKind() {
		t.Error("the identity was changed")
	}
	if _, err := strip(result.Manifest, nil); err != nil {
		t.Errorf("the metadata is malformed: %v", err)
	}
	for key := range result.Manifest.GetLabels() {
		if strings.HasPrefix(key, hubv1.Prefix) {
			t.Errorf("label %q has travelled", key)
		}
	}
}
