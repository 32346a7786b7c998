package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// CertManager returns the chart in the folder of cert-manager's module, in the form of cert-manager's releases. In this
// form, the CRDs are templates, which are rendered if the value installCRDs is true. The folder must have
// Chart.template.yaml, values.yaml, templates and crds. image returns the name of the image of each of the three
// programs.
func CertManager(version, folder string, image func(program string) string) (Chart, error) {
	c := Chart{Name: "cert-manager", Version: version}
	about, err := edited(filepath.Join(folder, "Chart.template.yaml"), func(about map[string]any) {
		about["version"], about["appVersion"] = version, version
		delete(about, "annotations") // the annotations are only for Artifact Hub
	})
	if err != nil {
		return Chart{}, err
	}
	values, err := edited(filepath.Join(folder, "values.yaml"), func(values map[string]any) {
		setImage(values, image("cert-manager-controller"))
		setImage(child(values, "webhook"), image("cert-manager-webhook"))
		setImage(child(values, "cainjector"), image("cert-manager-cainjector"))
	})
	if err != nil {
		return Chart{}, err
	}
	c.files = []file{{"Chart.yaml", about}, {"values.yaml", values}}
	for _, pattern := range []string{"templates/*", "crds/*.yaml"} {
		paths, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil || len(paths) == 0 {
			return Chart{}, fmt.Errorf("the chart in %s has no %s", folder, pattern)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				return Chart{}, err
			}
			if strings.HasPrefix(pattern, "crds/") {
				text = fmt.Appendf(nil, "{{- if .Values.installCRDs }}\n%s\n{{- end }}\n", text)
			}
			c.files = append(c.files, file{"templates/" + filepath.Base(path), text})
		}
	}
	return c, nil
}

// edited reads a YAML file and returns it after change has been called.
func edited(path string, change func(object map[string]any)) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := yaml.Unmarshal(text, &object); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	change(object)
	return yaml.Marshal(object)
}

func setImage(values map[string]any, name string) {
	repository, tag, _ := strings.Cut(name, ":")
	values["image"] = map[string]any{"repository": repository, "tag": tag, "pullPolicy": "Never"}
}
