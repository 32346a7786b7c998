package health

import (
	"regexp"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Conventions tell how to read the status of a kind. Conventions are derived from the CustomResourceDefinition of the
// kind. The zero value is for a kind whose definition is not known, or that has no status.
type Conventions struct {
	// HasStatus is true for a custom resource whose definition has a status subresource or a field status in its
	// schema.
	HasStatus bool
	// Scale has the paths of the scale subresource. It is zero if the definition has no scale subresource.
	Scale Scale
	// Columns are the printer columns that show an object's state.
	Columns []Column
}

// Scale has the paths of the fields with the wanted replicas (Spec) and the existing replicas (Status). A path is a
// list of the names of nested fields.
type Scale struct {
	Spec, Status []string
	// Selector is the path of the label selector in the object. It is empty if the CustomResourceDefinition has none.
	Selector []string
}

// Column is a printer column. It shows a field of the status, or the status of a condition.
type Column struct {
	Name string
	// Path has the names of nested fields. If Condition is set instead, the column shows the status of the condition of
	// that type.
	Path      []string
	Condition string
}

// maxColumns is the maximum number of printer columns that are used.
const maxColumns = 8

// ReadConventions derives the conventions for one version of a custom resource from its CustomResourceDefinition.
func ReadConventions(crd *apiextensionsv1.CustomResourceDefinition, version string) Conventions {
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
	if i < 0 {
		return Conventions{}
	}
	v := &crd.Spec.Versions[i]
	var out Conventions
	if v.Subresources != nil {
		out.HasStatus = v.Subresources.Status != nil
		out.Scale = readScale(v.Subresources.Scale)
	}
	if v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
		_, inSchema := v.Schema.OpenAPIV3Schema.Properties["status"]
		out.HasStatus = out.HasStatus || inSchema
	}
	for _, c := range v.AdditionalPrinterColumns {
		if column, ok := readColumn(c); ok && len(out.Columns) < maxColumns {
			out.Columns = append(out.Columns, column)
		}
	}
	return out
}

func readScale(s *apiextensionsv1.CustomResourceSubresourceScale) Scale {
	if s == nil {
		return Scale{}
	}
	out := Scale{Spec: fieldsOf(s.SpecReplicasPath, "spec"), Status: fieldsOf(s.StatusReplicasPath, "status")}
	if s.LabelSelectorPath != nil {
		out.Selector = fieldsOf(*s.LabelSelectorPath, "status")
	}
	if out.Spec == nil || out.Status == nil {
		return Scale{}
	}
	return out
}

var (
	plainPath     = regexp.MustCompile(`^(\.[A-Za-z0-9_-]+)+$`)
	conditionPath = regexp.MustCompile(`^\.status\.conditions\[\?\(\s*@\.type\s*==\s*["']([A-Za-z0-9./_-]+)["']\s*\)\]\.status$`)
)

// fieldsOf returns the names in a path such as .status.replicas below the given field, or nil for another path.
func fieldsOf(path, below string) []string {
	if !plainPath.MatchString(path) {
		return nil
	}
	names := strings.Split(path[1:], ".")
	if len(names) < 2 || names[0] != below {
		return nil
	}
	return names
}

// telling are names of printer columns, in lower case, whose value shows the state of an object.
var telling = []string{
	"status", "state", "phase", "ready", "health", "healthy", "available", "synced", "reconciled", "accepted", "programmed", "installed",
	"succeeded", "valid", "robustness",
}

func readColumn(c apiextensionsv1.CustomResourceColumnDefinition) (Column, bool) {
	words := strings.Fields(strings.ToLower(c.Name))
	if len(words) == 0 || !slices.Contains(telling, words[len(words)-1]) && !slices.Contains(telling, words[0]) {
		return Column{}, false
	}
	if found := conditionPath.FindStringSubmatch(c.JSONPath); found != nil {
		return Column{Name: c.Name, Condition: found[1]}, true
	}
	if path := fieldsOf(c.JSONPath, "status"); path != nil {
		return Column{Name: c.Name, Path: path}, true
	}
	return Column{}, false
}

// at returns the value at a path of nested fields. The result is nil if the path does not exist.
func at(object map[string]any, path []string) any {
	var value any = object
	for _, name := range path {
		fields, _ := value.(map[string]any)
		value = fields[name]
	}
	return value
}
