// Command bench measures Hanse beside a raw client loop, which does the same writes directly on the members. Hanse and
// the loop run one after the other on the same control planes of the lab: a hub, and members without controllers. The
// run starts and stops these control planes. Further profiles measure the memory for one more member, good members
// beside bad ones, and one tenant beside a noisy one. They also measure the report of a lost member, and open pages of
// the console. `bench compare` prints runs side by side. docs/benchmarks.md has the recorded figures.
//
// A run does not fail because it is slow. It fails if a copy is missing or differs from the written object.
//
// # What a run does
//
// The benchmark writes Widgets of about 1 KiB. The kind has a status subresource, and no controller reads it.
//
//   - create, update, delete: the user writes all objects at once. A create and an update of one field are server-side
//     applies.
//   - override: one edit of an OverridePolicy changes one field of every copy. The raw loop applies changed objects.
//   - status: the benchmark patches the status of every copy at once, as an operator would. The phase ends when each
//     hub object's status shows all its members.
//   - single create, single status: one object at a time, twenty times, on an idle hub.
//   - cold restart: with all objects in place, the hub process gets SIGTERM and is started again. The user does nothing
//     during the first restart, and creates an object during the second.
//
// The raw loop sends applies to the members with a token of the hub's ServiceAccount. Like the hub, it has 8 requests
// in flight to each member. The loop runs before and after each round of Hanse, because machines get slower and faster
// during a run. The system "hub alone" measures the user's writes while no hub process runs. Each system writes ten
// objects without measurement before its first phase. Before each phase, the API servers run a garbage collection.
// After each phase in which Hanse writes all copies, all copies are read and compared.
//
// # How to read the tables
//
//   - share of raw: copies per second of Hanse divided by those of the raw loop. The time of Hanse ends when a watch of
//     the last member shows the last copy.
//   - p50, p99 of Hanse: the time from the user's write to the copy on the last member. All objects are written at
//     once, so most of this time an object waits for other objects.
//   - settled: the time of the last write to the hub's etcd, except writes of Leases and MemberClusters. A phase ends
//     eleven seconds after this write.
//   - all CPU per copy: the CPU time of all processes of the run. others' CPU: the share of all cores used by other
//     processes.
//   - hub writes beyond the user's: the writes of the hub's API server to etcd, per object. The user's own writes,
//     Leases, Events and MemberClusters are excluded. The JSON has the writes by resource, and also the metric
//     hanse_hub_writes_total.
//   - etcd puts, etcd bytes: the counters of etcd itself, as a check on the column before.
//   - member writes, reads per copy: requests about Widgets that the members' API servers answered, without watches.
//   - in sync after: the time until a restarted process has compared every copy and its queues are empty.
//   - new object during the replay: the replay is the comparison of all copies after a start. The figures are the time
//     until the copy of a new object is on the last member, and the share of copies that the process had compared by
//     then. If the share is 100 %, the run was too small for a result.
//
// # Memory
//
// A template is a hub object in the memory of the hub. Templates are compressed, and are unpacked for some seconds
// after each use. The profile memory measures the heap in use after each of three garbage collections, while no
// template is unpacked, and reports the lowest value. The heap is measured without objects, with all objects, and after
// a restart. Text in objects consists of random words and numbers. With fewer than 2,000 objects, the variation of an
// empty heap is visible in the figures.
package main
