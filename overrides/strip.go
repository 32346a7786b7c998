package overrides

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// These are labels and annotations that other tools set on the objects that they manage. A member may run the same
// tool, which would adopt, prune or rewrite a copy with such labels or annotations.
var (
	deniedPrefixes = []string{
		hubv1.Prefix,
		"kubectl.kubernetes.io/",
		"argocd.argoproj.io/",
		"meta.helm.sh/",
		"deployment.kubernetes.io/",
		"pv.kubernetes.io/",
	}
	deniedKeys = []string{
		"app.kubernetes.io/managed-by",
		"kustomize.toolkit.fluxcd.io/name",
		"kustomize.toolkit.fluxcd.io/namespace",
		"helm.toolkit.fluxcd.io/name",
		"helm.toolkit.fluxcd.io/namespace",
	}
)

// strip returns the part of the template (the hub object) that may be copied to members. The result shares everything
// except metadata with the template.
func strip(template *unstructured.Unstructured, denied []string) (map[string]any, *InvalidError) {
	if template == nil {
		return nil, &InvalidError{Message: "is missing"}
	}
	metadata, ok := template.Object["metadata"].(map[string]any)
	if !ok {
		return nil, &InvalidError{Path: "/metadata", Message: "is not an object"}
	}
	kept := make(map[string]any, 4)
	for _, field := range []string{"name", "namespace"} {
		switch v := metadata[field].(type) {
		case nil:
		case string:
			kept[field] = v
		default:
			return nil, &InvalidError{Path: "/metadata/" + field, Message: "is not a string"}
		}
	}
	for _, field := range []string{"labels", "annotations"} {
		keys, err := stripKeys(field, metadata[field], denied)
		if err != nil {
			return nil, err
		}
		if len(keys) > 0 {
			kept[field] = keys
		}
	}
	out := make(map[string]any, len(template.Object))
	for field, v := range template.Object {
		if field != "status" {
			out[field] = v
		}
	}
	out["metadata"] = kept
	return out, nil
}

func stripKeys(field string, v any, denied []string) (map[string]any, *InvalidError) {
	if v == nil {
		return nil, nil
	}
	all, ok := v.(map[string]any)
	if !ok {
		return nil, &InvalidError{Path: "/metadata/" + field, Message: "is not a map of strings: correct the object on the hub"}
	}
	kept := make(map[string]any, len(all))
	var malformed []string
	for key, value := range all {
		if _, ok := value.(string); !ok {
			malformed = append(malformed, key)
		} else if !isDenied(key, denied) {
			kept[key] = value
		}
	}
	if len(malformed) > 0 {
		return nil, &InvalidError{
			Path:    pointer{"metadata", field, slices.Min(malformed)}.String(),
			Message: "is not a string: correct the object on the hub",
		}
	}
	return kept, nil
}

func isDenied(key string, denied []string) bool {
	starts := func(prefix string) bool { return prefix != "" && strings.HasPrefix(key, prefix) }
	return slices.Contains(deniedKeys, key) || slices.ContainsFunc(deniedPrefixes, starts) || slices.ContainsFunc(denied, starts)
}
