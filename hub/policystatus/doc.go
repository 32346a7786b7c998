// Package policystatus says on each policy what became of it: how many objects follow a placement and how they are, and
// what the rules of an override policy match.
//
// Everything is folded from the bindings, which know; nothing is decided and no member is asked. What a policy says is
// written at most once a second, and only if it changed.
//   - A binding whose rows speak of an older decision counts as not yet reported: silence is never success.
//   - Numbers of regions alone are written every ten seconds at most: they move with every pod.
//   - A trouble of a placement, and its end, are each one event for all its objects.
//   - A policy that nothing follows is neither applied nor healthy: it is Unknown, with the reason NothingSelected.
//   - Whether a kind can be federated is not known until the hub has tried to list it; until then Accepted stays as it
//     was.
//
// Placements and override policies have one controller each; a key without a namespace is a cluster-scoped policy.
package policystatus
