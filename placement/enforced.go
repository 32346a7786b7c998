package placement

import (
	"slices"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Outranks reports whether a is enforced and b is not. If so, a takes the object from b. This holds even if the object
// follows b now, and even if b has suspend.scheduling.
func Outranks(a, b hubv1.PlacementObject) bool { return a.IsEnforced() && !b.IsEnforced() }

// OutrankedBy returns the enforced placements that may take objects from the namespaced placement p. It compares only
// kinds, names and the namespace of the selected objects, because the labels of objects change.
func OutrankedBy(p hubv1.PlacementObject, namespaceLabels map[string]string, all []hubv1.PlacementObject) []hubv1.PlacementObject {
	var out []hubv1.PlacementObject
	for _, other := range all {
		if other.GetDeletionTimestamp() != nil || !Outranks(other, p) {
			continue
		}
		somewhere := hubv1.SelectableObject{ObjectIdentity: hubv1.ObjectIdentity{Namespace: p.GetNamespace()}, NamespaceLabels: namespaceLabels}
		inScope, err := hubv1.InScope(other.GetNamespace(), other.SelectedNamespaces(), somewhere)
		if err != nil || !inScope {
			continue
		}
		if slices.ContainsFunc(p.PlacementSpec().ResourceSelectors, func(s hubv1.ResourceSelector) bool {
			return slices.ContainsFunc(other.PlacementSpec().ResourceSelectors, func(t hubv1.ResourceSelector) bool { return meet(s, t) })
		}) {
			out = append(out, other)
		}
	}
	return out
}

// meet reports whether some object may match both selectors.
func meet(a, b hubv1.ResourceSelector) bool {
	return a.APIGroup == b.APIGroup && (a.Kind == b.Kind || a.Kind == "*" || b.Kind == "*") && (a.Name == b.Name || a.Name == "" || b.Name == "")
}
