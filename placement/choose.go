package placement

import (
	"cmp"
	"slices"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Choice is the result of Choose.
type Choice struct {
	// Winner is the placement that the object follows. It is nil if no placement matches the object.
	Winner hubv1.PlacementObject
	// Others are the placements that also match the object but are not followed, in the order of precedence.
	Others []hubv1.PlacementObject
}

// InvalidPlacement is a placement whose selectors cannot be parsed. It may select the object, but this is not known.
type InvalidPlacement struct {
	Placement hubv1.PlacementObject
	Err       error
}

// Choose decides which placement an object follows. current is the placement that the object follows now, or nil.
// Choose compares placements by kind, namespace and name, but not by UID. A placement that is deleted and created again
// therefore keeps its objects.
//
//   - The current placement keeps the object while it matches, unless a matching placement that precedes it has
//     preemption Always.
//   - The current placement also keeps the object while its selectors cannot be read: a typing error moves nothing.
//   - An enforced placement always takes the object from a current placement that is not enforced (Outranks).
//   - Otherwise the object follows the first matching placement in the order of precedence. A placement that is being
//     deleted matches nothing.
func Choose(object hubv1.SelectableObject, placements []hubv1.PlacementObject, current *hubv1.PlacementReference) (Choice, []InvalidPlacement) {
	var (
		matching   []candidate
		invalid    []InvalidPlacement
		unreadable hubv1.PlacementObject // the current placement if its selectors are invalid, otherwise nil
	)
	for _, p := range placements {
		if p.GetDeletionTimestamp() != nil {
			continue
		}
		specificity, err := match(object, p)
		switch {
		case err != nil:
			invalid = append(invalid, InvalidPlacement{Placement: p, Err: err})
			if refersTo(current, p) {
				unreadable = p
			}
		case specificity != hubv1.MatchesNot:
			matching = append(matching, candidate{PlacementObject: p, specificity: specificity})
		}
	}
	slices.SortFunc(matching, precedence)
	slices.SortFunc(invalid, func(a, b InvalidPlacement) int {
		return cmp.Or(cmp.Compare(a.Placement.GetNamespace(), b.Placement.GetNamespace()), cmp.Compare(a.Placement.GetName(), b.Placement.GetName()))
	})

	if unreadable != nil && (len(matching) == 0 || !Outranks(matching[0], unreadable)) {
		return Choice{Winner: unreadable, Others: without(matching, -1)}, invalid
	}
	if len(matching) == 0 {
		return Choice{}, invalid
	}
	w := winner(matching, current)
	return Choice{Winner: matching[w].PlacementObject, Others: without(matching, w)}, invalid
}

type candidate struct {
	hubv1.PlacementObject
	specificity hubv1.Specificity
}

// winner returns the index of the placement that the object follows. matching has the placements that match the object,
// sorted by precedence. current is the placement that the object follows now, or nil.
func winner(matching []candidate, current *hubv1.PlacementReference) int {
	held := slices.IndexFunc(matching, func(c candidate) bool { return refersTo(current, c.PlacementObject) })
	if held < 0 {
		return 0
	}
	if Outranks(matching[0], matching[held]) {
		return 0
	}
	for i, c := range matching[:held] {
		if c.PlacementSpec().Preemption == hubv1.PreemptionAlways {
			return i
		}
	}
	return held
}

// precedence compares two placements that select the same object. The result is negative if a precedes b. An enforced
// placement precedes all others, and a Placement precedes a ClusterPlacement. After that, the higher priority, the
// narrower selector and the name decide.
func precedence(a, b candidate) int {
	return cmp.Or(
		cmp.Compare(rank(a), rank(b)),
		cmp.Compare(b.PlacementSpec().Priority, a.PlacementSpec().Priority),
		cmp.Compare(b.specificity, a.specificity),
		cmp.Compare(a.GetName(), b.GetName()),
	)
}

func rank(c candidate) int {
	switch {
	case c.IsEnforced():
		return 0
	case c.GetNamespace() != "":
		return 1
	}
	return 2
}

func match(object hubv1.SelectableObject, p hubv1.PlacementObject) (hubv1.Specificity, error) {
	inScope, err := hubv1.InScope(p.GetNamespace(), p.SelectedNamespaces(), object)
	if err != nil || !inScope {
		return hubv1.MatchesNot, err
	}
	return hubv1.Match(p.PlacementSpec().ResourceSelectors, object)
}

func refersTo(ref *hubv1.PlacementReference, p hubv1.PlacementObject) bool {
	if ref == nil || ref.Namespace != p.GetNamespace() || ref.Name != p.GetName() {
		return false
	}
	// Objects from a typed client often have no kind. The namespace shows whether the object is a Placement or a
	// ClusterPlacement.
	return (ref.Kind == "Placement") == (p.GetNamespace() != "")
}

func without(matching []candidate, index int) []hubv1.PlacementObject {
	var out []hubv1.PlacementObject
	for i, c := range matching {
		if i != index {
			out = append(out, c.PlacementObject)
		}
	}
	return out
}
