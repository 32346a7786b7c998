package overrides

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func secretWith(data, texts map[string]any) *unstructured.Unstructured {
	object := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "mail", "namespace": "team"}}
	if data != nil {
		object["data"] = data
	}
	if texts != nil {
		object["stringData"] = texts
	}
	return &unstructured.Unstructured{Object: object}
}

func TestStringDataOfASecretIsFoldedIntoData(t *testing.T) {
	type keys = map[string]any
	const a, b, c = "YQ==", "Yg==", "Yw==" // the texts a, b and c
	tests := map[string]struct {
		data, texts keys
		rules       []string // the later rule has the higher rank
		want        keys
	}{
		"a file's text without a rule":                            {texts: keys{"user": "a"}, want: keys{"user": a}},
		"a file's text wins over its data":                        {data: keys{"user": a, "host": c}, texts: keys{"user": "b"}, want: keys{"user": b, "host": c}},
		"an empty text":                                           {texts: keys{"user": ""}, want: keys{"user": ""}},
		"a rule for another field":                                {texts: keys{"user": "a"}, rules: []string{`labels: {x: y}`}, want: keys{"user": a}},
		"a text by a merge patch":                                 {data: keys{"user": a}, rules: []string{`mergePatch: {stringData: {user: b, relay: c}}`}, want: keys{"user": b, "relay": c}},
		"all texts by a patch":                                    {data: keys{"user": a}, rules: []string{`patches: [{op: add, path: /stringData, value: {relay: c}}]`}, want: keys{"user": a, "relay": c}},
		"a text from an expression":                               {data: keys{"user": a}, rules: []string{`patches: [{op: add, path: /stringData, value: {}}, {op: add, path: /stringData/user, expression: "'b'"}]`}, want: keys{"user": b}},
		"a patch of a file's text":                                {texts: keys{"user": "a"}, rules: []string{`patches: [{op: replace, path: /stringData/user, value: b}]`}, want: keys{"user": b}},
		"an edit of a file's text":                                {texts: keys{"user": "x: 1\n"}, rules: []string{`edits: [{path: /stringData/user, format: YAML, mergePatch: {x: 2}}]`}, want: keys{"user": "eDogMgo="}},
		"the higher rule's data wins over a text":                 {rules: []string{`mergePatch: {stringData: {user: a}}`, `mergePatch: {data: {user: Yg==}}`}, want: keys{"user": b}},
		"the hub's own value, put back by a higher rule":          {data: keys{"user": a}, rules: []string{`mergePatch: {stringData: {user: b}}`, `mergePatch: {data: {user: YQ==}}`}, want: keys{"user": a}},
		"the higher rule's text wins over data":                   {rules: []string{`mergePatch: {data: {user: YQ==}}`, `mergePatch: {stringData: {user: b}}`}, want: keys{"user": b}},
		"one rule with both: the text wins, as for an API server": {rules: []string{`mergePatch: {data: {user: YQ==}, stringData: {user: b}}`}, want: keys{"user": b}},
		"a text that a higher rule removes":                       {data: keys{"host": c}, rules: []string{`mergePatch: {stringData: {user: a}}`, `mergePatch: {stringData: {user: null}}`}, want: keys{"host": c}},
		"a file's text that a rule removes by its key in data":    {texts: keys{"user": "a", "host": "c"}, rules: []string{`mergePatch: {data: {user: null}}`}, want: keys{"host": c}},
		"null for a key of data that is no text":                  {data: keys{"user": a}, rules: []string{`mergePatch: {stringData: {user: null}}`}, want: keys{"user": a}},
		"a rule whose test fails":                                 {texts: keys{"user": "a"}, rules: []string{`patches: [{op: replace, path: /stringData/user, value: b}, {op: test, path: /type, value: other}]`}, want: keys{"user": a}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			template := secretWith(tc.data, tc.texts)
			before := template.DeepCopy()
			policy := policyWith("p")
			for i, text := range tc.rules {
				rule := parseRule(t, text)
				rule.Priority = int32(i)
				policy.Spec.Rules = append(policy.Spec.Rules, rule)
			}
			got, err := renderWith(template, policy)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Object["data"]); diff != "" || got.Object["stringData"] != nil {
				t.Errorf("stringData %v, data (-want +got):\n%s", got.Object["stringData"], diff)
			}
			if diff := cmp.Diff(before, template); diff != "" {
				t.Errorf("the template was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestStringDataThatIsNoTextIsLeftToTheSchema(t *testing.T) {
	got, err := renderWith(secretWith(nil, map[string]any{"port": int64(25), "user": "a"}))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"port": int64(25)}, got.Object["stringData"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestStringDataOfAnotherKindIsNotAWriteOnlyField(t *testing.T) {
	thing := objectWith(map[string]any{})
	thing.Object["stringData"] = map[string]any{"user": "a"}
	got, err := renderWith(thing, policyWith("p", parseRule(t, `mergePatch: {stringData: {host: c}}`)))
	if err != nil || got.Object["data"] != nil {
		t.Fatalf("%v: %v", err, got)
	}
	if diff := cmp.Diff(map[string]any{"user": "a", "host": "c"}, got.Object["stringData"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestATextAndDataOfOneKeyConflict(t *testing.T) {
	_, err := renderWith(secretWith(nil, nil),
		policyWith("one", parseRule(t, `mergePatch: {stringData: {user: a}}`)), policyWith("two", parseRule(t, `mergePatch: {data: {user: Yg==}}`)))
	if !isConflict(err) {
		t.Errorf("got %v", err)
	}
	_, err = renderWith(secretWith(nil, nil),
		policyWith("one", parseRule(t, `mergePatch: {stringData: {user: a}}`)), policyWith("two", parseRule(t, `mergePatch: {data: {host: Yg==}}`)))
	if err != nil {
		t.Errorf("different keys: %v", err)
	}
}

func TestExplainNamesTheRuleThatSetATextOfASecret(t *testing.T) {
	prepared, err := Prepare(secretWith(map[string]any{"user": "YQ=="}, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	result, err := prepared.Explain(clusterOfTest(), []hubv1.OverridePolicyObject{policyWith("p", parseRule(t, `mergePatch: {stringData: {user: b, relay: c}}`))}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	for _, f := range result.Fields {
		if f.By.Rule.Policy.Name != "p" {
			t.Errorf("%s is by %s", f.Path, f.By)
		}
		got[f.Path] = f.Value
	}
	if diff := cmp.Diff(map[string]any{"/data/user": "Yg==", "/data/relay": "Yw=="}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
