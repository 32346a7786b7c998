// Package replicas decides how many replicas each cluster of a placement gets, and which field of an object has that
// number.
//
// The package does no I/O. Equal inputs give equal shares, whatever the order of the clusters.
//
//   - Every cluster gets its exact share, rounded down or up (largest remainder). If the clusters have room for the
//     total, the shares add up to the total. Otherwise they add up to the room.
//   - If several divisions are possible, the package takes the one that moves the fewest replicas. If they are still
//     equal, the cluster names decide.
//   - Replicas without room are reported, never placed.
//
// Users of KubeFed can choose KubeFed's own planner (kubefed.go) for the division. This planner does not guarantee
// exact shares, the fewest moved replicas, or that replicas without room are reported.
//
// Package decide selects the clusters, waits until a changed capacity is stable, and handles a share of 0 for a cluster
// that does not hold the object. The capacity of a cluster is the allocatable amount of its nodes. Requests of other
// objects are not subtracted.
package replicas
