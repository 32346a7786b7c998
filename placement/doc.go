// Package placement decides which placement an object follows and which clusters shall hold it.
//
// It does no I/O: hub/schedule gathers an Input, and equal Inputs give equal Decisions, whatever the order of the clusters.
//   - What a selection says about a cluster (names, labels, NoExecute taints) can take an object away from it. What happens to a
//     cluster (not ready, unschedulable, a NoSchedule taint, a namespace that is no longer allowed) only keeps new objects away,
//     so that an outage never moves or deletes anything.
//   - A cluster whose MemberCluster is missing is neither kept nor withdrawn; the caller is told.
//   - A selection that cannot be read gives an error and no decision, so that a broken edit is no withdrawal.
//   - Creation times are never compared: a placement restored from a backup gets the same objects as before.
//
// Not decided here: how the object differs per cluster (package overrides), and when it is safe to delete (hub/schedule, hub/dispatch).
package placement
