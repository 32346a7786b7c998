// Package chaos runs a hub of several replicas and three members on the lab, lets several users edit the hub's objects
// while faults are injected, and judges the result from outside. It uses Hanse's API types and none of its code.
//
// # A round
//
// A run is a sequence of rounds, and round n has the seed of the run plus n. [Plan] returns the steps of a round:
// edits, the beginning and the end of faults, and what people do by hand. A plan depends on its seed and the number of
// replicas alone: its steps set states ("label member-2 tier=dev") whatever was there before, and each fault lasts for
// a number of edits and not for a time. So a seed gives the same steps again. The times at which the steps meet the hub
// differ on each run, as do the answers of the hub.
//
// After the steps, all faults end, and the run waits until the hub is quiet. Then it judges the round:
//
//   - Lost, extra, wrong: [Expected] renders the copies of each member from the hub's objects with code of its own.
//     [Compare] compares them with the objects that the member holds. The run reads the members as an administrator,
//     past the fault proxies.
//   - Deletions: each deletion in the audit log of a member needs a cause of its own for this object and cluster, which
//     [Causes] recorded before the deletion.
//   - Lies: during the steps, samples read a row of a binding and then the member. A row that says Applied while its
//     copy is absent or different, for longer than the hub needs to notice, is a lie.
//   - Leaks: goroutines and live heap of all replicas at the end of the run are near those at its start.
package chaos
