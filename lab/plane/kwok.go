package plane

import (
	"bytes"
	_ "embed" // of a Stage
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// brokenImage is an image that no node can pull: pods with it never become Ready.
const brokenImage = "hanse.dev/broken"

// podReady is the file of the Stage that makes pods Ready.
const podReady = "pod-ready.yaml"

//go:embed pod-image-missing.yaml
var podImageMissing []byte

// kwokConfig joins the Stages into the one file that kwok reads, and adds a Stage for pods with the broken image.
func (c *Cluster) kwokConfig(stages []string) (string, error) {
	parts := [][]byte{podImageMissing}
	for _, file := range stages {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		if filepath.Base(file) == podReady {
			if data, err = sparing(data, brokenImage); err != nil {
				return "", fmt.Errorf("reading %s: %w", file, err)
			}
		}
		parts = append(parts, data)
	}
	config := c.path("kwok.yaml")
	return config, os.WriteFile(config, bytes.Join(parts, []byte("\n---\n")), 0o600)
}

// sparing returns a Stage that excludes pods with this image.
func sparing(stage []byte, image string) ([]byte, error) {
	var s map[string]any
	if err := yaml.Unmarshal(stage, &s); err != nil {
		return nil, err
	}
	spec, _ := s["spec"].(map[string]any)
	selector, ok := spec["selector"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the Stage has no spec.selector")
	}
	expressions, _ := selector["matchExpressions"].([]any)
	selector["matchExpressions"] = append(expressions, map[string]any{
		"key": ".spec.containers.[].image", "operator": "NotIn", "values": []any{image},
	})
	return yaml.Marshal(s)
}
