package v1alpha1

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// HubObject has the data of a hub object that determine which version and state of it a cluster shall hold.
//
// +kubebuilder:object:generate=false
type HubObject struct {
	// GVK is the group, version and kind with which the hub reads the object.
	GVK schema.GroupVersionKind
	// OtherVersions are other versions of the kind that may be sent to clusters that do not serve the version in GVK, in
	// order of preference.
	OtherVersions []string
	// Generation of the hub object. It is 0 if the object is not known.
	Generation int64
	// Revisions are the stored revisions of the object. Only their numbers and generations are used here.
	Revisions []ObjectRevision
}

// HubObjectOf returns the HubObject for a hub object. ref is the reference in its binding, and template is the object
// itself, or nil if it is not known. OtherVersions is empty.
func HubObjectOf(ref ObjectReference, template *unstructured.Unstructured) HubObject {
	if template == nil {
		return HubObject{GVK: ref.GroupVersionKind()}
	}
	return HubObject{GVK: template.GroupVersionKind(), Generation: template.GetGeneration()}
}

// CopyVersion returns the version at which a cluster gets the object. served are the versions that the cluster serves.
// It prefers the version at which the hub reads the object, and then the first of OtherVersions that the cluster
// serves. It returns "" if the cluster serves none of these.
func (o HubObject) CopyVersion(served []string) string {
	if slices.Contains(served, o.GVK.Version) {
		return o.GVK.Version
	}
	for _, version := range o.OtherVersions {
		if slices.Contains(served, version) {
			return version
		}
	}
	return ""
}

// Want is the state of the hub object that one cluster shall hold.
//
// +kubebuilder:object:generate=false
type Want struct {
	// Generation of the hub object that the cluster shall hold. It is 0 if the object is not known.
	Generation int64
	// Revision is the number of the revision that the cluster shall hold. It is 0 for the newest state.
	Revision int64

	object HubObject
	leaves bool // the cluster shall lose its copy
}

// Wanted returns the state of a hub object that a cluster shall hold. t is the entry of the cluster in spec.clusters of
// the binding. The state is the revision that t names, or otherwise the newest generation. Every comparison of a copy
// with its hub object uses this function.
func Wanted(t BindingTarget, o HubObject) Want {
	w := Want{Generation: o.Generation, Revision: t.Revision, object: o, leaves: t.State == TargetAbsent}
	for _, r := range o.Revisions {
		if r.Number == t.Revision {
			w.Generation = r.Generation
		}
	}
	return w
}

// IsHeld reports whether a copy with this generation and revision of the hub object is the wanted copy. If the hub
// object is not known and no revision is wanted, it returns true.
func (w Want) IsHeld(generation, revision int64) bool {
	if w.Revision != 0 {
		return revision == w.Revision
	}
	return w.Generation == 0 || generation == w.Generation
}

// At returns the group, version and kind at which the cluster c holds the object. c is nil if the cluster is not known.
// If the cluster shall lose its copy, any version that the cluster serves is suitable. If no served version is suitable
// or known, At returns the version at which the hub reads the object.
func (w Want) At(c *MemberCluster) schema.GroupVersionKind {
	gvk := w.object.GVK
	if c == nil {
		return gvk
	}
	served := c.ServedVersions(gvk.GroupKind())
	switch version := w.object.CopyVersion(served); {
	case version != "":
		gvk.Version = version
	case w.leaves && len(served) > 0:
		gvk.Version = served[0]
	}
	return gvk
}

// ServedVersions returns the versions at which the cluster serves a kind. It returns none if the cluster does not serve
// the kind or has not reported it.
func (c *MemberCluster) ServedVersions(kind schema.GroupKind) []string {
	for _, served := range c.Status.APIResources {
		if served.Group == kind.Group && served.Kind == kind.Kind {
			return served.Versions
		}
	}
	return nil
}
