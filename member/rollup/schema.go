package rollup

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hanse-dev/hanse/member/health"
)

// Schema is the part of a kind's OpenAPI schema that the merge of statuses needs. The zero value declares no status.
type Schema struct {
	kind   schema.GroupKind
	status *node
	// specBooleans has the names of the boolean fields at the top level of the spec.
	specBooleans map[string]bool
	// replicas is the path in the status that the scale subresource uses for the number of replicas, such as
	// "/readyInstances". It is empty if the kind has no such path.
	replicas string
	// workload describes a built-in workload kind. It is nil for other kinds.
	workload *workload
}

// maxNesting is the number of levels of a status that the hub reads from a copy. The status itself is a level, and so
// are the items of a list.
const maxNesting = 6

// intOrString is the node.kind of a value that is an integer or a string.
const intOrString = "int-or-string"

// node is the schema of one value in a status, such as a field or the items of a list.
type node struct {
	kind, format string
	enum         []string
	pattern      *regexp.Regexp
	maximum      float64 // maximum of an integer
	maxItems     int     // limit of an array; -1 if unlimited
	required     []string
	properties   map[string]*node
	items        *node    // schema of the entries of an array, or of the values of a map
	keys         []string // fields that identify the entries of an array

	props     *apiextensionsv1.JSONSchemaProps
	validator func() (validation.SchemaValidator, error) // nil if the checks in valid.go suffice
}

// NewSchema reads the schema of one version of a CRD. It also returns whether this version has a status subresource.
func NewSchema(crd *apiextensionsv1.CustomResourceDefinition, version string) (s Schema, hasStatusSubresource bool, err error) {
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
	if i < 0 {
		return Schema{}, false, fmt.Errorf("reading the schema of CustomResourceDefinition %s: it has no version %s", crd.Name, version)
	}
	v := crd.Spec.Versions[i]
	s.kind = schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
	hasStatusSubresource = v.Subresources != nil && v.Subresources.Status != nil
	if v.Subresources != nil && v.Subresources.Scale != nil {
		if path, ok := strings.CutPrefix(v.Subresources.Scale.StatusReplicasPath, ".status."); ok {
			s.replicas = "/" + strings.ReplaceAll(path, ".", "/")
		}
	}
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return Schema{}, hasStatusSubresource, nil
	}
	root := v.Schema.OpenAPIV3Schema.Properties
	if status, ok := root["status"]; ok {
		s.status = newNode(&status, maxNesting)
	}
	s.specBooleans = map[string]bool{}
	for name, p := range root["spec"].Properties {
		if p.Type == "boolean" {
			s.specBooleans[name] = true
		}
	}
	return s, hasStatusSubresource, nil
}

// HasStatus reports whether the kind's schema declares a status.
func (s Schema) HasStatus() bool { return s.status != nil }

// newNode converts a schema down to the given number of levels. The merge does not read deeper levels.
func newNode(p *apiextensionsv1.JSONSchemaProps, levels int) *node {
	n := &node{kind: p.Type, format: p.Format, maximum: maxInteger(p), maxItems: -1, required: p.Required, pattern: patternOf(p), props: p}
	if !plain(p) || (levels == 0 && (len(p.Properties) > 0 || p.Items != nil || p.AdditionalProperties != nil)) {
		n.validator = sync.OnceValues(func() (validation.SchemaValidator, error) { return newValidator(p) })
	}
	if p.XIntOrString {
		n.kind = intOrString
	}
	if p.MaxItems != nil {
		n.maxItems = int(*p.MaxItems)
	}
	for _, e := range p.Enum {
		var word string
		if json.Unmarshal(e.Raw, &word) == nil {
			n.enum = append(n.enum, word)
		}
	}
	if levels == 0 {
		return n
	}
	n.properties = make(map[string]*node, len(p.Properties))
	for name := range p.Properties {
		field := p.Properties[name]
		n.properties[name] = newNode(&field, levels-1)
	}
	switch {
	case p.Items != nil && p.Items.Schema != nil:
		n.items = newNode(p.Items.Schema, levels-1)
	case p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil && p.Type == "object":
		n.items = newNode(p.AdditionalProperties.Schema, levels-1)
	}
	if p.XListType != nil && *p.XListType == "map" {
		n.keys = p.XListMapKeys
	}
	return n
}

var matchesNothing = regexp.MustCompile(`[^\x00-\x{10FFFF}]`)

// patternOf returns the compiled pattern of a schema, or nil if the schema has none. If the pattern does not compile,
// the result matches no text, as on the API server.
func patternOf(p *apiextensionsv1.JSONSchemaProps) *regexp.Regexp {
	if p.Pattern == "" {
		return nil
	}
	pattern, err := regexp.Compile(p.Pattern)
	if err != nil {
		return matchesNothing
	}
	return pattern
}

func maxInteger(p *apiextensionsv1.JSONSchemaProps) float64 {
	limit := float64(1 << 62)
	if p.Format == "int32" {
		limit = 1<<31 - 1
	}
	if p.Maximum != nil {
		limit = min(limit, *p.Maximum)
	}
	return limit
}

// allows reports whether the enum and the pattern of the schema allow a text.
func (n *node) allows(word string) bool {
	return (len(n.enum) == 0 || slices.Contains(n.enum, word)) && (n.pattern == nil || n.pattern.MatchString(word))
}

// countable reports whether values with this schema can be added.
func (n *node) countable() bool { return n.kind == "integer" || n.kind == intOrString }

// keyed reports whether the schema is a list of maps, and the key fields are among those that the hub reads from a
// copy.
func (n *node) keyed() bool {
	return n.items != nil && n.items.kind == "object" && len(n.keys) > 0 &&
		!slices.ContainsFunc(n.keys, func(key string) bool { return !health.IsKey(key) || n.items.properties[key] == nil })
}

// entries returns the items of a list by key. The key is a JSON text of the item's key fields. ok is false if the value
// is not a list of maps, or if a key is missing or occurs twice.
func (n *node) entries(list any) (byID map[string]map[string]any, ok bool) {
	if list == nil {
		return nil, true
	}
	all, ok := list.([]any)
	if !ok {
		return nil, false
	}
	byID = make(map[string]map[string]any, len(all))
	for _, e := range all {
		entry, _ := e.(map[string]any)
		var id []any
		for _, key := range n.keys {
			switch v := entry[key].(type) {
			case string, float64, int64:
				id = append(id, v)
			default:
				return nil, false
			}
		}
		text, err := json.Marshal(id)
		if err != nil || byID[string(text)] != nil {
			return nil, false
		}
		byID[string(text)] = entry
	}
	return byID, true
}
