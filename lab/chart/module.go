package chart

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"sigs.k8s.io/yaml"
)

// OfModule returns the chart in a folder of an operator's module, unchanged.
func OfModule(folder string) (Chart, error) {
	files, err := read(folder)
	if err != nil {
		return Chart{}, err
	}
	return fromFiles(folder, files)
}

// CertManager returns the chart in the folder of cert-manager's module, in the form of cert-manager's releases. In this
// form, Chart.yaml has the version of the release, and the CRDs are templates, which are rendered if the value
// installCRDs is true. The folder must have Chart.template.yaml and crds.
func CertManager(version, folder string) (Chart, error) {
	files, err := read(folder)
	if err != nil {
		return Chart{}, err
	}
	crds := 0
	for i, f := range files {
		switch folder, name := path.Split(f.path); {
		case f.path == "Chart.template.yaml":
			files[i] = file{"Chart.yaml", bytes.ReplaceAll(f.text, []byte("v0.1.0"), []byte(version))}
		case folder == "crds/":
			files[i] = file{"templates/" + name, fmt.Appendf(nil, "{{- if .Values.installCRDs }}\n%s\n{{- end }}\n", f.text)}
			crds++
		}
	}
	if crds == 0 {
		return Chart{}, fmt.Errorf("the chart in %s has no crds", folder)
	}
	return fromFiles(folder, files)
}

// read returns the files below a folder, sorted by path.
func read(folder string) (files []file, err error) {
	tree := os.DirFS(folder)
	err = fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(tree, path)
		files = append(files, file{path, text})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the chart in %s: %w", folder, err)
	}
	return files, nil
}

// fromFiles returns the chart with these files. Its name and version are those in Chart.yaml.
func fromFiles(folder string, files []file) (Chart, error) {
	for _, f := range files {
		if f.path != "Chart.yaml" {
			continue
		}
		var about struct{ Name, Version string }
		err := yaml.Unmarshal(f.text, &about)
		if err == nil && (about.Name == "" || about.Version == "") {
			err = errors.New("it has no name or no version")
		}
		if err != nil {
			return Chart{}, fmt.Errorf("reading Chart.yaml in %s: %w", folder, err)
		}
		return Chart{Name: about.Name, Version: about.Version, files: files}, nil
	}
	return Chart{}, fmt.Errorf("the chart in %s has no Chart.yaml", folder)
}
