// Package replicas decides how many replicas each cluster of a placement gets, and where in an object that number is.
//
// It does no I/O: equal inputs give equal shares, whatever the order of the clusters.
//   - Every cluster gets its exact share rounded down or up (largest remainder), and the sum is the total or, if there
//     is less room, the room.
//   - Of the shares that allow for that, those are taken that move the fewest replicas. Ties break by name.
//   - What the clusters have no room for is reported, never squeezed in.
//
// Users who come from KubeFed can divide by its own planner (kubefed.go), which promises less.
//
// Not decided here: which clusters there are to divide between, when a changed capacity is believed, and what a share
// of nothing means for a cluster that does not hold the object (decide). The capacity of a cluster is what its
// nodes can allocate. What other objects use of it is not known.
package replicas
