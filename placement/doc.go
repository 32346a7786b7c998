// Package placement decides which placement an object follows and which clusters shall hold it.
//
// It does no I/O: package decide makes an Input, and equal Inputs give equal Decisions, whatever the order of the
// clusters. A spec is compiled once and used for many objects; Explain takes the same path as Decide and tells of each
// step.
//
//   - Filters say of each cluster alone whether it may hold the object, the spread chooses among those that may: first
//     what holds the object, then what a constraint lacks, then by score. docs/placement.md shows each, and the tests
//     run what it shows.
//   - What somebody says of a cluster (names, labels, annotations, NoExecute taints, a rule of an override policy that
//     excludes it) or asks of the spread can take an object away from it.
//     What happens to a cluster (not ready, unschedulable, a NoSchedule taint, fewer nodes, a kind that is not served,
//     a namespace that is no longer allowed) only keeps new objects away, so that an outage never moves or deletes
//     anything.
//   - A cluster that was away for longer than its placement tolerates, or is drained, loses the object only to others
//     that take its place, and to nobody while so many are away that the hub may be at fault. Decision.Evict names it;
//     when its copy goes is the caller's business.
//   - A cluster whose MemberCluster is missing is neither kept nor withdrawn; the caller is told.
//   - A spec that cannot be read gives an error and no decision, so that a broken edit is no withdrawal.
//   - Creation times are never compared: a placement restored from a backup gets the same objects as before.
//
// Time is a part of the Input, and Decision.Again says when it alone may change the decision.
//
// Not decided here: shares of replicas, how the object differs per cluster and which of its rules exclude one (package
// overrides), and when it is safe to delete (decide, hub/dispatch).
package placement
