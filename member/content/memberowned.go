package content

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
)

// LeaveToMember changes a manifest so that its apply leaves the fields at the JSON pointers as they are in the live
// object. Two groups of fields get their live value in the manifest: fields that only the hub owns, and fields inside a
// value that is owned as a whole. The server would remove these fields if the manifest lacked them. All other fields at
// the pointers are removed from the manifest, so that the hub no longer owns them. The manifest is changed in place,
// and must not share data with other objects.
func LeaveToMember(manifest, live *unstructured.Unstructured, pointers []string) {
	if len(pointers) == 0 {
		return
	}
	alone := ownedAlone(live)
	for _, p := range pointers {
		steps := hubv1.PointerKeys(p)
		if last := steps[len(steps)-1]; strings.HasPrefix(last, hubv1.Prefix) {
			continue // a member cannot own the hub's labels and annotations
		}
		value, put := lookup(live.Object, steps)
		if below, whole := descend(alone, steps); put && !whole && !atomicAbove(live, steps) {
			value, put = kept(value, below)
		}
		if put && unstructured.SetNestedField(manifest.Object, copied(value), steps...) == nil {
			continue
		}
		prune(manifest.Object, steps)
	}
}

// prune removes a field from a manifest, and then the maps around the field that have become empty. Otherwise the hub
// would own an empty map.
func prune(from map[string]any, steps []string) {
	if _, there := lookup(from, steps); !there {
		return
	}
	unstructured.RemoveNestedField(from, steps...)
	for n := len(steps) - 1; n > 0; n-- {
		if parent, _, err := unstructured.NestedMap(from, steps[:n]...); err != nil || len(parent) > 0 {
			return
		}
		unstructured.RemoveNestedField(from, steps[:n]...)
	}
}

func copied(value any) any {
	return (&unstructured.Unstructured{Object: map[string]any{"value": value}}).DeepCopy().Object["value"]
}

// ownedAlone returns the paths that only the hub owns.
func ownedAlone(live *unstructured.Unstructured) *fieldpath.Set {
	alone := ours(live)
	if alone == nil {
		return &fieldpath.Set{}
	}
	for e := range entries(live) {
		if e.isOurs() {
			continue
		}
		if theirs := e.paths(); theirs != nil {
			alone = alone.Difference(theirs)
		}
	}
	return alone
}

func lookup(from map[string]any, steps []string) (any, bool) {
	value, there, err := unstructured.NestedFieldNoCopy(from, steps...)
	return value, there && err == nil
}

// descend returns the paths of a set that lie below the given steps, or nil if there are none. whole is true if the set
// contains the path of the steps itself, but no path below it.
func descend(set *fieldpath.Set, steps []string) (below *fieldpath.Set, whole bool) {
	for i, s := range steps {
		next, ok := set.Children.Get(field(s))
		if !ok {
			return nil, i == len(steps)-1 && set.Members.Has(field(s))
		}
		set = next
	}
	return set, false
}

// atomicAbove reports whether a manager owns a value above the field as a whole. The server would then remove the field
// if the manifest omitted it.
func atomicAbove(live *unstructured.Unstructured, steps []string) bool {
	for n := 1; n < len(steps); n++ {
		asOne, inParts := false, false
		for e := range entries(live) {
			if set := e.paths(); set != nil {
				below, whole := descend(set, steps[:n])
				asOne, inParts = asOne || whole, inParts || below != nil
			}
		}
		if asOne && !inParts {
			return true
		}
	}
	return false
}

// kept returns the parts of a live value whose paths are in the set.
func kept(value any, set *fieldpath.Set) (any, bool) {
	if set == nil || set.Empty() {
		return nil, false
	}
	switch value := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if v, ok := keptBelow(value[name], set, field(name)); ok {
				out[name] = v
			}
		}
		return out, len(out) > 0
	case []any:
		out := keptItems(value, set)
		return out, len(out) > 0
	}
	return nil, false
}

func keptBelow(value any, set *fieldpath.Set, pe fieldpath.PathElement) (any, bool) {
	if below, ok := set.Children.Get(pe); ok && !below.Empty() {
		return kept(value, below)
	}
	return value, set.Members.Has(pe)
}

// keptItems returns the list items whose paths are in the set, in the order of the live list. Each item has its key
// fields and the fields in the set.
func keptItems(items []any, set *fieldpath.Set) []any {
	keys, byValue := shape([]owner{{set: set}})
	byKey := map[string]*fieldpath.Set{}
	for pe := range set.Children.All() {
		if pe.Key != nil {
			byKey[textOf(pe)], _ = set.Children.Get(pe)
		}
	}
	values := map[string]bool{}
	for pe := range set.Members.All() {
		if pe.Value != nil {
			values[string(canonical.Bytes((*pe.Value).Unstructured()))] = true
		}
	}
	var out []any
	for _, item := range items {
		m, isMap := item.(map[string]any)
		switch {
		case byValue && values[string(canonical.Bytes(item))]:
			out = append(out, item)
		case keys != nil && isMap:
			below := byKey[textOf(keyElement(keys, m, nil))]
			if below == nil {
				continue
			}
			part, _ := kept(m, below)
			fields, _ := part.(map[string]any)
			if fields == nil {
				fields = map[string]any{}
			}
			for _, k := range keys {
				if v, ok := m[k]; ok {
					fields[k] = v
				}
			}
			out = append(out, fields)
		}
	}
	return out
}

// scaleSubresource is the subresource through which autoscalers set the number of replicas.
const scaleSubresource = "scale"

// scaledByHand is the beginning of the names of kubectl's field managers. A user who runs kubectl scale is no
// autoscaler, so that the hub restores its own number of replicas.
const scaledByHand = "kubectl"

// Autoscaled returns JSON pointers to the fields that an autoscaler has set last. Autoscalers, such as the
// HorizontalPodAutoscaler controller and KEDA, write through the subresource scale.
//
// A server that sets replicas to 0 through this subresource records no manager of the field, not even the former one,
// and it records none when it then sets another number. See isScaled.
func Autoscaled(live *unstructured.Unstructured) []string {
	var out []string
	for e := range entries(live) {
		byHand := strings.HasPrefix(e.manager, scaledByHand)
		if e.isOurs() || byHand || e.subresource != scaleSubresource || e.operation != string(metav1.ManagedFieldsOperationUpdate) {
			continue
		}
		if set := e.paths(); set != nil {
			for p := range set.All() {
				if pointer, ok := pointerOf(p); ok {
					out = append(out, pointer)
				}
			}
		}
	}
	if isScaled(live) {
		out = append(out, "/spec/replicas")
	}
	return out
}

// isScaled reports whether the hub has applied the object, and a client, perhaps kubectl, has set its /spec/replicas
// through the subresource scale, although the field has no manager. A number without a manager may also be a default:
// it is 1 for the workloads of the group apps, and unknown, but never 0, for other kinds.
func isScaled(live *unstructured.Unstructured) bool {
	n, ok, err := unstructured.NestedInt64(live.Object, "spec", "replicas")
	if !ok || err != nil || ours(live) == nil || n != 0 && (n == 1 || live.GroupVersionKind().Group != "apps") {
		return false
	}
	for e := range entries(live) {
		if set := e.paths(); set == nil || set.Has(fieldpath.MakePathOrDie("spec", "replicas")) {
			return false
		}
	}
	return true
}

// pointerOf returns the JSON pointer of a path. ok is false if the path is not below the spec, or has an element that
// is not a field name.
func pointerOf(p fieldpath.Path) (string, bool) {
	var b strings.Builder
	for i, pe := range p {
		if pe.FieldName == nil || (i == 0 && *pe.FieldName != "spec") {
			return "", false
		}
		b.WriteString("/" + strings.ReplaceAll(strings.ReplaceAll(*pe.FieldName, "~", "~0"), "/", "~1"))
	}
	return b.String(), len(p) > 1
}
