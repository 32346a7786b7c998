package decide

import "slices"

// RemovalsOfEdit returns the removals of copies that Decide plans for the input after, but not for the input before.
// Both inputs are about the same object. RemovalsOfEdit decides as if package guard had not judged any removal yet.
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
