// Package rollout decides which revision of an object each cluster shall hold. A change of the object reaches the
// clusters in waves.
//
// A revision is one state of the inputs of an object's copies: the object's template and its override rules. Revisions
// are numbered, and a change makes a revision with the next number. Step compares the hub object with the newest
// revision and reads the last reports of the clusters. It returns the revision that each cluster shall hold from now
// on. The caller stores the result in the binding before it writes to members. The caller calls Step again when a
// report, the object or the placement changes, or after Result.Again.
//
// A change goes through these states:
//
//   - The first revision of an object is its baseline. All clusters get it at once.
//   - A change starts at the first wave. The clusters of the wave get it in order of name, at most maxConcurrent at a
//     time. The other clusters keep the revision that they hold.
//   - A cluster passes the gate when it reports the revision as applied and healthy. The wave has passed when all its
//     clusters pass and have passed for soakSeconds. Then the next wave begins, if nothing holds it back: a pause, a
//     missing approval, a closed window, or another object of the placement.
//   - After the last wave the rollout is Complete. With evidence from each wave, the revision counts as passed: it is
//     what a rollback returns to.
//   - A cluster fails when it stays degraded, refuses the revision, or takes too long. More failures than the wave
//     allows stop the change (Failed), or return all clusters to the last revision that passed (RollingBack, then
//     RolledBack).
//   - A second change starts again at the first wave. Clusters that hold an older revision keep it until their wave
//     comes. The revision that it replaces is superseded, unless it has passed or failed.
//   - If only policies change after a rollback or an undo, the change has the template to which the clusters returned.
//
// BindingRollout.Wave names the wave in progress. After a wave has passed, only a new change runs the wave again.
// Clusters that join, return or are resumed after their wave has passed get the revision without a new wave.
//
// A wave waits without a time limit for suspended and cordoned clusters (Target.Kept), which keep their revision. It
// does not wait for clusters that a user skips. If the policy says unreachable: Skip, no wave waits for unreachable
// clusters. A wave waits for an evicted cluster only if the cluster has begun to change: the change itself may have
// made the cluster unreachable, so that its objects fail over.
//
// A manual wave passes only with an approval, if one of its clusters could still get the revision. Approvals are not
// needed for the first revision, for a promotion, and for a return to a revision that has passed (hubv1.RolloutStart).
// A wave that passes records whether one of its clusters was healthy. The revision has passed when each wave that has
// clusters has such evidence.
//
// Step does no I/O and reads no clock. Equal inputs give equal results, whatever the order of the targets. If nothing
// has changed since the last call, the result equals the stored state.
//
// Other packages select the clusters (placement, decide), make a copy from its revision (overrides), and judge the
// health of a copy (member/health).
package rollout
