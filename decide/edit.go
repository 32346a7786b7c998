package decide

import "slices"

// RemovalsOfEdit returns the copies that the decision on before keeps and the decision on after removes. Both inputs
// are about the same object, and the guard has judged no removal yet.
func RemovalsOfEdit(before, after Input) []Removal {
	removals := claimedRemovals(after)
	if len(removals) == 0 {
		return nil
	}
	known := claimedRemovals(before)
	return slices.DeleteFunc(removals, func(r Removal) bool {
		return slices.ContainsFunc(known, func(k Removal) bool { return k.Cluster == r.Cluster })
	})
}

func claimedRemovals(i Input) []Removal {
	i.Removals = map[string]Verdict{}
	return Decide(i).Claims.Removals
}
