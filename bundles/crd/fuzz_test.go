package crd_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/crd"
)

// FuzzCheck generates two definitions, and objects that match them in part, from the bytes of the input. API servers
// would refuse most of these definitions. It fails on a panic, on a report that exceeds its limits, and on findings for
// equal definitions.
func FuzzCheck(f *testing.F) {
	for seed := range byte(32) {
		choices := make([]byte, 400)
		for i := range choices {
			seed = seed*5 + byte(i)*7 + 3
			choices[i] = seed ^ seed>>3
		}
		f.Add(choices)
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		c := chooser{choices}
		before := c.definition()
		after := before.DeepCopy()
		if c.one() {
			after = c.definition()
		} else if v := after.Spec.Versions[0].Schema; v != nil && v.OpenAPIV3Schema != nil {
			c.change(v.OpenAPIV3Schema, 4)
		}
		in := crd.Input{
			Before: before, After: after,
			StoredVersions: map[string][]string{"eu-1": {"v1"}, "eu-2": {"v2", "v3"}}, Acknowledged: []hubv1.AcknowledgedChange{{CRD: "as.b", Rule: "type", Path: "/a"}},
		}
		for range 3 {
			content, _ := c.value(4).(map[string]any)
			if content == nil {
				content = map[string]any{}
			}
			content["apiVersion"], content["kind"] = "b/"+c.version(), "A"
			in.Objects = append(in.Objects, crd.Object{Content: &unstructured.Unstructured{Object: content}, Clusters: []string{"eu-1"}})
		}
		check(t, in)
		in.After, in.Acknowledged, in.StoredVersions = before, nil, nil
		if report := check(t, in); report.BlockedTotal+report.WarningsTotal > 0 {
			t.Errorf("nothing changes: %v", report)
		}
	})
}

func check(t *testing.T, in crd.Input) crd.Report {
	t.Helper()
	report, err := crd.Check(t.Context(), in)
	if err != nil {
		return crd.Report{}
	}
	message := crd.Message(report)
	if len(report.Blocked) > crd.MaxFindings || len(report.Warnings) > crd.MaxFindings ||
		utf8.RuneCountInString(message) > 1024 || (message == "") != (report.BlockedTotal == 0) {
		t.Errorf("%d of %d findings, the message %q", len(report.Blocked), report.BlockedTotal, message)
	}
	if _, err := json.Marshal(report); err != nil {
		t.Error(err)
	}
	return report
}

// chooser makes choices from a list of bytes. When the bytes are used up, it chooses the first alternative.
type chooser struct{ choices []byte }

func (c *chooser) of(n int) int {
	if len(c.choices) == 0 {
		return 0
	}
	first := c.choices[0]
	c.choices = c.choices[1:]
	return int(first) % n
}

// one returns true for one of four bytes.
func (c *chooser) one() bool { return c.of(4) == 3 }

func pick[T any](c *chooser, all ...T) T { return all[c.of(len(all))] }

func (c *chooser) name() string {
	return pick(c, "a", "b", "items", "metadata", "a.b", "a[0]", "", "status", "~/*", "ö", "spec")
}

func (c *chooser) version() string { return pick(c, "v1", "v1", "v2", "") }

func (c *chooser) definition() *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "as.b"}}
	crd.Spec.Group, crd.Spec.Names.Kind, crd.Spec.PreserveUnknownFields = "b", "A", c.one()
	if c.one() {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: pick(c, apiextensionsv1.WebhookConverter, "")}
	}
	for _, name := range []string{"v1", "v2"}[:1+c.of(2)] {
		v := apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: !c.one(), Storage: !c.one()}
		if !c.one() || c.one() {
			v.Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: ptr.To(c.schema(4))}
		}
		crd.Spec.Versions = append(crd.Spec.Versions, v)
	}
	return crd
}

// schema returns a generated schema. In most cases, the type of the schema matches its other parts.
func (c *chooser) schema(depth int) apiextensionsv1.JSONSchemaProps {
	s := apiextensionsv1.JSONSchemaProps{Type: pick(c, "object", "object", "array", "string", "integer", "number", "boolean")}
	if depth > 0 && s.Type == "object" {
		s.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
		for range c.of(4) {
			s.Properties[c.name()] = c.schema(depth - 1)
		}
		if c.one() {
			s.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: c.one(), Schema: ptr.To(c.schema(depth - 1))}
		}
	}
	if depth > 0 && s.Type == "array" {
		s.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: ptr.To(c.schema(depth - 1))}
	}
	for c.one() {
		c.part(&s, depth-1)
	}
	return s
}

// part sets one part of a schema.
func (c *chooser) part(s *apiextensionsv1.JSONSchemaProps, depth int) {
	parts := []func(){
		func() { s.Type = pick(c, "", "object", "array", "string", "integer", "null", "x") },
		func() { s.Nullable = !s.Nullable },
		func() { s.Pattern = pick(c, "^a", "[", "(a+)+$", "\\p{x}") },
		func() { s.Format = pick(c, "date-time", "uuid", "x", "") },
		func() {
			s.Enum = []apiextensionsv1.JSON{{Raw: []byte(pick(c, `"a"`, `1`, `{`, `null`, ``, `{"a":1}`))}}
		},
		func() {
			s.Default = &apiextensionsv1.JSON{Raw: []byte(pick(c, `"a"`, `1`, `{`, `null`, ``, `{"a":{}}`, `[[]]`))}
		},
		func() { s.Required = append(s.Required, c.name()) },
		func() { s.XPreserveUnknownFields = ptr.To(!c.one()) },
		func() { s.XEmbeddedResource = !s.XEmbeddedResource },
		func() { s.XIntOrString = !s.XIntOrString },
		func() { s.XListType = ptr.To(pick(c, "set", "map", "atomic", "x")) },
		func() { s.XListMapKeys = append(s.XListMapKeys, c.name()) },
		func() { s.XMapType = ptr.To(pick(c, "atomic", "granular", "x")) },
		func() { s.Maximum, s.MinLength, s.MaxItems = ptr.To(1.5), ptr.To(int64(-1)), ptr.To(int64(c.of(3))) },
		func() { s.MultipleOf, s.UniqueItems = ptr.To(float64(c.of(2))), true },
		func() { s.Ref = ptr.To(pick(c, "#", "x://", "#/definitions/a")) },
		func() { s.Items = pick(c, nil, &apiextensionsv1.JSONSchemaPropsOrArray{}) },
		func() {
			s.AdditionalProperties = pick(c, nil, &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true}, &apiextensionsv1.JSONSchemaPropsOrBool{})
		},
		func() { s.Properties = nil },
		func() {
			s.XValidations = append(s.XValidations, apiextensionsv1.ValidationRule{
				Rule: pick(c, "self == oldSelf", "has(self.a)", "self.a[", "size(self) > 0", "self.all(x, x == self)", "true"), MessageExpression: pick(c, "", "self.a", "'x'"),
			})
		},
	}
	if depth > 0 {
		parts = append(parts,
			func() { s.Not = ptr.To(c.schema(depth)) },
			func() { s.AnyOf = append(s.AnyOf, c.schema(depth)) },
			func() { s.OneOf = append(s.OneOf, c.schema(depth)) },
			func() { s.AllOf = append(s.AllOf, c.schema(depth)) },
		)
	}
	parts[c.of(len(parts))]()
}

// change changes some parts of a schema and of the schemas below it.
func (c *chooser) change(s *apiextensionsv1.JSONSchemaProps, depth int) {
	if depth == 0 {
		return
	}
	for c.one() {
		c.part(s, depth-1)
	}
	for _, name := range []string{"a", "b", "items", "metadata", "a.b", "spec"} {
		if below, ok := s.Properties[name]; ok {
			c.change(&below, depth-1)
			s.Properties[name] = below
			if c.one() {
				delete(s.Properties, name)
			}
		}
	}
	if s.Items != nil && s.Items.Schema != nil {
		c.change(s.Items.Schema, depth-1)
	}
}

// value returns a value as decoded from JSON.
func (c *chooser) value(depth int) any {
	kind := c.of(9)
	if depth > 0 && kind < 4 {
		out := map[string]any{}
		for range c.of(5) {
			out[c.name()] = c.value(depth - 1)
		}
		return out
	}
	if depth > 0 && kind < 6 {
		out := []any{}
		for range c.of(4) {
			out = append(out, c.value(depth-1))
		}
		return out
	}
	return pick[any](c, nil, true, int64(3), 1.5, "a", "", "2001-01-01T00:00:00Z")
}
