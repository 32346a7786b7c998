package health

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/hanse-dev/hanse/test/examples"
)

var update = flag.Bool("update", false, "write the verdicts into docs/status.md and testdata/examples.md")

const guide = "../../docs/status.md"

// exampleFiles are the files with examples, and the minimum number of examples in each. The guide shows what readers
// need. The file in testdata covers all other rules.
var exampleFiles = []examples.File{
	{Path: guide, AtLeast: 5},
	{Path: "testdata/examples.md", AtLeast: 5},
}

// An example is a block of YAML with objects, followed by a block of text with the verdict on each object.
var healthExample = regexp.MustCompile("```yaml\n((?:definition|expression|objects):[^`]*)```\n\n```text\n([^`]*)```")

type guideExample struct {
	// Definition is a version of a CustomResourceDefinition. If it is missing, the kind has only a status subresource.
	Definition *apiextensionsv1.CustomResourceDefinitionVersion `json:"definition"`
	Expression string                                           `json:"expression"`
	Objects    map[string]map[string]any                        `json:"objects"`
}

func TestTheExamplesOfTheGuide(t *testing.T) {
	examples.Run(t, *update, healthExample, exampleFiles, func(t *testing.T, _, input string) string {
		t.Helper()
		return assessed(t, input)
	})
}

func assessed(t *testing.T, block string) string {
	t.Helper()
	e := guideExample{Definition: &apiextensionsv1.CustomResourceDefinitionVersion{Subresources: &apiextensionsv1.CustomResourceSubresources{
		Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
	}}}
	if err := yaml.UnmarshalStrict([]byte(block), &e); err != nil {
		t.Fatal(err)
	}
	e.Definition.Name = "v1"
	conventions := ReadConventions(&apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{*e.Definition},
	}}, "v1")
	var settings Settings
	if e.Expression != "" {
		var err error
		if settings.Expression, err = Compile(e.Expression); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(e.Objects)) {
		e.Objects[name]["apiVersion"], e.Objects[name]["kind"] = "example.com/v1", "Widget"
		raw, err := json.Marshal(e.Objects[name])
		if err != nil {
			t.Fatal(err)
		}
		obj := &unstructured.Unstructured{}
		if err := obj.UnmarshalJSON(raw); err != nil {
			t.Fatal(err)
		}
		v := settings.Assess(obj, conventions)
		fmt.Fprintf(&out, "%s: %s", name, v.Health)
		if v.Reason != "" {
			fmt.Fprintf(&out, " (%s: %s)", v.Reason, v.Message)
		}
		out.WriteByte('\n')
	}
	return out.String()
}
