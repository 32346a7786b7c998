// Package placement decides which placement an object follows and which clusters shall hold it.
//
// The package does no I/O: package decide makes an Input. Equal Inputs give equal Decisions, whatever the order of the
// clusters. A spec is compiled once and used for many objects. Explain decides in the same way as Decide, and records
// each step.
//
//   - Filters decide for each cluster separately whether it may hold the object. The spread chooses among the remaining
//     clusters: first those that hold the object, then those that a constraint needs, then by score. docs/placement.md
//     shows each step with examples that the tests run.
//   - Settings of users can remove an object from a cluster: names, labels, annotations, NoExecute taints, an excluding
//     rule of an override policy, the spread. Events of a cluster only keep new objects away: not ready, unschedulable,
//     a NoSchedule taint, fewer nodes, a kind not served, a namespace no longer allowed. None of these events removes
//     the object from a cluster.
//   - A cluster that is unreachable for longer than the placement tolerates loses the object only if other clusters
//     replace the cluster. The same applies to a drained cluster, unless the drain has evict: true. While too many
//     clusters are unreachable at once, the decision replaces no further unreachable cluster, unless it is drained: the
//     hub may be at fault. Decision.Evict names each replaced cluster; the caller decides when its copy is removed.
//   - A cluster without a MemberCluster is neither kept nor withdrawn; the Decision names it.
//   - An unreadable spec gives an error and no decision, so that a broken edit withdraws nothing.
//   - Creation times are never compared: a placement restored from a backup gets the same objects as before.
//
// The Input contains the current time. Decision.Again is the time after which the decision may change although no input
// changes.
//
// Other packages have other tasks. Package replicas divides replicas, and package overrides renders the object for each
// cluster and evaluates rules that exclude clusters. Packages decide and hub/dispatch decide when a deletion is safe.
package placement
