package plane

import (
	"bytes"
	_ "embed" // for Stages
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/hanse-dev/hanse/lab/build"
)

// brokenImage is an image that no node can pull, with any tag: pods with it never become Ready.
const brokenImage = "hanse.dev/broken"

// podReady is the file of the Stage that makes pods Ready.
const podReady = "pod-ready.yaml"

var (
	//go:embed pod-image-missing.yaml
	podImageMissing []byte
	//go:embed pod-started.yaml
	podStarted []byte
)

// requirement is one requirement in the matchExpressions of a Stage's selector.
type requirement map[string]any

const images = ".spec.containers.[].image"

// kwokConfig writes the Stages into one file, because kwok reads one file. It adds a Stage for pods whose image is
// missing, and a Stage that starts the pods of deployedOperators. It excludes these pods from the Stage that makes pods
// Ready, because the lab makes them Ready.
func (c *Cluster) kwokConfig(stages, deployedOperators []string) (string, error) {
	known := map[string][]string{} // known images, by operator
	var deployed []any
	for _, operator := range deployedOperators {
		versions, err := build.Versions(c.Bin, operator)
		if err != nil {
			return "", err
		}
		for _, version := range versions {
			known[operator] = append(known[operator], OperatorImage(operator, version))
			deployed = append(deployed, OperatorImage(operator, version))
		}
	}
	missing := missingImages(known)
	ready := []requirement{{"key": missing, "operator": "DoesNotExist"}}
	parts, err := selecting(nil, podImageMissing, requirement{"key": missing, "operator": "Exists"})
	if err != nil {
		return "", err
	}
	if len(deployed) > 0 {
		ready = append(ready, requirement{"key": images, "operator": "NotIn", "values": deployed})
		started := []requirement{{"key": missing, "operator": "DoesNotExist"}, {"key": images, "operator": "In", "values": deployed}}
		if parts, err = selecting(parts, podStarted, started...); err != nil {
			return "", err
		}
	}
	for _, file := range stages {
		data, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		var also []requirement
		if filepath.Base(file) == podReady {
			also = ready
		}
		if parts, err = selecting(parts, data, also...); err != nil {
			return "", fmt.Errorf("reading %s: %w", file, err)
		}
	}
	config := c.path("kwok.yaml")
	return config, os.WriteFile(config, bytes.Join(parts, []byte("\n---\n")), 0o600)
}

// missingImages returns a query that is true for images that no node can pull: brokenImage, and unknown tags of the
// deployed operators' images.
func missingImages(known map[string][]string) string {
	faults := []string{isImage(brokenImage)}
	for _, operator := range slices.Sorted(maps.Keys(known)) {
		fault := isImage(imageRegistry + operator)
		for _, image := range known[operator] {
			fault += fmt.Sprintf(" and . != %q", image)
		}
		faults = append(faults, fault)
	}
	return fmt.Sprintf("%s | select(%s)", images, strings.Join(faults, " or "))
}

// isImage returns a query that is true for an image with any tag or digest.
func isImage(name string) string {
	return fmt.Sprintf("test(%q)", "^"+regexp.QuoteMeta(name)+"([:@]|$)")
}

// selecting appends a Stage with additional requirements in its selector.
func selecting(parts [][]byte, stage []byte, also ...requirement) ([][]byte, error) {
	if len(also) == 0 {
		return append(parts, stage), nil
	}
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
	for _, r := range also {
		expressions = append(expressions, r)
	}
	selector["matchExpressions"] = expressions
	data, err := yaml.Marshal(s)
	return append(parts, data), err
}
