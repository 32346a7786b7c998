package manifest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// document reads a decoded document, which is one object or a list of objects.
func (r *reader) document(where string, value any) {
	items, isList := itemsOf(value)
	if !isList {
		r.object(where, value)
		return
	}
	for i, item := range items {
		r.object(fmt.Sprintf("%s, items[%d]", where, i), item)
	}
}

// object reads one object, and adds it to the objects that were found, or its error to the problems.
func (r *reader) object(where string, value any) {
	if r.stopped {
		return
	}
	if r.objects++; r.objects > MaxObjects {
		r.stop(errObjects)
		return
	}
	object, err := clean(value, r.refuse)
	if err != nil {
		r.problems.add(where, err)
		return
	}
	r.found = append(r.found, manifest{where: where, object: object})
}

// itemsOf returns the items of a list: of a v1 List, or of a list of one kind such as apps/v1 DeploymentList. isList is
// false for any other value. It is also false for a custom resource whose kind happens to end with List: unlike a list,
// such an object has a name.
func itemsOf(value any) (items []any, isList bool) {
	list, _ := value.(map[string]any)
	kind, _ := list["kind"].(string)
	items, ok := list["items"].([]any)
	if !ok || !strings.HasSuffix(kind, "List") {
		return nil, false
	}
	if kind == "List" && list["apiVersion"] == "v1" {
		return items, true
	}
	if metadata, _ := list["metadata"].(map[string]any); metadata["name"] != nil {
		return nil, false
	}
	return items, !slices.ContainsFunc(items, func(item any) bool {
		object, ok := item.(map[string]any)
		return !ok || groupOf(object) != groupOf(list)
	})
}

func groupOf(object map[string]any) string {
	version, _ := object["apiVersion"].(string)
	group, _, found := strings.Cut(version, "/")
	if !found {
		return ""
	}
	return group
}

// clean returns a copy of an object with only the fields that a manifest may set. The status is left out, and most
// metadata. If refuse returns an error for the object's kind, clean returns this error.
func clean(value any, refuse func(schema.GroupKind) error) (*unstructured.Unstructured, error) {
	in, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("it is not an object: write a map with apiVersion, kind and metadata.name")
	}
	if _, isList := itemsOf(in); isList {
		return nil, errNotExpanded
	}
	gk, err := kindOf(in)
	if err != nil {
		return nil, err
	}
	if err := refuse(gk); err != nil {
		return nil, err
	}
	metadata, err := cleanMetadata(in["metadata"])
	if err != nil {
		return nil, err
	}
	out := maps.Clone(in)
	delete(out, "status")
	out["metadata"] = metadata
	if hubv1.IsSecret(gk) {
		dropEmptyKeys(out)
	}
	if isDeeper(out, MaxDepth) {
		return nil, fmt.Errorf("the object nests deeper than %d levels of maps and lists: flatten it", MaxDepth)
	}
	return &unstructured.Unstructured{Object: out}, nil
}

var errNotExpanded = errors.New("it is a List without items, or a List in another List: write each object as a manifest of its own")

func kindOf(object map[string]any) (schema.GroupKind, error) {
	version, ok := object["apiVersion"].(string)
	if !ok || version == "" {
		return schema.GroupKind{}, errors.New("it has no apiVersion: set it, such as apps/v1")
	}
	gv, err := schema.ParseGroupVersion(version)
	if err != nil || gv.Version == "" {
		return schema.GroupKind{}, fmt.Errorf("the apiVersion is %q: set a group and a version, such as apps/v1", version)
	}
	kind, ok := object["kind"].(string)
	if !ok || kind == "" {
		return schema.GroupKind{}, errors.New("it has no kind: set it, such as Deployment")
	}
	return schema.GroupKind{Group: gv.Group, Kind: kind}, nil
}

// refuseKind returns an error for a kind that manifests and ConfigMaps may not contain. Secrets are among these kinds,
// because all users who may read the bundle could read their values.
func refuseKind(gk schema.GroupKind) error {
	if hubv1.IsSecret(gk) {
		return errors.New("it is a Secret: create the Secret on the hub and select it with a placement")
	}
	return refuseUnsendable(gk)
}

// refuseUnsendable returns an error for a kind that is never sent to members: a nested List, or a kind of Hanse itself.
func refuseUnsendable(gk schema.GroupKind) error {
	switch {
	case gk == schema.GroupKind{Kind: "List"}:
		return errNotExpanded
	case gk.Group == hubv1.GroupVersion.Group:
		return fmt.Errorf("%s is a kind of Hanse: create the object on the hub, outside of the bundle", gk.Kind)
	}
	return nil
}

// cleanMetadata returns only the name, namespace, labels and annotations of the metadata. It returns an error if one of
// them is invalid.
func cleanMetadata(value any) (map[string]any, error) {
	in, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("it has no metadata: set metadata.name")
	}
	if g := in["generateName"]; g != nil && g != "" {
		return nil, errors.New("it has metadata.generateName: set metadata.name instead")
	}
	name, ok := in["name"].(string)
	if !ok || name == "" {
		return nil, errors.New("it has no metadata.name: set it to a string")
	}
	if faults := content.IsPathSegmentName(name); len(faults) > 0 {
		return nil, fmt.Errorf("the name is %q: a name %s", name, faults[0])
	}
	out := map[string]any{"name": name}
	if namespace := in["namespace"]; namespace != nil && namespace != "" {
		if _, ok := namespace.(string); !ok {
			return nil, errors.New("metadata.namespace is not a string: write it in quotes")
		}
		out["namespace"] = namespace
	}
	for _, field := range []string{"labels", "annotations"} {
		texts, err := cleanTexts(field, in[field])
		if err != nil {
			return nil, err
		}
		if len(texts) > 0 {
			out[field] = texts
		}
	}
	return out, nil
}

// cleanTexts returns the labels or annotations of an object. It returns an error if a value is not a string, or if a
// key has the prefix hanse.dev/.
func cleanTexts(field string, value any) (map[string]any, error) {
	in, ok := value.(map[string]any)
	if !ok && value != nil {
		return nil, fmt.Errorf("metadata.%s is not a map: write keys and strings", field)
	}
	out := maps.Clone(in)
	if field == "annotations" {
		delete(out, corev1.LastAppliedConfigAnnotation)
	}
	for _, key := range slices.Sorted(maps.Keys(out)) {
		if strings.HasPrefix(key, hubv1.Prefix) {
			return nil, fmt.Errorf("metadata.%s has the key %q, but only Hanse sets keys with the prefix %s: remove it", field, key, hubv1.Prefix)
		}
		if _, ok := out[key].(string); !ok {
			return nil, fmt.Errorf("the value of %q in metadata.%s is not a string: write it in quotes", key, field)
		}
	}
	return out, nil
}

// dropEmptyKeys removes the keys of a Secret that have no value. They are placeholders, into which an operator writes
// at run time, such as the certificate of its webhook. The hub would otherwise own these keys and empty them again.
func dropEmptyKeys(secret map[string]any) {
	for _, field := range []string{"data", "stringData"} {
		values, isMap := secret[field].(map[string]any)
		if !isMap && secret[field] != nil {
			continue // the member refuses it, with a clear message
		}
		values = maps.Clone(values)
		maps.DeleteFunc(values, func(_ string, v any) bool { return v == nil || v == "" })
		if secret[field] = values; len(values) == 0 {
			delete(secret, field)
		}
	}
}

// isDeeper reports whether more than the given number of maps and lists are inside each other in the value.
func isDeeper(value any, maxDepth int) bool {
	deeper := func(child any) bool { return isDeeper(child, maxDepth-1) }
	switch v := value.(type) {
	case map[string]any:
		return maxDepth == 0 || slices.ContainsFunc(slices.Collect(maps.Values(v)), deeper)
	case []any:
		return maxDepth == 0 || slices.ContainsFunc(v, deeper)
	}
	return false
}
