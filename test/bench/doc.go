// Command bench compares Hanse with a raw client loop that makes the same writes directly to the members. Both run on
// the same control planes: a hub and bare members of the lab, which exist only for the run. Further profiles measure
// the memory for a member, the effect of bad members on good ones, and the effect of a noisy tenant on another one.
// `bench compare` shows runs side by side. docs/benchmarks.md has the recorded figures.
//
// A slow run does not fail. A run fails if a copy is missing or differs from the written object.
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
//   - cold restart: the hub process gets SIGTERM with everything in place and is started again, once untouched, and
//     once while the user creates an object.
//
// The raw loop applies to the members with 8 requests in flight to each, as the hub does, and with the hub's token. It
// runs before and after each round of Hanse, since machines get slower and faster during a run. The system "hub alone"
// is the user's writes while no hub process runs. Ten objects go ahead unmeasured, and the API servers collect their
// garbage before each phase. After each phase all copies are read back and compared.
//
// # How to read the tables
//
//   - share of raw: copies per second over those of the raw loop. Hanse counts from the user's first write until a
//     watch of the last member shows the last copy.
//   - p50, p99 of Hanse: from sending the user's write to the copy on the last member. All objects are written at once,
//     so that this is mostly the wait for the others.
//   - settled: the time of the last write to the hub's etcd, Leases aside. A phase ends eleven seconds after it.
//   - all CPU per copy: of all processes of the run; others' CPU: the share of cores of all other processes.
//   - hub writes beyond the user's: writes that the hub's API server made to etcd, per object, without the user's own,
//     Leases and Events. The JSON has them by resource, and Hanse's own count (hanse_hub_writes_total).
//   - etcd puts, etcd bytes: etcd's own counts, as a check on the column before.
//   - member writes, reads per copy: requests about Widgets that the members' API servers answered, watches aside.
//   - in sync after: until a restarted process has looked at every copy and its queues are empty.
//   - new object during the replay: until its copy is on the last member, and how many copies the process had looked at
//     then. 100 % means that the run is too small to say anything.
//
// # Memory
//
// The heap is the one that a garbage collection found in use, the least of three, once the hub keeps no template
// unpacked. It is taken without objects, with all of them, and in a process that was started then. Text in objects is
// random words and numbers. With fewer than 2,000 objects the noise of an empty heap shows.
package main
