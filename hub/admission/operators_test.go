package admission_test

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	widgetOperator = `kind: FederatedOperator, metadata: {name: widgets}`
	ofChart        = `chart: {archive: {configMap: widgets}, namespace: shop}`
)

func TestTheAuthorOfAnOperatorMayImpersonateItsAccount(t *testing.T) {
	tests := map[string]struct {
		operator, before string
		asked            bool
	}{
		"a new operator":              {operator: bundle(widgetOperator, ofChart), asked: true},
		"a change of the chart alone": {operator: bundle(widgetOperator, ofChart), before: bundle(widgetOperator, strings.Replace(ofChart, "shop", "other", 1)), asked: true},
		"a change of labels alone":    {operator: bundle(strings.Replace(widgetOperator, "name:", "labels: {a: b}, name:", 1), ofChart), before: bundle(widgetOperator, ofChart)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			h.may = func(string) bool { return false }
			answer := h.review(tt.operator, tt.before)
			if answer.Allowed == tt.asked {
				t.Fatalf("allowed is %t", answer.Allowed)
			}
			if tt.asked && !strings.Contains(answer.Result.Message, "alice needs the right to impersonate serviceaccounts deployer in namespace hanse-system") {
				t.Errorf("it says %q", answer.Result.Message)
			}
		})
	}
}

func TestAnOperatorIsNotDeletedWhileItsKindsAreInUse(t *testing.T) {
	const in = ` status: {provides: [Widget.test.hanse.dev]}}`
	operator := func(spec string) string { return `{` + widgetOperator + `, spec: {` + spec + `},` + in }
	const refused = "clusters have objects of the operator's kinds, and no operator would act on them any more: delete these objects first, or set spec.removal to Allow: Widget.test.hanse.dev shop/web"
	tests := map[string]struct {
		operator string
		clusters []string
		says     string
	}{
		"an object is on a cluster":              {operator: operator(ofChart), clusters: []string{"eu-1"}, says: refused},
		"an object is on no cluster":             {operator: operator(ofChart)},
		"the removal is allowed":                 {operator: operator(ofChart + ", removal: Allow"), clusters: []string{"eu-1"}},
		"an operator that provides no kind":      {operator: `{` + widgetOperator + `, spec: {` + ofChart + `}}`, clusters: []string{"eu-1"}},
		"an operator that provides another kind": {operator: strings.Replace(operator(ofChart), "Widget", "Gear", 1), clusters: []string{"eu-1"}},
		"a bundle is always deleted":             {operator: bundle(everywhere, "configMaps: [{name: a}]"), clusters: []string{"eu-1"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			h.place("web", `{}`, tt.clusters...)
			req := h.request("alice", tt.operator, "")
			req.Operation, req.OldObject, req.Object = admissionv1.Delete, req.Object, runtime.RawExtension{}
			answer := h.reviewer().Handle(t.Context(), req)
			if answer.Allowed != (tt.says == "") {
				t.Fatalf("allowed is %t: %+v", answer.Allowed, answer.Result)
			}
			if !answer.Allowed && answer.Result.Message != tt.says {
				t.Errorf("it says %q", answer.Result.Message)
			}
		})
	}
}
