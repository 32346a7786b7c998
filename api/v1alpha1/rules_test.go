package v1alpha1_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ruleCase has a spec, and the message with which the API server refuses the spec. The message is empty if the API
// server accepts the spec.
type ruleCase struct {
	name string // name of the object; empty: "x"
	spec string
	says string
}

// creations has the test cases of each kind. A namespaced kind and its cluster-scoped counterpart have the same cases.
var creations = map[string]map[string]ruleCase{
	"MemberCluster":          memberClusterCases,
	"Placement":              placementCases,
	"ClusterPlacement":       placementCases,
	"OverridePolicy":         overridePolicyCases,
	"ClusterOverridePolicy":  overridePolicyCases,
	"ResourceBinding":        bindingCases,
	"ClusterResourceBinding": bindingCases,
	"Bundle":                 bundleCases,
	"ClusterBundle":          bundleCases,
	"FederatedOperator":      operatorCases,
	"NotificationSink":       sinkCases,
	"SetRollout":             setCases,
}

func TestCreating(t *testing.T) {
	c := connect(t)
	for kind, cases := range creations {
		for name, tc := range cases {
			t.Run(kind+"/"+name, func(t *testing.T) { create(t, c, kind, tc) })
		}
	}
}

// The test covers the fields that only the cluster-scoped kind has.
func TestCreatingClusterScopedTwins(t *testing.T) {
	c := connect(t)
	tests := map[string]struct {
		kind string
		ruleCase
	}{
		"a ClusterPlacement may select namespaces": {"ClusterPlacement", ruleCase{spec: placementSpec + `
namespaceSelector: {matchLabels: {team: a}}`}},
		"a ClusterOverridePolicy may select namespaces": {"ClusterOverridePolicy", ruleCase{spec: overridesSpec(`{name: r, mergePatch: {}}`) + `
namespaceSelector: {}`}},
		"a tier is Baseline": {"ClusterOverridePolicy", ruleCase{spec: overridesSpec(`{name: r, mergePatch: {}}`) + `
tier: Baseline`}},
		"a tier is Admin": {"ClusterOverridePolicy", ruleCase{spec: overridesSpec(`{name: r, mergePatch: {}}`) + `
tier: Admin`}},
		"a tier is not Namespaced, which is the stage of an OverridePolicy": {"ClusterOverridePolicy", ruleCase{spec: overridesSpec(`{name: r, mergePatch: {}}`) + `
tier: Namespaced`, says: `spec.tier: Unsupported value: "Namespaced"`}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { create(t, c, tc.kind, tc.ruleCase) })
	}
}

func create(t *testing.T, c client.Client, kind string, tc ruleCase) {
	t.Helper()
	name := tc.name
	if name == "" {
		name = "x"
	}
	err := c.Create(t.Context(), object(t, kind, name, tc.spec), client.DryRunAll)
	switch {
	case tc.says != "":
		wantRefusal(t, err, tc.says)
	case err != nil:
		t.Fatal(err)
	}
}

// Each validation rule needs a test case that it refuses. Otherwise a rule that refuses no object, or every object,
// would stay unnoticed.
func TestEveryRuleOfTheCRDsHasACaseThatItRefuses(t *testing.T) {
	var reported []string
	for _, cases := range creations {
		for _, tc := range cases {
			reported = append(reported, tc.says)
		}
	}
	for _, tc := range updates {
		reported = append(reported, tc.says)
	}
	tested := strings.Join(append(reported, typeStays), "\n")
	files, err := filepath.Glob(filepath.Join(crdFolder, "*.yaml"))
	if err != nil || len(files) != len(creations) {
		t.Fatalf("found %d CRDs, error %v", len(files), err)
	}
	for _, file := range files {
		crd := readCRD(t, file)
		messages := sets.New[string]()
		for _, v := range crd.Spec.Versions {
			collectMessages(*v.Schema.OpenAPIV3Schema, messages)
		}
		if messages.Len() == 0 {
			t.Errorf("%s has no rule", crd.Name)
		}
		for message := range messages {
			if !strings.Contains(tested, message) {
				t.Errorf("%s: no case is refused with %q", crd.Name, message)
			}
		}
	}
}

func readCRD(t *testing.T, file string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return parse[*apiextensionsv1.CustomResourceDefinition](t, string(text))
}

func collectMessages(s apiextensionsv1.JSONSchemaProps, messages sets.Set[string]) {
	for _, rule := range s.XValidations {
		messages.Insert(rule.Message)
	}
	for _, p := range s.Properties {
		collectMessages(p, messages)
	}
	if s.Items != nil {
		collectMessages(*s.Items.Schema, messages)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		collectMessages(*s.AdditionalProperties.Schema, messages)
	}
}

// many repeats an element of a YAML list. %d in the element is replaced by its index.
func many(n int, element string) string {
	var b strings.Builder
	b.WriteByte('[')
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strings.ReplaceAll(element, "%d", strconv.Itoa(i)))
	}
	b.WriteByte(']')
	return b.String()
}
