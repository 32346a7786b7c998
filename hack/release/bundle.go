package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

const (
	bundleName    = "hanse-hub-bundle"
	prerequisites = "hanse-hub-olm-prerequisites.yaml"
	group         = "hanse.dev"
)

var (
	//go:embed templates/description.md
	description string
	//go:embed templates/examples.yaml
	examples string
	//go:embed templates/scorecard.yaml
	scorecard string

	// exampleFiles are files below docs/examples with objects that the bundle shows as examples. almExamples reads these
	// files before templates/examples.yaml, because the first object of a kind becomes the example of the kind.
	exampleFiles = []string{"metrics/placement.yaml", "metrics/overrides.yaml", "overrides/tiers.yaml"}

	// internal has the resources that only the hub writes, and for which the bundle therefore has no example.
	internal = []string{"resourcebindings.hanse.dev", "clusterresourcebindings.hanse.dev", "setrollouts.hanse.dev"}

	minKubeVersion = regexp.MustCompile(`^>=(\d+\.\d+\.\d+)(-0)?$`)
)

// annotations are the annotations of the bundle. The image of the bundle has them as labels.
var annotations = map[string]string{
	"operators.operatorframework.io.bundle.mediatype.v1":       "registry+v1",
	"operators.operatorframework.io.bundle.manifests.v1":       "manifests/",
	"operators.operatorframework.io.bundle.metadata.v1":        "metadata/",
	"operators.operatorframework.io.bundle.package.v1":         hubChart,
	"operators.operatorframework.io.bundle.channels.v1":        "candidate",
	"operators.operatorframework.io.bundle.channel.default.v1": "candidate",
	"operators.operatorframework.io.test.mediatype.v1":         "scorecard+v1",
	"operators.operatorframework.io.test.config.v1":            "tests/scorecard/",
}

// bundleOnly writes and validates the OLM bundle, without the other files of a release.
func bundleOnly(ctx context.Context, r *release) error {
	when, err := r.commitTime(ctx)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(r.out); err != nil {
		return fmt.Errorf("removing the bundle of an earlier run: %w", err)
	}
	return r.writeBundle(ctx, when)
}

// writeBundle writes the OLM bundle, its image, and the file with the prerequisites. It also validates the bundle.
func (r *release) writeBundle(ctx context.Context, when time.Time) error {
	var rendered string
	err := inFolder(func(folder string) error {
		chart, err := r.packageChart(ctx, hubChart, folder, when)
		if err != nil {
			return err
		}
		rendered, err = r.renderHub(ctx, chart)
		return err
	})
	if err != nil {
		return err
	}
	parts, err := SplitChart(rendered)
	if err != nil {
		return err
	}
	csv, err := r.clusterServiceVersion(parts, when)
	if err != nil {
		return err
	}
	files, err := bundleFiles(parts, csv)
	if err != nil {
		return err
	}
	dir := filepath.Join(r.out, "bundle")
	if err := writeFiles(dir, files); err != nil {
		return err
	}
	extra, err := documents(parts.Prerequisites)
	if err != nil {
		return err
	}
	if err := writeFiles(r.out, []file{{prerequisites, 0o644, extra}}); err != nil {
		return err
	}
	if err := ValidateBundle(dir, os.Stdout); err != nil {
		return err
	}
	return writeBundleImage(filepath.Join(r.out, bundleName+".tar"), files, when)
}

// clusterServiceVersion returns the object that describes the operator to OLM.
func (r *release) clusterServiceVersion(parts *Parts, when time.Time) (*operatorsv1alpha1.ClusterServiceVersion, error) {
	chart, err := r.hubChart()
	if err != nil {
		return nil, err
	}
	match := minKubeVersion.FindStringSubmatch(chart.KubeVersion)
	if match == nil {
		return nil, fmt.Errorf("the kubeVersion %q of chart %s is not of the form >=1.2.3", chart.KubeVersion, hubChart)
	}
	owned, err := descriptions(parts.Definitions)
	if err != nil {
		return nil, err
	}
	almExamples, err := r.almExamples(parts.Definitions)
	if err != nil {
		return nil, err
	}
	internalObjects, err := json.Marshal(internal)
	if err != nil {
		return nil, fmt.Errorf("encoding the internal objects: %w", err)
	}
	pod := parts.Deployment.Spec.Template.Spec
	image := pod.Containers[0].Image
	links := strings.NewReplacer(
		"PREREQUISITES", fmt.Sprintf("%s/releases/download/%s/%s", repository, r.version.Tag(), prerequisites),
		"FEDERATED", fmt.Sprintf("%s/blob/%s/docs/release.md#olm", repository, r.version.Tag()))

	csv := &operatorsv1alpha1.ClusterServiceVersion{
		TypeMeta: metav1.TypeMeta{
			APIVersion: operatorsv1alpha1.ClusterServiceVersionAPIVersion, Kind: operatorsv1alpha1.ClusterServiceVersionKind,
		},
		ObjectMeta: metav1.ObjectMeta{
			Name: hubChart + "." + r.version.Tag(),
			Annotations: map[string]string{
				"alm-examples":   almExamples,
				"capabilities":   "Basic Install",
				"categories":     "Integration & Delivery",
				"containerImage": image,
				"createdAt":      when.Format(time.RFC3339),
				"description":    chart.Description,
				"repository":     repository,
				"operatorframework.io/suggested-namespace":        systemNamespace,
				"operators.operatorframework.io/internal-objects": string(internalObjects),
			},
			Labels: map[string]string{
				"operatorframework.io/os.linux":   "supported",
				"operatorframework.io/arch.amd64": "supported",
				"operatorframework.io/arch.arm64": "supported",
			},
		},
		Spec: operatorsv1alpha1.ClusterServiceVersionSpec{
			DisplayName:    "Hanse",
			Description:    links.Replace(description),
			Keywords:       []string{"multicluster", "federation", "operators", "rollout", "placement"},
			Maturity:       "alpha",
			MinKubeVersion: match[1],
			Provider:       operatorsv1alpha1.AppLink{Name: "Hanse", URL: repository},
			Links: []operatorsv1alpha1.AppLink{
				{Name: "Documentation", URL: fmt.Sprintf("%s/blob/%s/docs/index.md", repository, r.version.Tag())},
				{Name: "Source", URL: repository},
			},
			RelatedImages: []operatorsv1alpha1.RelatedImage{{Name: hubChart, Image: image}},
			// The hub reads objects in all namespaces, so it supports only the install mode AllNamespaces.
			InstallModes: []operatorsv1alpha1.InstallMode{
				{Type: operatorsv1alpha1.InstallModeTypeOwnNamespace},
				{Type: operatorsv1alpha1.InstallModeTypeSingleNamespace},
				{Type: operatorsv1alpha1.InstallModeTypeMultiNamespace},
				{Type: operatorsv1alpha1.InstallModeTypeAllNamespaces, Supported: true},
			},
			CustomResourceDefinitions: operatorsv1alpha1.CustomResourceDefinitions{Owned: owned},
			InstallStrategy: operatorsv1alpha1.NamedInstallStrategy{
				StrategyName: operatorsv1alpha1.InstallStrategyNameDeployment,
				StrategySpec: operatorsv1alpha1.StrategyDetailsDeployment{
					DeploymentSpecs: []operatorsv1alpha1.StrategyDeploymentSpec{{
						Name: parts.Deployment.Name, Label: parts.Deployment.Labels, Spec: parts.Deployment.Spec,
					}},
					ClusterPermissions: []operatorsv1alpha1.StrategyDeploymentPermissions{{
						ServiceAccountName: pod.ServiceAccountName, Rules: parts.ClusterRules,
					}},
				},
			},
		},
	}
	csv.Spec.Version.Version = r.version.semver
	return csv, nil
}

// chartFile has the fields of a Chart.yaml that the bundle repeats.
type chartFile struct {
	Description string `json:"description"`
	KubeVersion string `json:"kubeVersion"`
}

func (r *release) hubChart() (chartFile, error) {
	path := filepath.Join(r.root, "charts", hubChart, "Chart.yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		return chartFile{}, fmt.Errorf("reading the chart: %w", err)
	}
	var chart chartFile
	if err := yaml.Unmarshal(data, &chart); err != nil {
		return chartFile{}, fmt.Errorf("decoding %s: %w", path, err)
	}
	return chart, nil
}

// descriptions returns the texts of the ClusterServiceVersion for each version of each definition.
func descriptions(definitions []apiextensionsv1.CustomResourceDefinition) ([]operatorsv1alpha1.CRDDescription, error) {
	var all []operatorsv1alpha1.CRDDescription
	for _, crd := range definitions {
		for _, version := range crd.Spec.Versions {
			if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil || version.Schema.OpenAPIV3Schema.Description == "" {
				return nil, fmt.Errorf("version %s of CustomResourceDefinition %s has no description", version.Name, crd.Name)
			}
			text, _, _ := strings.Cut(version.Schema.OpenAPIV3Schema.Description, "\n\n")
			all = append(all, operatorsv1alpha1.CRDDescription{
				Name: crd.Name, Version: version.Name, Kind: crd.Spec.Names.Kind,
				DisplayName: words(crd.Spec.Names.Kind), Description: strings.ReplaceAll(text, "\n", " "),
			})
		}
	}
	slices.SortFunc(all, func(a, b operatorsv1alpha1.CRDDescription) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

var capital = regexp.MustCompile(`[a-z][A-Z]`)

// words separates the words in the name of a kind, such as Cluster Placement for ClusterPlacement.
func words(kind string) string {
	return capital.ReplaceAllStringFunc(kind, func(pair string) string { return pair[:1] + " " + pair[1:] })
}

// almExamples returns one example of each kind that users write, as JSON.
func (r *release) almExamples(definitions []apiextensionsv1.CustomResourceDefinition) (string, error) {
	var wanted []string
	for _, crd := range definitions {
		if !slices.Contains(internal, crd.Name) {
			wanted = append(wanted, crd.Spec.Names.Kind)
		}
	}
	var sources []string
	for _, name := range exampleFiles {
		data, err := os.ReadFile(filepath.Join(r.root, "docs", "examples", name))
		if err != nil {
			return "", fmt.Errorf("reading an example: %w", err)
		}
		sources = append(sources, string(data))
	}
	var found []any
	for _, source := range append(sources, examples) {
		objects, err := decode(source)
		if err != nil {
			return "", fmt.Errorf("decoding examples: %w", err)
		}
		for _, o := range objects {
			if i := slices.Index(wanted, o.GetKind()); i >= 0 && o.GroupVersionKind().Group == group {
				wanted = slices.Delete(wanted, i, i+1)
				found = append(found, o.Object)
			}
		}
	}
	if len(wanted) > 0 {
		return "", fmt.Errorf("no example has a kind of %v: add one to hack/release/templates/examples.yaml", wanted)
	}
	text, err := json.MarshalIndent(found, "", "  ")
	if err != nil {
		return "", fmt.Errorf("encoding the examples: %w", err)
	}
	return string(text), nil
}

// bundleFiles returns the files of the bundle's folder.
func bundleFiles(parts *Parts, csv *operatorsv1alpha1.ClusterServiceVersion) ([]file, error) {
	var files []file
	add := func(name string, object any) error {
		data, err := encode(object)
		if err != nil {
			return fmt.Errorf("encoding %s: %w", name, err)
		}
		files = append(files, file{name, 0o644, data})
		return nil
	}
	err := add("manifests/"+hubChart+".clusterserviceversion.yaml", csv)
	for _, crd := range parts.Definitions {
		err = errors.Join(err, add(fmt.Sprintf("manifests/%s_%s.yaml", crd.Spec.Group, crd.Spec.Names.Plural), &crd))
	}
	for _, o := range parts.Manifests {
		err = errors.Join(err, add(fmt.Sprintf("manifests/%s_%s.yaml", o.GetName(), strings.ToLower(o.GetKind())), &o))
	}
	labels, labelsErr := yaml.Marshal(map[string]any{"annotations": annotations})
	if err := errors.Join(err, labelsErr); err != nil {
		return nil, err
	}
	files = append(files,
		file{"metadata/annotations.yaml", 0o644, labels},
		file{"tests/scorecard/config.yaml", 0o644, []byte(scorecard)},
		file{"bundle.Dockerfile", 0o644, dockerfile()})
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	return files, nil
}

// encode returns the YAML of an object, without fields that only a server sets.
func encode(object any) ([]byte, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	unstructured.RemoveNestedField(content, "status")
	for _, path := range [][]string{
		{"metadata", "creationTimestamp"}, {"metadata", "namespace"}, {"spec", "cleanup"}, {"spec", "apiservicedefinitions"},
	} {
		unstructured.RemoveNestedField(content, path...)
	}
	return yaml.Marshal(content)
}

// documents returns the objects as one stream of YAML documents.
func documents(objects []unstructured.Unstructured) ([]byte, error) {
	var out strings.Builder
	for _, o := range objects {
		data, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("encoding %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		out.WriteString("---\n" + string(data))
	}
	return []byte(out.String()), nil
}

// dockerfile returns a Dockerfile for users who build the image of the bundle themselves.
func dockerfile() []byte {
	var out strings.Builder
	out.WriteString("FROM scratch\n")
	for _, key := range sortedKeys(annotations) {
		fmt.Fprintf(&out, "LABEL %s=%s\n", key, annotations[key])
	}
	for _, folder := range imageFolders {
		fmt.Fprintf(&out, "COPY %s /%s\n", folder, folder)
	}
	return []byte(out.String())
}

func writeFiles(dir string, files []file) error {
	for _, f := range files {
		path := filepath.Join(dir, f.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("making a folder for %s: %w", f.name, err)
		}
		if err := os.WriteFile(path, f.data, os.FileMode(f.mode)); err != nil {
			return fmt.Errorf("writing %s: %w", f.name, err)
		}
	}
	return nil
}
