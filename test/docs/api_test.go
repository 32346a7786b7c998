package docs

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/hanse-dev/hanse/charts"
)

// kindSections are the kinds in the order of the page. A namespaced kind and its cluster-scoped twin share a section.
var kindSections = [][]string{
	{"MemberCluster"}, {"Placement", "ClusterPlacement"}, {"OverridePolicy", "ClusterOverridePolicy"}, {"Bundle", "ClusterBundle"}, {"FederatedOperator"},
	{"NotificationSink"}, {"ResourceBinding", "ClusterResourceBinding"}, {"SetRollout"},
}

// TestThePageOfTheAPIHasEveryField generates docs/api.md from the CRDs, which have the comments of api/v1alpha1.
func TestThePageOfTheAPIHasEveryField(t *testing.T) {
	t.Parallel()
	definitions := definitionsByKind(t)
	var index, out strings.Builder
	for _, kinds := range kindSections {
		title := strings.Join(kinds, " and ")
		fmt.Fprintf(&out, "\n## %s\n", title)
		var all []*apiext.CustomResourceDefinition
		for _, kind := range kinds {
			crd := definitions[kind]
			if crd == nil {
				t.Fatalf("there is no CRD of %s", kind)
			}
			delete(definitions, kind)
			all = append(all, crd)
			what := sentence(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Description)
			first, _, _ := strings.Cut(what, ". ")
			fmt.Fprintf(&index, "| [%s](#%s) | %s | %s | %s |\n", kind, strings.ToLower(strings.ReplaceAll(title, " ", "-")),
				strings.Join(crd.Spec.Names.ShortNames, ", "), strings.ToLower(string(crd.Spec.Scope)), strings.TrimSuffix(first, "."))
			out.WriteString("\n" + wrap(what))
		}
		out.WriteString("\n" + wrap(columnsOf(all[0])))
		example, err := os.ReadFile(filepath.Join("..", "..", "docs", "examples", "api", strings.ToLower(kinds[0])+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "\n```yaml\n%s```\n\n| field | type | meaning |\n|---|---|---|\n", example)
		rows := fieldRows(all[0].Spec.Versions[0].Schema.OpenAPIV3Schema, "")
		for _, twin := range all[1:] {
			rows = withTwin(t, rows, fieldRows(twin.Spec.Versions[0].Schema.OpenAPIV3Schema, ""), twin.Spec.Names.Kind)
		}
		for _, row := range rows {
			fmt.Fprintf(&out, "| `%s` | %s | %s |\n", row.path, row.format, row.meaning)
		}
	}
	for kind := range definitions {
		t.Errorf("docs/api.md has no section for %s", kind)
	}
	isGenerated(t, "api.md", "## Kinds\n", "\n| kind | short | scope | what it is |\n|---|---|---|---|\n"+index.String()+out.String())
}

func definitionsByKind(t *testing.T) map[string]*apiext.CustomResourceDefinition {
	t.Helper()
	files, err := fs.Glob(charts.Definitions, "hanse-hub/files/crds/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*apiext.CustomResourceDefinition{}
	for _, file := range files {
		content, err := fs.ReadFile(charts.Definitions, file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiext.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(content, crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		found[crd.Spec.Names.Kind] = crd
	}
	return found
}

// columnsOf returns a sentence with the columns of kubectl get.
func columnsOf(crd *apiext.CustomResourceDefinition) string {
	var always, wide []string
	for _, c := range crd.Spec.Versions[0].AdditionalPrinterColumns {
		if name := "`" + strings.ToUpper(c.Name) + "`"; c.Priority > 0 {
			wide = append(wide, name)
		} else {
			always = append(always, name)
		}
	}
	line := "`kubectl get " + crd.Spec.Names.Plural + "` has the columns " + strings.Join(always, ", ")
	if len(wide) > 0 {
		line += ", and with `-o wide` " + strings.Join(wide, ", ")
	}
	return line + "."
}

type fieldRow struct{ path, format, meaning string }

// fieldRows returns a row for each field below a schema, each before the fields inside it. It leaves out fields that
// every object has, and fields of Kubernetes' own types.
func fieldRows(schema *apiext.JSONSchemaProps, path string) []fieldRow {
	var rows []fieldRow
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		field, at := schema.Properties[name], path+name
		if path == "" && name != "spec" && name != "status" {
			continue
		}
		row := fieldRow{path: at, format: formatOf(&field), meaning: sentence(field.Description)}
		if slices.Contains(schema.Required, name) {
			row.format += ", required"
		}
		if value := defaultOf(&field); value != "" {
			row.format += ", default `" + value + "`"
		}
		inner := &field
		for {
			for _, rule := range inner.XValidations {
				row.meaning += " *" + markdown(firstOf(rule.Message, rule.MessageExpression)) + "*"
			}
			if inner.Items != nil {
				inner, at = inner.Items.Schema, at+"[]"
			} else if inner.AdditionalProperties != nil && inner.AdditionalProperties.Schema != nil {
				inner, at = inner.AdditionalProperties.Schema, at+".*"
			} else {
				break
			}
		}
		rows = append(rows, row)
		if kubernetesType(name, inner) == "" {
			rows = append(rows, fieldRows(inner, at+".")...)
		}
	}
	return rows
}

// sentence returns a description as one line of Markdown.
func sentence(description string) string {
	return markdown(strings.Join(strings.Fields(description), " "))
}

// kubernetesType returns the name of a type of Kubernetes, whose fields the page does not list.
func kubernetesType(name string, schema *apiext.JSONSchemaProps) string {
	has := func(fields ...string) bool {
		return len(fields) == len(schema.Properties) && !slices.ContainsFunc(fields, func(f string) bool { _, ok := schema.Properties[f]; return !ok })
	}
	switch {
	case has("matchExpressions", "matchLabels"):
		return "label selector"
	case has("lastTransitionTime", "message", "observedGeneration", "reason", "status", "type"):
		return "condition"
	case name == "valueFrom":
		return "as in a container"
	}
	return ""
}

func formatOf(field *apiext.JSONSchemaProps) string {
	if known := kubernetesType("", field); known != "" {
		return known
	}
	switch {
	case field.Items != nil:
		return "list: " + formatOf(field.Items.Schema)
	case field.AdditionalProperties != nil && field.AdditionalProperties.Schema != nil:
		return "map: " + formatOf(field.AdditionalProperties.Schema)
	case len(field.Enum) > 0:
		var values []string
		for _, value := range field.Enum {
			values = append(values, "`"+jsonText(value)+"`")
		}
		return strings.Join(values, ", ")
	case field.XIntOrString:
		return "integer or string"
	case field.Format == "date-time":
		return "time"
	case field.Type == "":
		return "any"
	}
	format := field.Type
	switch low, high := field.Minimum, field.Maximum; {
	case low != nil && high != nil:
		format += fmt.Sprintf(" from %d to %d", int64(*low), int64(*high))
	case low != nil:
		format += fmt.Sprintf(" from %d", int64(*low))
	case high != nil:
		format += fmt.Sprintf(" up to %d", int64(*high))
	}
	return format
}

// defaultOf returns the default of a field. It returns nothing for an object whose fields have the defaults.
func defaultOf(field *apiext.JSONSchemaProps) string {
	if field.Default == nil || field.Type == "object" {
		return ""
	}
	return jsonText(*field.Default)
}

// jsonText returns a JSON value, without quotes if it is a string.
func jsonText(value apiext.JSON) string {
	var s string
	if json.Unmarshal(value.Raw, &s) == nil {
		return s
	}
	return string(value.Raw)
}

// withTwin returns the rows of the cluster-scoped twin of a kind, which has all fields of the kind and some more.
func withTwin(t *testing.T, rows, twin []fieldRow, kind string) []fieldRow {
	t.Helper()
	for _, row := range rows {
		if !slices.Contains(twin, row) {
			t.Errorf("%s of %s is not as in its twin", row.path, kind)
		}
	}
	var all []fieldRow
	for _, row := range twin {
		if !slices.Contains(rows, row) {
			row.meaning = "Only of a " + kind + ": " + row.meaning
		}
		all = append(all, row)
	}
	return all
}
