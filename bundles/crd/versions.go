package crd

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/utils/ptr"
)

// Preferred returns the served version with the highest priority in the order of Kubernetes: v2 before v1, and v1
// before v1beta1. It returns "" if the definition serves no version.
func Preferred(crd *apiextensionsv1.CustomResourceDefinition) string {
	preferred := ""
	for _, v := range crd.Spec.Versions {
		if v.Served && (preferred == "" || version.CompareKubeAwareVersionStrings(v.Name, preferred) > 0) {
			preferred = v.Name
		}
	}
	return preferred
}

// Others returns the other versions at which clusters may get an object that the hub reads at the version readAt. The
// newest version comes first. There are no other versions if the definition has a conversion webhook, or does not have
// the version readAt.
func Others(crd *apiextensionsv1.CustomResourceDefinition, readAt string) []string {
	read := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == readAt })
	if c := crd.Spec.Conversion; read < 0 || c != nil && c.Strategy != apiextensionsv1.NoneConverter {
		return nil
	}
	var out []string
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		if v.Served && i != read && (crd.Spec.PreserveUnknownFields || keepsObjects(schemaOf(&crd.Spec.Versions[read]), schemaOf(v))) {
			out = append(out, v.Name)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	return out
}

// notSent are fields that need not be compared: every version has apiVersion, kind and metadata, and the status is
// never sent.
var notSent = []string{"apiVersion", "kind", "metadata", "status"}

// keepsObjects reports whether an API server that prunes by the schema s would keep all fields that objects of the
// schema declared may have. The fields in notSent are not compared.
func keepsObjects(s, declared *apiextensionsv1.JSONSchemaProps) bool {
	sent := *declared
	sent.Properties = make(map[string]apiextensionsv1.JSONSchemaProps, len(declared.Properties))
	for name, p := range declared.Properties {
		if !slices.Contains(notSent, name) {
			sent.Properties[name] = p
		}
	}
	return keeps(s, &sent)
}

// keeps reports whether an API server that prunes by the schema s keeps all fields that the schema declared allows.
func keeps(s, declared *apiextensionsv1.JSONSchemaProps) bool {
	if embeds := declared.XEmbeddedResource && !s.XEmbeddedResource; (embeds || preserves(declared)) && !preserves(s) {
		return false
	}
	for name, p := range declared.Properties {
		if !keepsField(s, name, &p) {
			return false
		}
	}
	return keepsValues(s, declared.AdditionalProperties) && keepsItems(s, declared.Items)
}

func preserves(s *apiextensionsv1.JSONSchemaProps) bool {
	return ptr.Deref(s.XPreserveUnknownFields, false)
}

func keepsField(s *apiextensionsv1.JSONSchemaProps, name string, declared *apiextensionsv1.JSONSchemaProps) bool {
	if below, ok := s.Properties[name]; ok {
		return keeps(&below, declared)
	}
	return preserves(s) || keepsValue(s.AdditionalProperties, declared)
}

func keepsValues(s *apiextensionsv1.JSONSchemaProps, declared *apiextensionsv1.JSONSchemaPropsOrBool) bool {
	if declared == nil || !declared.Allows && declared.Schema == nil || preserves(s) && s.AdditionalProperties == nil {
		return true
	}
	values := ptr.Deref(declared.Schema, apiextensionsv1.JSONSchemaProps{})
	return keepsValue(s.AdditionalProperties, &values)
}

// keepsValue reports whether pruning keeps all fields that the schema declared allows in the values of a map. of has
// the schema by which the API server prunes these values.
func keepsValue(of *apiextensionsv1.JSONSchemaPropsOrBool, declared *apiextensionsv1.JSONSchemaProps) bool {
	return of != nil && (of.Schema != nil && keeps(of.Schema, declared) || of.Schema == nil && of.Allows)
}

func keepsItems(s *apiextensionsv1.JSONSchemaProps, declared *apiextensionsv1.JSONSchemaPropsOrArray) bool {
	if declared == nil || declared.Schema == nil || preserves(s) && s.Items == nil {
		return true
	}
	return s.Items != nil && s.Items.Schema != nil && keeps(s.Items.Schema, declared.Schema)
}
