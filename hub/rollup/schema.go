package rollup

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Schema is what merging needs of a kind's OpenAPI schema. The zero value has no status.
type Schema struct {
	status *node
	// specBooleans are the top-level fields of the spec that are booleans.
	specBooleans map[string]bool
}

// node is one value of a status: a field of it, or of an entry of its conditions.
type node struct {
	kind, format string
	enum         []string
	pattern      *regexp.Regexp
	maximum      float64 // of an integer
	maxItems     int     // of an array; -1 if unbounded
	required     []string
	properties   map[string]*node
	items        *node // of the array of conditions only
}

// NewSchema reads the schema of one version of a kind, and whether that version has a status subresource.
func NewSchema(crd *apiextensionsv1.CustomResourceDefinition, version string) (s Schema, hasStatusSubresource bool, err error) {
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
	if i < 0 {
		return Schema{}, false, fmt.Errorf("reading the schema of CustomResourceDefinition %s: it has no version %s", crd.Name, version)
	}
	v := crd.Spec.Versions[i]
	hasStatusSubresource = v.Subresources != nil && v.Subresources.Status != nil
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return Schema{}, hasStatusSubresource, nil
	}
	root := v.Schema.OpenAPIV3Schema.Properties
	if status, ok := root["status"]; ok {
		s.status = newStatus(status)
	}
	s.specBooleans = map[string]bool{}
	for name, p := range root["spec"].Properties {
		if p.Type == "boolean" {
			s.specBooleans[name] = true
		}
	}
	return s, hasStatusSubresource, nil
}

// HasStatus says whether the kind's schema has a status.
func (s Schema) HasStatus() bool { return s.status != nil }

// newStatus keeps the fields of a status and, below its conditions, those of their entries: no rule looks deeper.
func newStatus(p apiextensionsv1.JSONSchemaProps) *node {
	n := newFields(p)
	conditions := p.Properties[conditionsField]
	if conditions.Items != nil && conditions.Items.Schema != nil {
		n.properties[conditionsField].items = newFields(*conditions.Items.Schema)
	}
	return n
}

func newFields(p apiextensionsv1.JSONSchemaProps) *node {
	n := newNode(p)
	n.properties = make(map[string]*node, len(p.Properties))
	for name, field := range p.Properties {
		n.properties[name] = newNode(field)
	}
	return n
}

func newNode(p apiextensionsv1.JSONSchemaProps) *node {
	n := &node{kind: p.Type, format: p.Format, maximum: maxInteger(p), maxItems: -1, required: p.Required}
	if p.MaxItems != nil {
		n.maxItems = int(*p.MaxItems)
	}
	for _, e := range p.Enum {
		var word string
		if json.Unmarshal(e.Raw, &word) == nil {
			n.enum = append(n.enum, word)
		}
	}
	if p.Pattern != "" {
		// A pattern that does not compile lets everything pass, as on the server.
		n.pattern, _ = regexp.Compile(p.Pattern)
	}
	return n
}

func maxInteger(p apiextensionsv1.JSONSchemaProps) float64 {
	limit := float64(1 << 62)
	if p.Format == "int32" {
		limit = 1<<31 - 1
	}
	if p.Maximum != nil {
		limit = min(limit, *p.Maximum)
	}
	return limit
}

// allows says whether a word keeps to enum and pattern.
func (n *node) allows(word string) bool {
	return (len(n.enum) == 0 || slices.Contains(n.enum, word)) && (n.pattern == nil || n.pattern.MatchString(word))
}
