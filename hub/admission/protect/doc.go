// Package protect writes the ConfigMap that protects namespaces and CustomResourceDefinitions with many copies from
// deletion.
//
// A ValidatingAdmissionPolicy cannot count objects. The leader therefore writes the names of the namespaces and
// CustomResourceDefinitions to protect into the ConfigMap. A namespace or a definition is protected if its objects have
// more placed copies than the limit. It is also protected if one of its objects has the label
// hanse.dev/deletion-protection. The policy hanse-hub-deletion of the chart reads the ConfigMap.
//
//   - The number of copies is written in steps (more than 5, 10, 20, 50, ...), so that a growing namespace causes one
//     write for each step.
//   - Changes are collected for a second. Unchanged content is not written, so that a restart causes no write.
//   - A name is not removed until the objects of all kinds with copies have been read, because their labels are not
//     known before.
//   - The chart creates the ConfigMap. If it is missing, nothing is protected, and nothing is written.
package protect
