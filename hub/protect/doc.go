// Package protect keeps the ConfigMap by which the API server refuses to delete what many copies come from.
//
// A ValidatingAdmissionPolicy cannot count. So the leader writes the names of the namespaces and
// CustomResourceDefinitions whose objects have more placed copies than the limit, or that have an object with the label
// hanse.dev/deletion-protection. The chart's policy hanse-hub-deletion reads them.
//
//   - The number is told in steps (more than 5, 10, 20, 50, ...), so that a growing namespace costs a write for each
//     step.
//   - Changes are gathered for a second. What the ConfigMap says already is not written: a restart costs no write.
//   - A name stays while the objects of any kind that has copies have not been read: their labels are not known.
//   - The chart makes the ConfigMap. Where it is missing, nothing is protected, and nothing is written.
package protect
