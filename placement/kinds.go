package placement

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// anyKind stands for every kind of an API group.
const anyKind = "*"

// actsOnServer has the kinds that work on every API server that stores their objects, such as RBAC roles and webhook
// configurations.
var actsOnServer = map[schema.GroupKind]bool{
	{Group: "rbac.authorization.k8s.io", Kind: anyKind}:    true,
	{Group: "admissionregistration.k8s.io", Kind: anyKind}: true,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:  true,
	{Group: "", Kind: "ResourceQuota"}:                     true,
	{Group: "", Kind: "LimitRange"}:                        true,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:    true,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:    true,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:        true,
}

// workloads has the kinds whose objects lead to pods if the cluster has nodes or a controller-manager, such as
// Deployments.
var workloads = map[schema.GroupKind]bool{
	{Group: "", Kind: "Pod"}:                   true,
	{Group: "", Kind: "ReplicationController"}: true,
	{Group: "apps", Kind: "Deployment"}:        true,
	{Group: "apps", Kind: "StatefulSet"}:       true,
	{Group: "apps", Kind: "DaemonSet"}:         true,
	{Group: "apps", Kind: "ReplicaSet"}:        true,
	{Group: "batch", Kind: "Job"}:              true,
	{Group: "batch", Kind: "CronJob"}:          true,
}

// HubWouldRun reports whether the hub's own cluster would act on an object of this kind. A placement may send such an
// object only with hubExecution: Allowed. hubRunsWorkloads is true if the hub has nodes or a controller-manager. The
// result is false for CustomResourceDefinitions, because the hub must serve the kinds of its objects.
func HubWouldRun(gk schema.GroupKind, hubRunsWorkloads bool) bool {
	if actsOnServer[gk] || actsOnServer[schema.GroupKind{Group: gk.Group, Kind: anyKind}] {
		return true
	}
	return hubRunsWorkloads && workloads[gk]
}

// orphanedByDefault has the kinds whose copies by default stay on the member when the hub withdraws them. If such a
// copy were deleted, objects of other owners would be deleted too.
var orphanedByDefault = map[schema.GroupKind]bool{
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: true,
	{Group: "", Kind: "Namespace"}:                                    true,
}

// DefaultRemoval returns the removal policies for copies of this kind. It replaces empty policies by their defaults.
// whenDeleted applies when the hub object is deleted, and whenUnselected when the placement no longer selects a
// cluster.
func DefaultRemoval(gk schema.GroupKind, p hubv1.DeletionPolicy) (whenDeleted, whenUnselected hubv1.RemovalPolicy) {
	policy := hubv1.RemovalDelete
	if orphanedByDefault[gk] {
		policy = hubv1.RemovalOrphan
	}
	return cmp.Or(p.WhenDeleted, policy), cmp.Or(p.WhenUnselected, policy)
}
