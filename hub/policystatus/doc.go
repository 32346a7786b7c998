// Package policystatus writes the status of each policy. For a placement it counts the objects that follow it, by
// state. For an override policy it counts the objects and clusters that its rules match. It also writes the status of
// each bundle, except the condition Stored: it counts the objects of the bundle. In MemberClusters it writes
// status.operators.
//
// It computes everything from the bindings, makes no decision and sends no request to members. A status is written only
// if it changed.
//
//   - A binding whose rows belong to an older decision counts as not yet reported: a missing report is never success.
//   - Numbers of regions alone are written every ten seconds at most, because they change with every pod.
//   - A failure of a placement, and its end, are one event each for all its objects.
//   - A policy without objects is neither applied nor healthy: the conditions are Unknown, with the reason
//     NothingSelected.
//   - Whether a kind can be federated is not known until the hub has tried to list it; until then Accepted does not
//     change.
//
// Placements, override policies and bundles have one controller each. A key without a namespace is a cluster-scoped
// object.
package policystatus
