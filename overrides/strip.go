package overrides

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// These are labels and annotations of the hub object that a copy must not have:
//
//   - Marks of ownership. A member may run the same tool, which would adopt, prune or rewrite a copy with such a mark.
//   - State of the hub's own controllers, which the controllers of a member set there themselves.
//   - Requests that a controller removes after it has acted. The hub would set them again and again.
//
// All other labels and annotations may be part of the API of a kind, such as argocd.argoproj.io/secret-type. A prefix
// is in the list only if all of its keys are of this character.
var (
	deniedPrefixes = []string{
		hubv1.Prefix,
		"meta.helm.sh/",             // release-name and release-namespace: ownership by a Helm release
		"deployment.kubernetes.io/", // revisions and sizes: state of the Deployment controller
		"pv.kubernetes.io/",         // bound-by-controller and others: state of the volume controllers
	}
	deniedKeys = []string{
		"app.kubernetes.io/managed-by",
		corev1.LastAppliedConfigAnnotation,
		"argocd.argoproj.io/instance",
		"argocd.argoproj.io/tracking-id",
		"argocd.argoproj.io/installation-id",
		"kustomize.toolkit.fluxcd.io/name",
		"kustomize.toolkit.fluxcd.io/namespace",
		"helm.toolkit.fluxcd.io/name",
		"helm.toolkit.fluxcd.io/namespace",
		"argocd.argoproj.io/refresh", // a request, as the two below
		"argocd.argoproj.io/hydrate",
		"argocd.argoproj.io/application-set-refresh",
	}
)

// Dropped returns the labels, annotations, finalizers and owner references of a hub object that a copy does not get,
// such as "label argocd.argoproj.io/instance". denied are further prefixes of labels and annotations, as in Prepare.
// The result is sorted by these groups and then by name. It leaves out the keys of Hanse itself, and the annotation in
// which kubectl apply keeps the user's file, because no user misses it on a member.
func Dropped(object *unstructured.Unstructured, denied []string) []string {
	var out []string
	keys := func(noun string, all map[string]string) {
		for _, key := range slices.Sorted(maps.Keys(all)) {
			if !strings.HasPrefix(key, hubv1.Prefix) && key != corev1.LastAppliedConfigAnnotation && isDenied(key, denied) {
				out = append(out, noun+" "+key)
			}
		}
	}
	keys("label", object.GetLabels())
	keys("annotation", object.GetAnnotations())
	for _, name := range slices.Sorted(slices.Values(object.GetFinalizers())) {
		out = append(out, "finalizer "+name)
	}
	for _, owner := range object.GetOwnerReferences() {
		out = append(out, "owner reference to "+owner.Kind+" "+owner.Name)
	}
	return out
}

// strip returns the part of the template that may be copied to members. The result shares everything except metadata
// with the template.
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
