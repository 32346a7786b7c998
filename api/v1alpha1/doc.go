// Package v1alpha1 contains the API of Hanse, group hanse.dev.
//
//   - MemberCluster: one cluster that receives objects, and how it is reached.
//   - Placement, ClusterPlacement: which objects go to which clusters.
//   - OverridePolicy, ClusterOverridePolicy: how an object differs in which clusters.
//   - NotificationSink: a receiver of the hub's events.
//   - ResourceBinding, ClusterResourceBinding: written by the hub, one per federated object: the
//     decision with its reasons and one status row per cluster.
//
// A namespaced kind and its cluster-scoped counterpart, such as Placement and ClusterPlacement, have the same status
// type. Their specs share all fields of the namespaced kind. Code for both kinds uses the interfaces PlacementObject,
// OverridePolicyObject and BindingObject.
//
// +kubebuilder:object:generate=true
// +groupName=hanse.dev
package v1alpha1
