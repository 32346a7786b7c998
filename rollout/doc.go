// Package rollout decides which revision of an object each cluster holds: it brings a change to the clusters in waves.
//
// A revision is one state of the object's inputs: its template and its override rules. Revisions have numbers, and a
// change has the next one. Step compares the hub object with the newest revision and reads the last reports of the
// clusters. It returns the revision that each cluster shall hold from now on. The caller stores the answer in the
// binding, and only then sends anything. Step is called again when a report, the object or the placement changes, or
// after Result.Again.
//
// The life of a change:
//
//   - The first revision of an object is its baseline. All clusters get it at once.
//   - A change starts at the first wave. The clusters of the wave get it in order of name, at most maxConcurrent at a
//     time. The other clusters keep the revision that they hold.
//   - A cluster passes the gate when it reports the revision as applied and healthy. The wave has passed when all its
//     clusters pass and have passed for soakSeconds. Then the next wave begins, if nothing holds it back: a pause, a
//     missing approval, a closed window, or another object of the placement.
//   - After the last wave the rollout is Complete, and the revision counts as passed: it is what a rollback returns to.
//   - A cluster fails when it stays degraded, refuses the revision, or takes too long. More failures than the wave
//     allows stop the change (Failed), or return all clusters to the last revision that passed (RollingBack, then
//     RolledBack).
//   - A second change starts again at the first wave. Clusters that hold an older revision keep it until their wave
//     comes. The revision that it replaces is superseded, unless it has passed or failed.
//   - If only policies change after a rollback or an undo, the change has the template to which the clusters returned.
//
// The position is the state: BindingRollout.Wave names the wave in progress, and no earlier wave is repeated until the
// next change. Clusters that join, return or are resumed get the revision that their wave has passed.
//
// Waves do not wait for some clusters: suspended and cordoned ones (Target.Kept, which also keep their revision),
// clusters that a user skips, and, if the gate says Skip, unreachable clusters. They wait for a cluster that is evicted
// only if it has begun to change. So a change that brings down a cluster does not go on because its objects fail over.
//
// Step does no I/O and reads no clock. Equal inputs give equal results, whatever the order of the targets. A call
// without a new fact changes nothing.
//
// Other packages select the clusters (placement, decide), make a copy from its revision (overrides), and judge the
// health of a copy (member/health).
package rollout
