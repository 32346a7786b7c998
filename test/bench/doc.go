// Command bench measures Hanse beside a raw client loop, which does the same writes directly on the members. Both do
// their work in one run on the same control planes of the lab: a hub and bare members, which the run starts and stops.
// Further profiles measure the memory for a member, good members beside bad ones, a tenant beside a noisy one, and how
// fast the hub reports a lost member. `bench compare` prints runs side by side. docs/benchmarks.md has the recorded
// figures.
//
// A run does not fail because it is slow. It fails if a copy is missing or differs from the written object.
//
// # What a run does
//
// The object is a Widget of about 1 KiB with a status subresource, which no controller serves.
//
//   - create, update, delete: the user writes all objects at once; create, and update of one field, by server-side
//     apply.
//   - override: one edit of an OverridePolicy changes one field of every copy. The raw loop applies changed objects.
//   - status: an operator, which the benchmark plays, patches the status of every copy at once. Hanse is done when each
//     hub object's status shows all its members.
//   - single create, single status: one object at a time, twenty times, on an idle hub.
//   - cold restart: with all objects in place, the hub process gets SIGTERM and is started again: once undisturbed, and
//     once while the user creates an object.
//
// The raw loop applies to the members with 8 requests in flight to each, as the hub does, and with the hub's token. The
// loop runs before and after each round of Hanse, because machines get slower and faster during a run. The system "hub
// alone" measures the user's writes while no hub process runs. Before each phase, ten objects are written without
// measurement, and the API servers collect their garbage. After each phase all copies are read and compared.
//
// # How to read the tables
//
//   - share of raw: copies per second over those of the raw loop. Hanse counts from the user's first write until a
//     watch of the last member shows the last copy.
//   - p50, p99 of Hanse: the time from the user's write to the copy on the last member. All objects are written at
//     once, so this is mostly the wait for other objects.
//   - settled: the time of the last write to the hub's etcd, Leases aside. A phase ends eleven seconds after it.
//   - all CPU per copy: the CPU time of all processes of the run. others' CPU: the share of all cores used by other
//     processes.
//   - hub writes beyond the user's: writes that the hub's API server made to etcd, per object, without the user's own,
//     Leases and Events. The JSON has them by resource, and Hanse's own count (hanse_hub_writes_total).
//   - etcd puts, etcd bytes: etcd's own counts, as a check on the column before.
//   - member writes, reads per copy: requests about Widgets that the members' API servers answered, watches aside.
//   - in sync after: the time until a restarted process has compared every copy and its queues are empty.
//   - new object during the replay: the time until its copy is on the last member, and the share of copies that the
//     process had compared by then. At 100 % the run was too small for a result.
//
// # Memory
//
// The heap is the lowest heap in use after three garbage collections, when the hub keeps no template unpacked. The heap
// is measured without objects, with all objects, and after a restart. Text in objects consists of random words and
// numbers. With fewer than 2,000 objects the noise of an empty heap is visible.
package main
