package chart

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/util/validation"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// rendering is the result of rendering the templates of a chart once.
type rendering struct {
	chart *helmchart.Chart
	// texts has the rendered templates by their paths. Notes, partial templates and empty results are left out.
	texts map[string]string
}

// KubernetesAPIVersions returns the API versions that Kubernetes itself serves, according to its client library. The
// command helm template uses the same list by default.
func KubernetesAPIVersions() []string { return slices.Clone(common.DefaultVersionSet) }

// ParseValues reads the YAML of a values file. If the file has several documents, a later document replaces values of
// an earlier one.
func ParseValues(text []byte) (map[string]any, error) {
	values, err := loader.LoadValues(strings.NewReader(string(text)))
	if err != nil {
		return nil, fmt.Errorf("reading values: %s", oneLine(err))
	}
	return values, nil
}

// execute loads a chart and renders it once. now is the result of the template function now.
func execute(in Input, files []*archive.BufferedFile, now time.Time) (rendering, error) {
	c, err := load(files)
	if err != nil {
		return rendering{}, fmt.Errorf("loading the chart: %s", oneLine(err))
	}
	capabilities, err := capabilitiesOf(in)
	if err != nil {
		return rendering{}, err
	}
	if v := c.Metadata.KubeVersion; v != "" && !chartutil.IsCompatibleRange(v, capabilities.KubeVersion.String()) {
		return rendering{}, fmt.Errorf("chart %s is for Kubernetes %q, not for %s", c.Name(), v, capabilities.KubeVersion.Version)
	}
	values, err := renderValues(in, c, capabilities)
	if err != nil {
		return rendering{}, fmt.Errorf("chart %s: %w", c.Name(), err)
	}
	texts, err := (engine.Engine{CustomTemplateFuncs: template.FuncMap{"now": func() time.Time { return now }}}).Render(c, values)
	if err != nil {
		return rendering{}, fmt.Errorf("rendering chart %s: %s", c.Name(), oneLine(err))
	}
	maps.DeleteFunc(texts, func(name, text string) bool {
		return path.Base(name) == "NOTES.txt" || strings.TrimSpace(text) == ""
	})
	size := 0
	for _, text := range texts {
		size += len(text)
	}
	for _, crd := range c.CRDObjects() {
		size += len(crd.File.Data)
	}
	if size > MaxRenderedBytes {
		return rendering{}, fmt.Errorf("chart %s renders to %d bytes, and at most %d are allowed: let the values render fewer objects, or split the chart", c.Name(), size, MaxRenderedBytes)
	}
	return rendering{chart: c, texts: texts}, nil
}

// load reads the files of a chart. A chart that cannot be installed, such as a library chart, is an error.
func load(files []*archive.BufferedFile) (*helmchart.Chart, error) {
	c, err := loader.LoadFiles(files)
	if err != nil {
		return nil, err
	}
	switch {
	case c.Metadata.APIVersion != helmchart.APIVersionV1 && c.Metadata.APIVersion != helmchart.APIVersionV2:
		return nil, fmt.Errorf("apiVersion of Chart.yaml is %q: use v1 or v2", c.Metadata.APIVersion)
	case c.Metadata.Type == "library":
		return nil, fmt.Errorf("%s is a library chart: render a chart that uses it", c.Name())
	}
	if err := prepare(c); err != nil {
		return nil, err
	}
	return c, nil
}

// prepare checks the sizes of the templates of a chart and its subcharts. It also sorts the subcharts, because helm's
// loader returns them in random order.
func prepare(c *helmchart.Chart) error {
	for _, t := range c.Templates {
		if len(t.Data) > MaxTemplateBytes {
			return fmt.Errorf("template %s has %d bytes, and at most %d are allowed: split the template", path.Join(c.ChartFullPath(), t.Name), len(t.Data), MaxTemplateBytes)
		}
	}
	subcharts := slices.Clone(c.Dependencies())
	slices.SortFunc(subcharts, func(a, b *helmchart.Chart) int {
		return strings.Compare(a.Name()+"\x00"+a.Metadata.Version, b.Name()+"\x00"+b.Metadata.Version)
	})
	c.SetDependencies(subcharts...)
	for _, sub := range subcharts {
		if err := prepare(sub); err != nil {
			return err
		}
	}
	return nil
}

// renderValues removes the subcharts that the values turn off. It returns the values for the templates, after it has
// checked them against the schemas of the chart.
func renderValues(in Input, c *helmchart.Chart, capabilities *common.Capabilities) (common.Values, error) {
	release := in.Release
	if release == "" {
		release = c.Name()
	}
	if err := chartutil.ValidateReleaseName(release); err != nil {
		return nil, fmt.Errorf("the name of the release is %q: use lower case letters, digits, - and ., at most 53", release)
	}
	if len(validation.IsDNS1123Label(in.Namespace)) > 0 {
		return nil, fmt.Errorf("the namespace of the release is %q: use lower case letters, digits and -, at most 63", in.Namespace)
	}
	given := map[string]any{}
	for _, values := range in.Values {
		given = loader.MergeMaps(given, values)
	}
	if err := chartutil.ProcessDependencies(c, given); err != nil {
		return nil, fmt.Errorf("choosing the subcharts: %s", oneLine(err))
	}
	if err := complete(c); err != nil {
		return nil, err
	}
	options := common.ReleaseOptions{Name: release, Namespace: in.Namespace, Revision: 1, IsInstall: true}
	top, err := util.ToRenderValuesWithSchemaValidation(c, given, options, capabilities, true)
	if err != nil {
		return nil, fmt.Errorf("merging the values: %s", oneLine(err))
	}
	values, err := top.Table("Values")
	if err != nil {
		return nil, fmt.Errorf("merging the values: %s", oneLine(err))
	}
	if err := validate(c, values); err != nil {
		return nil, err
	}
	return top, nil
}

// complete returns an error if a subchart that the chart requires is not in the archive. Subcharts that are turned off
// were removed before.
func complete(c *helmchart.Chart) error {
	for _, want := range c.Metadata.Dependencies {
		if !slices.ContainsFunc(c.Dependencies(), func(sub *helmchart.Chart) bool { return sub.Name() == want.Name }) {
			return fmt.Errorf("the subchart %s %s of %s is not in the archive: run helm dependency update and package the chart again",
				want.Name, want.Version, c.ChartFullPath())
		}
	}
	for _, sub := range c.Dependencies() {
		if err := complete(sub); err != nil {
			return err
		}
	}
	return nil
}

func capabilitiesOf(in Input) (*common.Capabilities, error) {
	text := in.Kubernetes
	if text == "" {
		text = DefaultKubernetes
	}
	version, err := common.ParseKubeVersion(text)
	if err != nil {
		return nil, fmt.Errorf("the Kubernetes version is %q: write it as v1.36.2", text)
	}
	out := common.DefaultCapabilities.Copy()
	out.KubeVersion = *version
	if len(in.APIVersions) > 0 {
		out.APIVersions = slices.Clone(in.APIVersions)
	}
	return out, nil
}

// maxErrorRunes is the maximum number of characters of an error text of helm. Such a text may contain templates of any
// length.
const maxErrorRunes = 1000

// oneLine returns the text of an error of helm on one line, cut to maxErrorRunes.
func oneLine(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	return hubv1.CutMessage(text, maxErrorRunes)
}
