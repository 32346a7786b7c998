// Package decide decides on one hub object, the template: which clusters hold it, with how many replicas, and which
// clusters lose it. The package is pure: equal inputs give equal plans. It reads no API server and no clock, and it
// writes no log. hub/schedule gathers the inputs and records the plans. hansectl explains and simulates with the same
// functions.
//
//   - Decide returns the plan for one object. Replay also returns the steps that led to it.
//   - Fleet.Settle decides on many objects until nothing changes, as if clusters carry the plans out.
//
// Decide chooses the placement to follow, and asks package placement for the clusters. It updates every entry of the
// binding (targets.go), and gives each cluster its share of the replicas (divide.go). It replaces clusters that are
// unreachable or drained (failover.go):
//
//   - If a hub object cannot be read, its decision does not change. Only a deleted hub object loses all its copies.
//   - The entry of an evicted cluster becomes Evicting when other clusters replace the cluster. It becomes Absent
//     when the copies on these clusters are healthy and the evicted cluster answers.
//   - A copy whose removal a user must confirm stays Present, and the status shows the removal as held
//     (removals.go). Package guard judges the removals; its verdicts are inputs of a plan.
//   - The entry of a cluster stays in spec.clusters of the binding while the cluster may hold a copy. It is removed
//     after the row of the cluster says Withdrawn, or when a user has abandoned the cluster.
//
// The hub limits how many objects are evicted or drained at the same time, and how long decisions wait for reports of
// clusters. These limits are inputs of a decision. A plan lists in Claims what it uses of the limits. The leader of the
// hub reserves this before it writes the plan.
//
// This package does not decide whether the copy on a member may be deleted. hub/dispatch and member/apply check the
// copy.
package decide
