// Package plan computes what a change of the hub's objects does to the copies on members, before the change is made.
// It is pure: equal inputs give equal plans. It reads no API server and no clock, and it writes no log.
//
//   - Make takes the fleet as the hub has it and the fleet with the change. decide.Fleet.Settle decides on both, so
//     that a plan shows the state in which the decisions end, and not the work that the hub has to do anyway.
//   - Render makes the manifests of one object by package overrides. A change of a copy is the difference of the two
//     manifests, field by field. Equal differences of several clusters are one group.
//   - Package guard judges the removals. CheckPlacement and CheckOverrides say which policies admission would refuse.
//   - Versions say from what a plan was made, and Moved says what differs since.
//
// A plan has no value of a Secret.
package plan
