package main

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

const repository = "https://github.com/hanse-dev/hanse"

// plugin is the name under which kubectl runs hansectl.
const plugin = "hanse"

// krewPlugin is the manifest of a kubectl plugin in krew's format v1alpha2. The Go module of krew has the same type.
// The type of krew is not used, because its module requires other versions of Kubernetes' libraries than the bundle.
type krewPlugin struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   krewMetadata   `json:"metadata"`
	Spec       krewPluginSpec `json:"spec"`
}

type krewMetadata struct {
	Name string `json:"name"`
}

type krewPluginSpec struct {
	Version          string         `json:"version"`
	Homepage         string         `json:"homepage"`
	ShortDescription string         `json:"shortDescription"`
	Description      string         `json:"description"`
	Platforms        []krewPlatform `json:"platforms"`
}

type krewPlatform struct {
	Selector krewSelector `json:"selector"`
	URI      string       `json:"uri"`
	SHA256   string       `json:"sha256"`
	Bin      string       `json:"bin"`
}

type krewSelector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

// writeKrewManifest writes the manifest for the plugin index of krew. krew links kubectl-hanse to the binary. When
// hansectl is called by that name, its help shows `kubectl hanse`.
func (r *release) writeKrewManifest(archives []archive) error {
	manifest, err := yaml.Marshal(krewManifest(r.version, archives))
	if err != nil {
		return fmt.Errorf("encoding the krew manifest: %w", err)
	}
	if err := os.WriteFile(filepath.Join(r.out, plugin+".yaml"), manifest, 0o644); err != nil {
		return fmt.Errorf("writing the krew manifest: %w", err)
	}
	return nil
}

func krewManifest(v Version, archives []archive) krewPlugin {
	p := krewPlugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2",
		Kind:       "Plugin",
		Metadata:   krewMetadata{Name: plugin},
		Spec: krewPluginSpec{
			Version:          v.Tag(),
			Homepage:         repository,
			ShortDescription: "Run operators on many clusters from one copy",
			Description: `Joins clusters to a hub of Hanse, shows where objects run and why, previews changes on all
clusters, and steers rollouts. It needs a hub: see the homepage for its installation.
`,
		},
	}
	for _, a := range archives {
		p.Spec.Platforms = append(p.Spec.Platforms, krewPlatform{
			Selector: krewSelector{map[string]string{"os": a.platform.os, "arch": a.platform.arch}},
			URI:      fmt.Sprintf("%s/releases/download/%s/%s", repository, v.Tag(), a.name),
			SHA256:   a.sha256,
			Bin:      a.platform.binary(),
		})
	}
	return p
}
