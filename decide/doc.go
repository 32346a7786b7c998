// Package decide decides on one hub object: which clusters hold it, with how many replicas, and which clusters lose it.
// The package is pure: equal inputs give equal plans. It reads no API server and no clock, and it writes no log.
// hub/schedule gathers the inputs and records the plans. hansectl explains and simulates with the same functions.
//
//   - Decide returns the plan for one object. Replay also returns the steps that led to it.
//   - Fleet.Settle decides on many objects until nothing changes, as if clusters carry the plans out.
//
// Decide chooses the placement to follow, and asks package placement for the clusters. It updates every entry of the
// binding (targets.go), and gives each cluster its share of the replicas (divide.go). It replaces clusters that are
// unreachable or drained (failover.go):
//
//   - An unreadable object keeps its decision. Only a deleted object loses all its copies.
//   - An evicted cluster turns Evicting when other clusters take its place. It turns Absent when they are healthy and
//     it answers.
//   - A copy that a user must confirm to lose stays Present, with its removal shown as held (removals.go). The guard
//     judges; its verdicts are inputs.
//   - A target stays in the list while its cluster may hold a copy. It goes after its row says Withdrawn, or when the
//     cluster is given up.
//
// The limits of the hub on evictions, drains and waits for answers are values in the input. The plan claims the part of
// the limits that it uses, and the leader commits these claims.
//
// This package does not decide whether the copy on a member may be deleted. hub/dispatch and member/apply check the
// copy.
package decide
