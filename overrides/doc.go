// Package overrides determines how an object differs in one member cluster.
//
// The package does no I/O. hub/dispatch passes the hub object (the template), the cluster and the policies that select
// the object, and gets the manifest for that cluster. Equal input gives equal output, independent of the order of the
// policies.
//
//   - Data that must not leave the hub is removed first. Of the metadata only name, namespace, labels and annotations
//     stay, without the keys by which other tools claim an object. The status is removed too.
//   - Rules are applied from the lowest to the highest rank (stage, priority, topology level, number of requirements),
//     so that the rule with the highest rank wins. The Admin stage comes last, so it wins on every path that it sets.
//   - Two policies of equal rank that disagree about one path are refused: either choice would silently break one of
//     them. A priority resolves the conflict. Within one policy the later rule wins.
//   - If a rule cannot be applied, the whole object fails for that cluster, because a part of an override is never
//     sent. A rule whose test fails is no error: the whole rule is skipped. Tests at the beginning of a rule see the
//     object before the rule. Otherwise a test of an image would see the image that the rule sets.
//   - Every rule is compiled to merge patches, operations, image parts and text edits (change.go). All else is derived
//     from these: conflicts, changes of divided numbers, and the author of each field.
//   - A fault in a rule for another cluster has no effect here. A fault in a selector has an effect on every cluster,
//     because the selection of the rule is then unknown.
//   - A policy changes label and annotation keys one by one, never the metadata as a whole. The effect of replacing a
//     whole map could not be derived from the policy.
//
// Users write policies for the objects in their namespaces. Work and memory are therefore limited before a rule is
// applied (limits.go). The CRD has validation rules with the same limits, but a policy may be older than these rules.
//
// A rule can change a document in a string field, such as YAML in a ConfigMap. The document is decoded, and the rule
// changes the decoded value. The differences are then applied to the nodes of the YAML library (document.go), so that
// unchanged parts keep their formatting. The new text is parsed again and compared with the value.
//
// This package implements RFC 6902 (JSON patch) and RFC 7386 (merge patch) on decoded values. The library
// evanphx/json-patch works on bytes: every object would be encoded, patched and decoded for every cluster. That costs
// several times as much as the deep copy that this package makes. The library limits only growth by copy operations,
// accepts indexes such as "+1", and does not distinguish a list from a map. The detection of conflicts needs this
// distinction. Tests compare the results with that library: where both accept a patch, the results must be equal.
//
// Other packages determine which clusters get the object (placement), who may write a policy (admission), and whether a
// member's schema accepts the result (member).
package overrides
