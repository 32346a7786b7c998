package v1alpha1_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

func TestTheExamplesOfTheReferenceAreAccepted(t *testing.T) {
	c := connect(t)
	kinds := sets.New[string]()
	for _, block := range yamlBlock.FindAllStringSubmatch(page(t, "api.md"), -1) {
		documents := yaml.NewYAMLOrJSONDecoder(strings.NewReader(block[1]), 4096)
		for {
			obj := &unstructured.Unstructured{}
			if err := documents.Decode(&obj.Object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			kinds.Insert(obj.GetKind())
			if obj.GetNamespace() != "" {
				obj.SetNamespace("default") // the API server of this test has no other usable namespace
			}
			if err := c.Create(t.Context(), obj, client.DryRunAll); err != nil {
				t.Errorf("%s: %v", obj.GetKind(), err)
			}
		}
	}
	for kind := range creations {
		if !kinds.Has(kind) && kind != "ClusterResourceBinding" { // one example covers both kinds
			t.Errorf("there is no example of a %s", kind)
		}
	}
}

func TestThePageOfConditionsKnowsEveryConditionAndReason(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "conditions.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	row := regexp.MustCompile("`([^`]+)`")
	for _, line := range strings.Split(page(t, "conditions.md"), "\n") {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			for _, word := range row.FindAllStringSubmatch(cells[1], -1) {
				known[word[1]] = true
			}
		}
	}
	words := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			return true // hanse.dev/Healthy, which is not a literal
		}
		word, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		if words++; !known[word] {
			t.Errorf("docs/conditions.md has no row for %s", word)
		}
		return true
	})
	if words < 50 {
		t.Errorf("found %d conditions and reasons in conditions.go", words)
	}
}
