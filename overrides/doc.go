// Package overrides decides how an object differs in one member cluster.
//
// It does no I/O: hub/dispatch hands in the object as it is on the hub, the cluster and the policies that select the
// object, and gets the manifest for that cluster. Equal input gives equal output, whatever the order of the policies.
//   - What never travels is taken off first: of the metadata only name, namespace, labels and annotations are kept, and
//     of these not the keys by which other tools claim an object; the status is the member's.
//   - Rules are applied from the lowest to the highest rank (stage, priority, topology level, number of requirements),
//     so that the later one wins. The Admin stage is the last one and so has the last word on every path that it sets.
//   - Two policies of equal rank that say different things about one path are refused: whatever we chose, one author
//     would be wrong without knowing it. The answer is a priority. Within one policy the order of the rules is the
//     answer.
//   - A rule that cannot be followed fails the whole object for that cluster; half an override is never sent. One whose
//     test is not met is no fault: it is skipped as a whole. The tests that come first look at the object before the
//     rule, or a guard of an image would see the image that the rule sets.
//   - Whatever a rule says comes down to merge patches, operations, parts of images and edits of texts (change.go).
//     What conflicts, what touches a divided number and who set which field are read off these alone.
//   - A fault in a rule for another cluster does no harm here. A fault in a selector does: nobody knows what it
//     selects.
//   - A policy speaks of label and annotation keys one by one, never of the metadata as a whole: what would be lost or
//     brought in by replacing a whole map cannot be read off the policy.
//
// Work and memory are bounded before they are spent (limits.go), because policies come from tenants and may be older
// than the rules of the CRD that refuse the same things.
//
// Texts in string fields are changed as values and then carried over to the nodes that the YAML library keeps of them
// (document.go), so that what is not touched stays as it is written. What that library writes is read again before it
// is believed.
//
// RFC 6902 and RFC 7386 are implemented here, on decoded values, rather than by evanphx/json-patch, which works on
// bytes: its way needs the object encoded, patched and decoded again for every object and cluster (several times the
// cost of the deep copy that is needed anyway), bounds growth only by copy, takes indexes such as "+1", and does not
// tell a list from a map, which conflicts depend on. That library is the oracle of the tests instead: what both accept
// must be equal.
//
// Not decided here: which clusters get the object (placement), who may write a policy (admission), and whether a
// member's schema takes the result (the member).
package overrides
