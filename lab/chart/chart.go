// Package chart makes Helm charts of operators, either from their manifests or from the chart in their module.
//
// Equal manifests give byte-identical charts.
package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	_ "embed" // for the schema
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// The template actions that replace values in the manifests. The actions add the quotes themselves, so the method
// template removes the quotes that the YAML encoder puts around the actions.
const (
	namespaceAction = "{{ .Release.Namespace | quote }}"
	imageAction     = "{{ .Values.image | quote }}"
	replicasAction  = "{{ .Values.replicas }}"
)

// versionLabel is the label with the version of the operator.
const versionLabel = "app.kubernetes.io/version"

//go:embed values.schema.json
var schema []byte

// Chart is a Helm chart of an operator.
type Chart struct {
	Name, Version string
	files         []file
}

type file struct {
	path string
	text []byte
}

// FileName returns the name that Helm gives to the archive.
func (c Chart) FileName() string { return c.Name + "-" + c.Version + ".tgz" }

// kinds are the kinds of the manifests that become templates. Manifests of other kinds are left out, because they need
// CRDs of the operator itself.
var kinds = []string{"ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Deployment", "Service"}

// New returns the chart of an operator. It makes the templates from the manifests of the operator's Deployment, which
// must have exactly one container. image is the default value of the container's image.
func New(name, image string, crds, manifests []string) (Chart, error) {
	c := Chart{Name: name}
	templates := map[string][]byte{}
	for _, manifest := range manifests {
		if err := c.template(templates, manifest); err != nil {
			return Chart{}, fmt.Errorf("making a template of %s: %w", manifest, err)
		}
	}
	if c.Version == "" {
		return Chart{}, fmt.Errorf("no Deployment of %s has the label %s", name, versionLabel)
	}
	about, err := yaml.Marshal(map[string]any{
		"apiVersion": "v2", "type": "application", "name": name, "version": c.Version, "appVersion": c.Version,
		"description": "Deploys " + name + " from the image of a lab.",
	})
	if err != nil {
		return Chart{}, err
	}
	values := "# Image of the operator; the lab has it with the tag of each version that it compiles.\nimage: " + image + "\n# Number of the operator's pods.\nreplicas: 1\n"
	c.files = []file{{"Chart.yaml", about}, {"values.yaml", []byte(values)}, {"values.schema.json", schema}}
	for _, crd := range crds {
		text, err := withoutDescriptions(crd)
		if err != nil {
			return Chart{}, fmt.Errorf("reading CRD %s: %w", crd, err)
		}
		c.files = append(c.files, file{"crds/" + filepath.Base(crd), text})
	}
	for _, kind := range kinds {
		text, ok := templates[kind]
		if !ok {
			return Chart{}, fmt.Errorf("no manifest of %s is of kind %s", name, kind)
		}
		c.files = append(c.files, file{"templates/" + strings.ToLower(kind) + ".yaml", text})
	}
	return c, nil
}

// withoutDescriptions returns a CRD without the descriptions of its fields. With them, the release would be larger than
// the Secret in which Helm keeps it.
func withoutDescriptions(crd string) ([]byte, error) {
	text, err := os.ReadFile(crd)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := yaml.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	removeDescriptions(object)
	return yaml.Marshal(object)
}

// removeDescriptions removes all descriptions from a schema, but keeps schema fields whose name is description.
func removeDescriptions(value any) {
	switch value := value.(type) {
	case map[string]any:
		if _, text := value["description"].(string); text {
			delete(value, "description")
		}
		for _, v := range value {
			removeDescriptions(v)
		}
	case []any:
		for _, v := range value {
			removeDescriptions(v)
		}
	}
}

// template adds a template for the manifest. The name of its file is the manifest's kind.
func (c *Chart) template(templates map[string][]byte, manifest string) error {
	text, err := os.ReadFile(manifest)
	if err != nil {
		return err
	}
	if bytes.Contains(text, []byte("{{")) {
		return errors.New("it has a template already")
	}
	var object map[string]any
	if err := yaml.Unmarshal(text, &object); err != nil {
		return err
	}
	kind, _ := object["kind"].(string)
	metadata := child(object, "metadata")
	if _, ok := metadata["namespace"]; ok {
		metadata["namespace"] = namespaceAction
	}
	switch kind {
	case "ClusterRoleBinding":
		for _, subject := range children(object, "subjects") {
			subject["namespace"] = namespaceAction
		}
	case "Deployment":
		c.Version, _ = child(metadata, "labels")[versionLabel].(string)
		spec := child(object, "spec")
		spec["replicas"] = replicasAction
		containers := children(child(child(spec, "template"), "spec"), "containers")
		if len(containers) != 1 {
			return fmt.Errorf("it has %d containers, want 1", len(containers))
		}
		containers[0]["image"] = imageAction
	}
	if text, err = yaml.Marshal(object); err != nil {
		return err
	}
	for _, action := range []string{namespaceAction, imageAction, replicasAction} {
		text = bytes.ReplaceAll(text, []byte("'"+action+"'"), []byte(action))
	}
	templates[kind] = text
	return nil
}

func child(object map[string]any, key string) map[string]any {
	value, _ := object[key].(map[string]any)
	return value
}

func children(object map[string]any, key string) []map[string]any {
	var all []map[string]any
	values, _ := object[key].([]any)
	for _, value := range values {
		if object, ok := value.(map[string]any); ok {
			all = append(all, object)
		}
	}
	return all
}

// Pack returns the archive of the chart. All files have the Unix epoch as their time, so that equal charts have equal
// bytes.
func (c Chart) Pack() ([]byte, error) {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	archive := tar.NewWriter(compressed)
	for _, f := range c.files {
		header := &tar.Header{
			Name: c.Name + "/" + f.path, Mode: 0o644, Size: int64(len(f.text)), ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR,
		}
		if err := archive.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.path, err)
		}
		if _, err := archive.Write(f.text); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.path, err)
		}
	}
	if err := errors.Join(archive.Close(), compressed.Close()); err != nil {
		return nil, fmt.Errorf("packing the chart: %w", err)
	}
	return out.Bytes(), nil
}
