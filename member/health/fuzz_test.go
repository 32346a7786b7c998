package health

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/operators"
)

// hostile are objects that no operator would write.
var hostile = []string{
	`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`,
	`{"apiVersion":"apps/v1","kind":"Deployment","status":{"conditions":{"a":1}},"spec":{"replicas":"x"}}`,
	`{"apiVersion":"v1","kind":"Pod","status":{"phase":"Running","containerStatuses":[3]}}`,
	`{"apiVersion":"batch/v1","kind":"Job","metadata":{"generation":"x"},"status":[]}`,
	`{"apiVersion":7,"kind":[],"metadata":"x","status":"y"}`,
	`{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"generation":1.5},"status":{"observedGeneration":"1"}}`,
	`{"status":{"a":{"b":{"c":{"d":{"e":{"f":1}}}}},"conditions":"none","x":1e300,"notAfter":"2030-01-01T00:00:00Z"}}`,
	`{"spec":{"size":"3","replicas":1e18},"status":{"size":-1,"readyReplicas":"many","phase":["Failed"],"health":{"status":"red"}}}`,
	`{"spec":"none","status":{"parents":[1,{"conditions":[null,{"type":"Accepted","status":"False","severity":3}]}],"ancestors":{}}}`,
	`{"status":{"phase":"\u00e9 \ud800 failed","state":"1/","x":"/3","conditions":[{"type":"ComparisonError","message":7}]}}`,
}

func FuzzAssess(f *testing.F) {
	for _, s := range hostile {
		f.Add([]byte(s), ".status.x", ".spec.size", ".status.size")
	}
	for _, s := range operators.Samples(f) {
		raw, err := json.Marshal(s.Object.Object)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, `.status.conditions[?(@.type=="Ready")].status`, ".spec.replicas", ".status.replicas")
	}
	f.Fuzz(func(t *testing.T, data []byte, column, spec, status string) {
		content := map[string]any{}
		if json.Unmarshal(data, &content) != nil {
			return
		}
		conventions := ReadConventions(&apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", AdditionalPrinterColumns: []apiextensionsv1.CustomResourceColumnDefinition{{Name: "Status", JSONPath: column}},
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
					Scale:  &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: spec, StatusReplicasPath: status},
				},
			}},
		}}, "v1")
		fits(t, Assess(&unstructured.Unstructured{Object: content}, conventions))
		fits(t, Assess(&unstructured.Unstructured{Object: content}, Conventions{}))
		s, _ := content["status"].(map[string]any)
		if p := Project(schema.GroupKind{}, s); len(p) > MaxProjection || (p != nil && !json.Valid(p)) {
			t.Errorf("projection of %d bytes: %s", len(p), p)
		}
		ObservedGeneration(&unstructured.Unstructured{Object: content})
	})
}

func fits(t *testing.T, v Verdict) {
	t.Helper()
	if utf8.RuneCountInString(v.Message) > maxMessage || !utf8.ValidString(v.Message) || len(v.Reason) > maxReason || severity(v.Health) < 0 && v.Health != hubv1.HealthUnknown {
		t.Errorf("verdict %+v", v)
	}
}

func FuzzExpression(f *testing.F) {
	for _, text := range []string{
		"true", "object.status.phase == 'Up'", "{'health': 'Degraded', 'message': object.status.text}", "object.status.list.all(x, x > 1)",
		"object", "object.metadata.name + object.metadata.name", "[1].map(x, [1].map(y, object))", "1/0", "object.status.text.matches('(a+)+$')",
		"has(object.status) ? 'Healthy' : 'Unknown'", "dyn({'health': 3})", "{'health': 'Healthy', 'message': {}}",
	} {
		f.Add(text, []byte(`{"metadata":{"name":"a"},"status":{"phase":"Up","text":"aaaaaaaaaaaaaaaaaaaaaaaaaaaa!","list":[1,2,3]}}`))
	}
	f.Fuzz(func(t *testing.T, text string, data []byte) {
		content := map[string]any{}
		if json.Unmarshal(data, &content) != nil {
			return
		}
		e, _ := Compile(text)
		fits(t, (&Settings{Expression: e}).Assess(&unstructured.Unstructured{Object: content}, Conventions{}))
	})
}
