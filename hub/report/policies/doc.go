// Package policies writes the status of each policy. For a placement, it counts, by state, the objects that follow
// the placement (for which this placement decides). For an override policy, it counts the objects and clusters that
// each rule selects. It also writes the status of bundles and operators, except for the parts that hub/bundles writes.
// In MemberClusters, it writes status.operators.
//
// The package computes statuses from the bindings. It decides nothing about copies and sends no request to members. It
// writes a status only if the status has changed.
//
//   - A binding whose rows belong to an older decision is treated as not yet reported, so that a missing report never
//     looks like success.
//   - If only the numbers by region change, they are written at most every ten seconds, because they change with every
//     pod.
//   - A failure of a placement causes one event, and the end of the failure causes another event, whatever the number
//     of objects.
//   - If no object follows a placement, its conditions are Unknown with the reason NothingSelected.
//   - A held removal is one of too many removals of copies, which wait for a user's confirmation. The package gets them
//     from hub/schedule.
//   - Until the hub has tried to list a kind, it does not know whether the kind can be federated. Until then, the
//     condition Accepted does not change.
//
// There is one controller each for placements, override policies, bundles and operators. A key in the queue of a
// controller is the namespace and name of an object. A key without a namespace is a cluster-scoped object.
package policies
