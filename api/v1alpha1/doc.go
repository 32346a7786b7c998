// Package v1alpha1 contains the API of Hanse, group hanse.dev.
//
//   - MemberCluster: one cluster that receives objects, and how the hub reaches it.
//   - Placement, ClusterPlacement: which objects go to which clusters.
//   - Bundle, ClusterBundle: objects that clusters get although the hub does not have them.
//   - FederatedOperator: an operator that the hub installs on clusters from a Helm chart or manifests.
//   - OverridePolicy, ClusterOverridePolicy: which fields of an object differ on which clusters.
//   - NotificationSink: a receiver of the hub's events.
//   - ResourceBinding, ClusterResourceBinding: the decision on one object with its reasons, and one status row per
//     cluster. Only the hub writes them.
//   - SetRollout: which revision of a bundle each cluster holds. Only the hub writes it.
//
// A namespaced kind and its cluster-scoped counterpart, such as Placement and ClusterPlacement, have the same status
// type. Their specs share all fields of the namespaced kind. Code for both kinds uses the interfaces PlacementObject,
// OverridePolicyObject and BindingObject.
//
// +kubebuilder:object:generate=true
// +groupName=hanse.dev
package v1alpha1
