// Package crd decides what a CustomResourceDefinition (a definition) promises to clusters: at which versions an object
// may be sent, and whether a new definition would break objects or clusters that use the old one.
//
// Versions: without a conversion webhook, an API server changes only the apiVersion, and prunes by the schema of the
// version. So an object that was read at one version can be sent at another one by changing only the apiVersion. A
// version that declares a field which the read version lacks is not used: the hub would not see the field, and would
// remove it from copies. Whether a cluster's own schema has all fields of an object, member/openapi decides.
//
// Upgrades:
//
//   - The old and the new definition are compared version by version, by the rules of sigs.k8s.io/crdify. A change of a
//     field that a live object sets blocks the upgrade. The same change of a field that no live object sets is a
//     warning.
//   - Each live object is pruned, defaulted and validated by both definitions, as an API server does on creation. An
//     error counts only if the old definition accepts the object.
//   - The new definition must serve each version at which a cluster stores objects, or at which the hub sends an
//     object. A stored version that no definition of the hub has had is only a warning, because a member can invent
//     versions.
//   - A change of the scope, group, kind, plural name or conversion strategy always blocks the upgrade.
//   - An acknowledgement by a user allows one blocked change. There is no setting that allows all changes.
//
// The status of objects is ignored, because the hub does not send it. Changes of defaults are warnings, because a
// default applies only to objects that do not set the field.
//
// Messages of findings contain names, paths and texts of the definitions, but no values of objects. Users who may not
// read the objects may therefore read the findings. If a messageExpression of the definition computes a message, this
// message counts as a text of the definition.
package crd
