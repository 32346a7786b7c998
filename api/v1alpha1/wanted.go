package v1alpha1

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// HubObject has the data of a hub object that determine which copies clusters shall hold.
//
// +kubebuilder:object:generate=false
type HubObject struct {
	// GVK is the group, version and kind at which the hub reads the object.
	GVK schema.GroupVersionKind
	// OtherVersions are the other versions at which clusters may get the object, in the order of preference.
	OtherVersions []string
	// Generation is 0 if the object is not known.
	Generation int64
	// Revisions that targets may name. Only their numbers and generations are used here.
	Revisions []ObjectRevision
}

// HubObjectOf returns the hub object of a binding without other versions. template is nil if the object is not known.
func HubObjectOf(ref ObjectReference, template *unstructured.Unstructured) HubObject {
	if template == nil {
		return HubObject{GVK: ref.GroupVersionKind()}
	}
	return HubObject{GVK: template.GroupVersionKind(), Generation: template.GetGeneration()}
}

// CopyVersion returns the version at which a cluster gets the object if it serves the kind at the given versions: the
// hub's version, or otherwise the first of the other versions that it serves. It is empty if the cluster serves none of
// them.
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

// Want is the state of the hub object that a target of a decision shall hold.
//
// +kubebuilder:object:generate=false
type Want struct {
	// Generation of the hub object. It is 0 if the object is not known.
	Generation int64
	// Revision of the object. It is 0 for the newest state.
	Revision int64

	object HubObject
	leaves bool // the cluster shall lose its copy
}

// Wanted returns the state of a hub object that a target shall hold: the revision that the target names, or otherwise
// the newest generation. Each comparison of a cluster's copy with the hub object uses this function.
func Wanted(t BindingTarget, o HubObject) Want {
	w := Want{Generation: o.Generation, Revision: t.Revision, object: o, leaves: t.State == TargetAbsent}
	for _, r := range o.Revisions {
		if r.Number == t.Revision {
			w.Generation = r.Generation
		}
	}
	return w
}

// IsHeld reports whether a copy with this generation and revision of the hub object is the wanted copy. It returns true
// if the hub object is not known.
func (w Want) IsHeld(generation, revision int64) bool {
	if w.Revision != 0 {
		return revision == w.Revision
	}
	return w.Generation == 0 || generation == w.Generation
}

// At returns the group, version and kind at which a cluster holds the object. c is nil if the cluster is not known. A
// copy that must be removed may have any version that the cluster serves. If the cluster serves no suitable version, or
// has not reported its versions, At returns the hub's version.
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

// ServedVersions returns the versions at which the cluster serves a kind. It returns none if this is not known.
func (c *MemberCluster) ServedVersions(kind schema.GroupKind) []string {
	for _, served := range c.Status.APIResources {
		if served.Group == kind.Group && served.Kind == kind.Kind {
			return served.Versions
		}
	}
	return nil
}
