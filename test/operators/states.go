package operators

import (
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// The folder states/known has kinds that were reported with a wrong verdict. The statuses in states/unseen come from
// the code of operators for which no rule had been written at that time, so that they test the rules and not the list
// of words.
//
//go:embed states/known/*.yaml states/unseen/*.yaml
var stateFiles embed.FS

// Kind is one kind with objects in several states.
type Kind struct {
	// Operator is the name of the file.
	Operator string `json:"-"`
	// Source says in which release the definition and the statuses were read.
	Source string `json:"source"`
	// Definition has the printer columns and subresources of the kind's definition. It is nil for a kind of Kubernetes.
	Definition *apiextensionsv1.CustomResourceDefinitionVersion `json:"definition,omitempty"`
	Object     *unstructured.Unstructured                       `json:"object"`
	States     []State                                          `json:"states"`
}

// State is a status that an operator reports, with the verdicts that an expert accepts.
type State struct {
	Name string `json:"name"`
	// Health has the verdicts that an expert accepts. Message is a part of the verdict's message; empty for any message.
	Health  []hubv1.Health `json:"health"`
	Message string         `json:"message,omitempty"`
	Why     string         `json:"why,omitempty"`
	// Spec replaces the spec of the object, if it is set.
	Spec   map[string]any `json:"spec,omitempty"`
	Status map[string]any `json:"status"`
}

// Kinds returns the kinds of a folder below states, sorted by operator.
func Kinds(tb testing.TB, folder string) []Kind {
	tb.Helper()
	folder = path.Join("states", folder)
	entries, err := stateFiles.ReadDir(folder)
	if err != nil {
		tb.Fatal(err)
	}
	var out []Kind
	for _, entry := range entries {
		text, err := stateFiles.ReadFile(path.Join(folder, entry.Name()))
		if err != nil {
			tb.Fatal(err)
		}
		err = documents(text, func(document []byte) error {
			k := Kind{Operator: strings.TrimSuffix(entry.Name(), ".yaml")}
			if err := yaml.UnmarshalStrict(document, &k); err != nil {
				return err
			}
			if k.Source == "" || k.Object == nil || len(k.States) == 0 {
				return fmt.Errorf("%s lacks source, object or states", k.Operator)
			}
			out = append(out, k)
			return nil
		})
		if err != nil {
			tb.Fatalf("reading %s: %v", entry.Name(), err)
		}
	}
	return out
}

// CRD returns the definition of the kind, with the version of the object as its only version. It is nil for a kind of
// Kubernetes.
func (k Kind) CRD() *apiextensionsv1.CustomResourceDefinition {
	if k.Definition == nil {
		return nil
	}
	gvk := k.Object.GroupVersionKind()
	version := k.Definition.DeepCopy()
	version.Name = gvk.Version
	return &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: gvk.Group, Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: gvk.Kind},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{*version},
	}}
}

// In returns the object in a state.
func (k Kind) In(tb testing.TB, s State) *unstructured.Unstructured {
	tb.Helper()
	out := k.Object.DeepCopy()
	if s.Spec != nil {
		out.Object["spec"] = s.Spec
	}
	out.Object["status"] = s.Status
	return decoded(tb, out)
}

// decoded returns the object with whole numbers as integers, like a response of an API server.
func decoded(tb testing.TB, obj *unstructured.Unstructured) *unstructured.Unstructured {
	tb.Helper()
	text, err := json.Marshal(obj.Object)
	if err != nil {
		tb.Fatal(err)
	}
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(text); err != nil {
		tb.Fatal(err)
	}
	return out
}
