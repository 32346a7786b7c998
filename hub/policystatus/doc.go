// Package policystatus writes the status of each policy. For a placement it counts the objects that follow it, by
// state. For an override policy it counts the objects and clusters that its rules match. It also counts the objects of
// each bundle and writes the bundle's status, except the condition Stored. In MemberClusters it writes
// status.operators.
//
// It computes statuses from the bindings. It makes no decision and sends no request to members. It writes a status only
// if the status has changed.
//
//   - A binding whose rows belong to an older decision is treated as not yet reported, so that a missing report never
//     looks like success.
//   - If only the numbers of regions change, they are written at most every ten seconds, because they change with every
//     pod.
//   - A failure of a placement causes one event, and its end another, for any number of objects.
//   - If no object follows a placement, its conditions are Unknown with the reason NothingSelected.
//   - Until the hub has tried to list a kind, it does not know whether the kind can be federated, and the condition
//     Accepted does not change.
//
// There is one controller each for placements, override policies, bundles and operators. A key without a namespace
// names a cluster-scoped object.
package policystatus
