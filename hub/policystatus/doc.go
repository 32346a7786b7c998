// Package policystatus writes the status of each policy: how many objects follow a placement and in which state they
// are, and which objects and clusters the rules of an override policy match.
//
// It computes everything from the bindings; it decides nothing and asks no member. A status is written only if it
// changed.
//   - A binding whose rows speak of an older decision counts as not yet reported: silence is never success.
//   - Numbers of regions alone are written every ten seconds at most: they move with every pod.
//   - A trouble of a placement, and its end, are each one event for all its objects.
//   - A policy that nothing follows is neither applied nor healthy: it is Unknown, with the reason NothingSelected.
//   - Whether a kind can be federated is not known until the hub has tried to list it; until then Accepted stays as it
//     was.
//
// Placements and override policies have one controller each; a key without a namespace is a cluster-scoped policy.
package policystatus
