// Package operators has sample objects of widely used operators, and the definitions of their kinds. Each sample is in
// a state that its operator reports. The package is for tests.
//
// We wrote the samples. Each sample has a verdict, which is its health in the opinion of an experienced user of the
// operator. The definitions come from pinned releases of the operators' Go modules. A sample that violates its
// definition is an error, so that no sample has an invented field.
package operators

import (
	"bufio"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

//go:embed samples/*.yaml
var files embed.FS

// Sample is one object in one state.
type Sample struct {
	// Operator is the name of the sample's file. Name describes the object and its state.
	Operator string `json:"-"`
	Name     string `json:"name"`
	// Verdict is the health in the opinion of an experienced user of the operator. Why gives the reason.
	Verdict hubv1.Health               `json:"verdict"`
	Why     string                     `json:"why"`
	Object  *unstructured.Unstructured `json:"object"`
}

// Samples returns all samples, sorted by operator.
func Samples(tb testing.TB) []Sample {
	tb.Helper()
	entries, err := files.ReadDir("samples")
	if err != nil {
		tb.Fatal(err)
	}
	var out []Sample
	for _, entry := range entries {
		samples, err := read(path.Join("samples", entry.Name()))
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, samples...)
	}
	return out
}

func read(file string) (samples []Sample, err error) {
	text, err := files.ReadFile(file)
	if err != nil {
		return nil, err
	}
	err = documents(text, func(document []byte) error {
		s := Sample{Operator: strings.TrimSuffix(path.Base(file), ".yaml")}
		if err := yaml.UnmarshalStrict(document, &s); err != nil {
			return err
		}
		if s.Name == "" || s.Verdict == "" || s.Why == "" || s.Object == nil {
			return fmt.Errorf("sample %q lacks name, verdict, why or object", s.Name)
		}
		samples = append(samples, s)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return samples, nil
}

// documents calls f with each document of a YAML file.
func documents(text []byte, f func([]byte) error) error {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		if err := f(document); err != nil {
			return err
		}
	}
}

// Definition returns the definition of a kind of the samples.
func Definition(tb testing.TB, gk schema.GroupKind) *apiextensionsv1.CustomResourceDefinition {
	tb.Helper()
	found := Definitions(tb)[gk]
	if found == nil {
		tb.Fatalf("no definition of %s in the modules: see modules.go", gk)
	}
	return found
}
