package placement

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// anyKind stands for every kind of an API group.
const anyKind = "*"

// actsOnServer are kinds that have an effect on any API server that stores their objects.
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

// workloads are kinds that start pods on an API server with nodes or a controller-manager.
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

// HubWouldRun reports whether the hub's own cluster would act on an object of this kind. A placement of such an object
// needs hubExecution Allowed. hubRunsWorkloads is true if the hub has nodes or a controller-manager.
// CustomResourceDefinitions are exempt, because the hub must serve the kinds that it federates.
func HubWouldRun(gk schema.GroupKind, hubRunsWorkloads bool) bool {
	if actsOnServer[gk] || actsOnServer[schema.GroupKind{Group: gk.Group, Kind: anyKind}] {
		return true
	}
	return hubRunsWorkloads && workloads[gk]
}

// orphanedByDefault are kinds whose deletion also deletes objects of other owners.
var orphanedByDefault = map[schema.GroupKind]bool{
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: true,
	{Group: "", Kind: "Namespace"}:                                    true,
}

// DefaultRemoval returns the removal policies for copies of this kind, with defaults. whenDeleted applies when the hub
// object is deleted, whenUnselected when a cluster is no longer selected.
func DefaultRemoval(gk schema.GroupKind, p hubv1.DeletionPolicy) (whenDeleted, whenUnselected hubv1.RemovalPolicy) {
	policy := hubv1.RemovalDelete
	if orphanedByDefault[gk] {
		policy = hubv1.RemovalOrphan
	}
	return cmp.Or(p.WhenDeleted, policy), cmp.Or(p.WhenUnselected, policy)
}
