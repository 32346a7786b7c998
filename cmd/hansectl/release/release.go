// Package release reads Helm releases of the charts of Hanse, and computes the values with which a release lets the hub
// read or write more kinds. It writes nothing: the values of a release change only by helm, or in Git.
package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// maxBytes is the maximum size of an unpacked release. The Secret of a release has at most 1 MiB.
const maxBytes = 64 << 20

// SecretType is the type of the Secrets in which helm stores releases.
const SecretType = "helm.sh/release.v1"

// DeployedLabels returns the labels of the Secrets with the present revisions of releases.
func DeployedLabels() map[string]string {
	return map[string]string{"owner": "helm", "status": "deployed"}
}

// Release is one revision of a Helm release.
type Release struct {
	Name      string         `json:"name"`
	Namespace string         `json:"namespace"`
	Revision  int            `json:"version"`
	Values    map[string]any `json:"config"` // values that the user has set
	Chart     Chart          `json:"chart"`
}

// Chart is the chart of a release, as the release stores it.
type Chart struct {
	Metadata  map[string]any `json:"metadata"`
	Templates []File         `json:"templates"`
	Files     []File         `json:"files"`
	Defaults  map[string]any `json:"values"`
	Schema    []byte         `json:"schema"`
}

// File is a file of a chart.
type File struct {
	Name string `json:"name"`
	Data []byte `json:"data"`
}

// Read reads a release from the field "release" of its Secret.
func Read(stored []byte) (*Release, error) {
	zipped, err := base64.StdEncoding.DecodeString(string(stored))
	if err != nil {
		return nil, fmt.Errorf("decoding the release: %w", err)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(zipped))
	if err != nil {
		return nil, fmt.Errorf("unpacking the release: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(unzipped, maxBytes))
	if err != nil {
		return nil, fmt.Errorf("unpacking the release: %w", err)
	}
	var r Release
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("reading the release: %w", err)
	}
	return &r, nil
}

// ChartName returns the name of the chart.
func (r *Release) ChartName() string {
	name, _ := r.Chart.Metadata["name"].(string)
	return name
}

// Archive returns the chart as a gzipped tar archive, as helm package writes it.
func (r *Release) Archive() ([]byte, error) {
	metadata, err := yaml.Marshal(r.Chart.Metadata)
	if err != nil {
		return nil, fmt.Errorf("writing Chart.yaml: %w", err)
	}
	defaults, err := yaml.Marshal(r.Chart.Defaults)
	if err != nil {
		return nil, fmt.Errorf("writing values.yaml: %w", err)
	}
	files := []File{{"Chart.yaml", metadata}, {"values.yaml", defaults}}
	if len(r.Chart.Schema) > 0 {
		files = append(files, File{"values.schema.json", r.Chart.Schema})
	}
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for _, f := range append(append(files, r.Chart.Templates...), r.Chart.Files...) {
		if err := archive.WriteHeader(&tar.Header{Name: r.ChartName() + "/" + f.Name, Mode: 0o644, Size: int64(len(f.Data))}); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.Name, err)
		}
		if _, err := archive.Write(f.Data); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.Name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("packing the chart: %w", err)
	}
	if err := zipped.Close(); err != nil {
		return nil, fmt.Errorf("packing the chart: %w", err)
	}
	return out.Bytes(), nil
}

// Value returns a value that the user or the chart has set.
func (r *Release) Value(name string) any {
	if v, set := r.Values[name]; set {
		return v
	}
	return r.Chart.Defaults[name]
}
