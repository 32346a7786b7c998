package rollup

import (
	"maps"
	"regexp"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/health"
	"github.com/hanse-dev/hanse/test/examples"
)

// exampleFiles are the files with examples, and the minimum number of examples in each. The guide shows what readers
// need. The file in testdata covers all other rules.
var exampleFiles = []examples.File{
	{Path: "../../docs/status.md", AtLeast: 10},
	{Path: "testdata/examples.md", AtLeast: 2},
}

// mergingExample matches an example. An example has two YAML blocks: the first begins with a schema, and the second has
// the status of the hub object.
var mergingExample = regexp.MustCompile("```yaml\n(schema:[^`]*)```\n\n```yaml\n([^`]*)```")

// scenario is the input of an example.
type scenario struct {
	// Schema has the properties of the status; Required has its required fields.
	Schema   map[string]apiextensionsv1.JSONSchemaProps `json:"schema"`
	Required []string                                   `json:"required"`
	// Kind and Group are those of the CRD. Scale is the statusReplicasPath of its scale subresource.
	Kind, Group, Scale string
	// Spec is the hub object's spec. Its booleans become properties of the schema.
	Spec              map[string]any          `json:"spec"`
	StatusAggregation hubv1.StatusAggregation `json:"statusAggregation"`
	// Clusters has the status that each cluster reports.
	Clusters map[string]map[string]any `json:"clusters"`
	// Away are the unreachable clusters. Unasked are the clusters from which the hub has not yet requested the fields that
	// reducers name.
	Away, Unasked []string
}

func (s scenario) crd() *apiextensionsv1.CustomResourceDefinition {
	spec := map[string]apiextensionsv1.JSONSchemaProps{}
	for name, value := range s.Spec {
		if _, ok := value.(bool); ok {
			spec[name] = apiextensionsv1.JSONSchemaProps{Type: "boolean"}
		}
	}
	crd := &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: s.Group, Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: s.Kind},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"spec":   {Type: "object", Properties: spec},
					"status": {Type: "object", Required: s.Required, Properties: s.Schema},
				},
			}},
		}},
	}}
	if s.Scale != "" {
		crd.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{StatusReplicasPath: s.Scale}}
	}
	return crd
}

// rows returns the rows and targets of the clusters. Each row has the last status that its cluster reported.
func (s scenario) rows() (rows []hubv1.ClusterRow, targets []hubv1.BindingTarget) {
	var paths []string
	for _, r := range s.StatusAggregation.Reducers {
		paths = append(paths, r.Path)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Clusters)) {
		row := hubv1.ClusterRow{Name: name, UID: types.UID(name), Generation: 1, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy, LastTransitionTime: &noon}
		if slices.Contains(s.Away, name) {
			row.Applied, row.Health, row.Reason = metav1.ConditionUnknown, hubv1.HealthUnknown, hubv1.ReasonUnreachable
		}
		asked := paths
		if slices.Contains(s.Unasked, name) {
			asked = nil
		}
		row.Observed = raw(health.Project(schema.GroupKind{Group: s.Group, Kind: s.Kind}, s.Clusters[name], asked...))
		rows = append(rows, row)
		targets = append(targets, hubv1.BindingTarget{Name: name, State: hubv1.TargetPresent})
	}
	return rows, targets
}

func (s scenario) template() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"generation": int64(1)}, "spec": s.Spec}}
}

// test has the methods of testing.T and rapid.T that the helpers need.
type test interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// outcomeOf has the merged status of the hub object and the names of the fields that were left out, as in the YAML of
// the examples.
type outcomeOf struct {
	Status  map[string]any `json:"status,omitempty"`
	LeftOut []string       `json:"leftOut,omitempty"`
	Error   string         `json:"error,omitempty"`
}

func (s scenario) merge(t test) outcomeOf {
	t.Helper()
	schema, _, err := NewSchema(s.crd(), "v1")
	if err != nil {
		t.Fatal(err)
	}
	rules, err := NewRules(s.StatusAggregation)
	if err != nil {
		return outcomeOf{Error: err.Error()}
	}
	rows, targets := s.rows()
	status, leftOut, err := MergeStatus(schema, rules, s.template(), rows, targets, noon)
	if err != nil {
		return outcomeOf{LeftOut: leftOut, Error: err.Error()}
	}
	return outcomeOf{Status: status, LeftOut: leftOut}
}

func readScenario(t test, text string) scenario {
	t.Helper()
	var s scenario
	if err := yaml.UnmarshalStrict([]byte(text), &s); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return s
}

func TestTheMergingExamplesOfTheGuide(t *testing.T) {
	examples.Run(t, *update, mergingExample, exampleFiles, func(t *testing.T, _, input string) string {
		t.Helper()
		got, err := yaml.Marshal(readScenario(t, input).merge(t))
		if err != nil {
			t.Fatal(err)
		}
		return string(got)
	})
}
