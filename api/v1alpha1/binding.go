package v1alpha1

import (
	"sort"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// MaxTargets is the maximum number of clusters that hold one object.
	MaxTargets = 2000
	// MaxEntries is the maximum number of entries in spec.clusters of a binding, and of rows in its status. The entries
	// above MaxTargets are for clusters that other clusters replace, and for clusters that lose their copies.
	MaxEntries = 2200
)

// BindingObject is a ResourceBinding or a ClusterResourceBinding.
//
// +kubebuilder:object:generate=false
type BindingObject interface {
	metav1.Object
	runtime.Object
	// BindingSpec returns the spec. It has the hub's decision: which clusters shall hold the object.
	BindingSpec() *BindingSpec
	// BindingStatus returns the status. It has one row for each cluster, and the conditions.
	BindingStatus() *BindingStatus
}

var (
	_ BindingObject = &ResourceBinding{}
	_ BindingObject = &ClusterResourceBinding{}
)

// BindingSpec implements BindingObject.
func (b *ResourceBinding) BindingSpec() *BindingSpec { return &b.Spec }

// BindingStatus implements BindingObject.
func (b *ResourceBinding) BindingStatus() *BindingStatus { return &b.Status }

// BindingSpec implements BindingObject.
func (b *ClusterResourceBinding) BindingSpec() *BindingSpec { return &b.Spec }

// BindingStatus implements BindingObject.
func (b *ClusterResourceBinding) BindingStatus() *BindingStatus { return &b.Status }

// NewBinding returns an empty binding. It is a ClusterResourceBinding if the key has no namespace.
func NewBinding(key types.NamespacedName) BindingObject {
	meta := metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
	if key.Namespace == "" {
		return &ClusterResourceBinding{ObjectMeta: meta}
	}
	return &ResourceBinding{ObjectMeta: meta}
}

// ObjectOf returns the identity of the hub object to which a binding belongs.
func ObjectOf(b BindingObject) ObjectIdentity {
	ref := b.BindingSpec().ObjectRef
	gvk := ref.GroupVersionKind()
	return ObjectIdentity{Group: gvk.Group, Kind: gvk.Kind, Namespace: b.GetNamespace(), Name: ref.Name}
}

// GroupVersionKind returns the group, version and kind of the object.
func (r ObjectReference) GroupVersionKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
}

// Left returns the copy that the hub left on the cluster with this ID when it withdrew the object. It returns nil if
// the hub left no copy there.
func (s *BindingStatus) Left(clusterID string) *OrphanedCopy {
	for i := range s.Orphaned {
		if s.Orphaned[i].ClusterID == clusterID {
			return &s.Orphaned[i]
		}
	}
	return nil
}

// Target returns the entry of a cluster in the decision. It returns nil if the decision has no entry for the cluster.
func (s *BindingSpec) Target(cluster string) *BindingTarget {
	if i := indexByName(s.Clusters, cluster, func(t *BindingTarget) string { return t.Name }); i >= 0 {
		return &s.Clusters[i]
	}
	return nil
}

// indexByName returns the index of the item with this name, or -1 if there is none. The hub writes these lists sorted
// by name, so a binary search finds most items. An edited list may have another order.
func indexByName[T any](list []T, name string, nameOf func(*T) string) int {
	at := sort.Search(len(list), func(i int) bool { return nameOf(&list[i]) >= name })
	if at < len(list) && nameOf(&list[at]) == name {
		return at
	}
	for i := range list {
		if nameOf(&list[i]) == name {
			return i
		}
	}
	return -1
}

// Returns reports whether the cluster has to remove the copy of an earlier hub object of the same name, and then gets a
// copy of the present one.
func (t BindingTarget) Returns() bool {
	return t.State == TargetAbsent && t.Absent != nil && t.Absent.Reason == ReasonMadeAnew
}

// Holders returns the names of the clusters that shall hold or still hold a copy: all except those with the state
// Absent.
func (s *BindingSpec) Holders() []string {
	var out []string
	for _, t := range s.Clusters {
		if t.State != TargetAbsent {
			out = append(out, t.Name)
		}
	}
	return out
}

// Revision returns the stored state of the hub object with this number. It returns nil if the binding does not list the
// revision.
func (s *BindingSpec) Revision(number int64) *ObjectRevision {
	for i := range s.Revisions {
		if s.Revisions[i].Number == number {
			return &s.Revisions[i]
		}
	}
	return nil
}

// Row returns the row of a cluster: the state of its copy. It returns nil if the binding has no row for the cluster.
func (s *BindingStatus) Row(cluster string) *ClusterRow {
	if i := indexByName(s.Clusters, cluster, func(r *ClusterRow) string { return r.Name }); i >= 0 {
		return &s.Clusters[i]
	}
	return nil
}
