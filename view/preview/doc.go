// Package preview computes the effect of a change of the hub's objects on the copies on members, before the change is
// made. It is pure: equal inputs give equal plans. It reads no API server and no clock, and it writes no log.
//
//   - Make takes the current fleet and the fleet with the change. decide.Fleet.Settle decides on both. So a plan
//     shows the final state of the decisions, without the work that the hub has to do anyway. Next shows this work.
//   - Render renders the manifests of one object by package overrides. A change of a copy is the difference of the two
//     manifests, field by field. Clusters with equal differences form one group.
//   - Package guard judges the removals. If there are too many, it holds them until a user confirms them.
//   - CheckPlacement and CheckOverrides find policies that admission would refuse.
//   - Versions record the inputs of a plan, and Moved returns the inputs that have changed since.
//
// A plan never contains a value of a Secret.
package preview
