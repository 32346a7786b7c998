package operators

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// module is one release of an operator. It has the folders of the Go module that contain the definitions for the
// samples.
type module struct {
	version string // module as path@version
	sum     string // checksum of the module's content, as in go.sum
	files   []string
}

//go:embed definitions/*.yaml
var own embed.FS

// Definitions returns the definitions of all kinds in samples and situations, and of the kinds that the hub publishes.
// The definitions come from the Go modules of the operators. For kinds without a module, this package has its own
// definitions. The modules are downloaded once and stay in Go's module cache. In a short test run, the test is skipped.
func Definitions(tb testing.TB) map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition {
	tb.Helper()
	if testing.Short() {
		tb.Skip("short: definitions are read from Go modules, which may have to be downloaded")
	}
	definitions, err := load()
	if err != nil {
		tb.Fatal(err)
	}
	return definitions
}

var load = sync.OnceValues(func() (map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition, error) {
	folders, err := download()
	if err != nil {
		return nil, err
	}
	out := map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition{}
	for _, m := range modules {
		for _, file := range m.files {
			text, err := os.ReadFile(filepath.Join(folders[m.version], file))
			if err != nil {
				return nil, fmt.Errorf("reading a definition of %s: %w", m.version, err)
			}
			if err := documents(text, func(document []byte) error { return add(out, document) }); err != nil {
				return nil, fmt.Errorf("reading %s of %s: %w", file, m.version, err)
			}
		}
	}
	return out, addOwn(out)
})

func addOwn(to map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition) error {
	entries, err := own.ReadDir("definitions")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		text, err := own.ReadFile(path.Join("definitions", entry.Name()))
		if err != nil {
			return err
		}
		if err := documents(text, func(document []byte) error { return add(to, document) }); err != nil {
			return fmt.Errorf("reading %s: %w", entry.Name(), err)
		}
	}
	return nil
}

func add(to map[schema.GroupKind]*apiextensionsv1.CustomResourceDefinition, document []byte) error {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(document, &crd); err != nil {
		return err
	}
	if crd.Kind == "CustomResourceDefinition" {
		to[schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}] = &crd
	}
	return nil
}

// download downloads all modules and returns the folder of each. It runs outside of any module, because the modules of
// Hanse do not depend on the operators.
func download() (folders map[string]string, err error) {
	outside, err := os.MkdirTemp("", "hanse-operators-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(outside)) }()
	args := []string{"mod", "download", "-json"}
	for _, m := range modules {
		args = append(args, m.version)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = outside
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, failed := cmd.Output()

	folders = map[string]string{}
	sums := map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var m struct{ Path, Version, Dir, Sum, Error string }
		if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("reading what was downloaded: %w", err)
		}
		if m.Error != "" {
			return nil, fmt.Errorf("downloading %s@%s: %s", m.Path, m.Version, m.Error)
		}
		version := m.Path + "@" + m.Version
		folders[version], sums[version] = m.Dir, m.Sum
	}
	if failed != nil {
		return nil, fmt.Errorf("downloading the modules of operators: %w: %s", failed, strings.TrimSpace(stderr.String()))
	}
	for _, m := range modules {
		if sums[m.version] != m.sum {
			return nil, fmt.Errorf("%s has the sum %q, not %q", m.version, sums[m.version], m.sum)
		}
	}
	return folders, nil
}
