package preview

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

// Version identifies the state of an object from which a plan was made. A stored plan compares Versions to find out
// whether the object has changed since.
type Version struct {
	Object Object `json:"object"`
	// APIVersion is the API version at which the object was read.
	APIVersion      string    `json:"apiVersion"`
	UID             types.UID `json:"uid,omitempty"`
	Generation      int64     `json:"generation,omitempty"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
	// Facts is a digest of inputs that do not change the generation: the labels of an object, and the data that a
	// MemberCluster reports.
	Facts string `json:"facts,omitempty"`
}

// VersionOfCluster returns the state of a MemberCluster as a Version.
func VersionOfCluster(c *hubv1.MemberCluster) Version {
	facts := []any{
		c.SelectableLabels(), c.Annotations, c.Status.Taints, c.IsAway(), c.DeletionTimestamp, c.Status.Version.Kubernetes,
		c.Status.Capacity, c.Status.Allocatable, c.Status.Nodes, c.Status.APIResources, c.Status.Operators,
	}
	v := versionOf(Object{Group: hubv1.GroupVersion.Group, Kind: decide.MemberClusterKind, Name: c.Name}, c)
	v.APIVersion, v.Facts = hubv1.GroupVersion.String(), digest(facts)
	return v
}

// VersionOfPlacement returns the state of a Placement or ClusterPlacement as a Version.
func VersionOfPlacement(p hubv1.PlacementObject) Version { return hubVersion(ofPlacement(p), p) }

// VersionOfOverrides returns the state of an OverridePolicy or ClusterOverridePolicy as a Version.
func VersionOfOverrides(p hubv1.OverridePolicyObject) Version { return hubVersion(ofOverrides(p), p) }

// VersionOfBinding returns the state of a binding as a Version.
func VersionOfBinding(b hubv1.BindingObject) Version {
	kind := "ResourceBinding"
	if b.GetNamespace() == "" {
		kind = "ClusterResourceBinding"
	}
	return hubVersion(Object{Group: hubv1.GroupVersion.Group, Kind: kind, Namespace: b.GetNamespace(), Name: b.GetName()}, b)
}

// VersionOf returns the state of any other object as a Version.
func VersionOf(u *unstructured.Unstructured) Version {
	v := versionOf(objectOf(hubv1.IdentityOf(u)), u)
	v.APIVersion, v.Facts = u.GetAPIVersion(), digest(u.GetLabels())
	return v
}

func hubVersion(o Object, from meta) Version {
	v := versionOf(o, from)
	v.APIVersion = hubv1.GroupVersion.String()
	return v
}

// meta has the methods of metadata that a Version needs.
type meta interface {
	GetUID() types.UID
	GetGeneration() int64
	GetResourceVersion() string
}

func versionOf(o Object, from meta) Version {
	return Version{Object: o, UID: from.GetUID(), Generation: from.GetGeneration(), ResourceVersion: from.GetResourceVersion()}
}

// digest returns a hash of a value's JSON, whose keys are sorted.
func digest(of any) string {
	text, err := json.Marshal(of)
	if err != nil {
		text = fmt.Append(nil, of)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// VersionsOf returns the states of the clusters and policies of a fleet, and of the given objects and their bindings,
// sorted by name.
func VersionsOf(f decide.Fleet, objects []Object) []Version {
	var out []Version
	for _, c := range f.Clusters {
		out = append(out, VersionOfCluster(c))
	}
	for _, p := range f.Placements {
		out = append(out, VersionOfPlacement(p))
	}
	for _, p := range f.Overrides {
		out = append(out, VersionOfOverrides(p))
	}
	wanted := map[Object]bool{}
	for _, o := range objects {
		wanted[o] = true
	}
	for _, o := range f.Objects {
		if !wanted[objectOf(o.Identity())] {
			continue
		}
		if hubv1.BundleOf(o.Object) == nil { // the hub itself does not have the objects of bundles
			out = append(out, VersionOf(o.Object))
		}
		if o.Binding != nil {
			out = append(out, VersionOfBinding(o.Binding))
		}
	}
	slices.SortFunc(out, func(a, b Version) int { return compareObjects(a.Object, b.Object) })
	return out
}

// Objects returns the objects of the plan, each once. It leaves out the refused objects.
func (p Plan) Objects() []Object {
	var out []Object
	for _, r := range p.Removals {
		out = append(out, r.Object)
	}
	for _, m := range p.Moves {
		out = append(out, m.Object)
	}
	for _, c := range p.Creations {
		out = append(out, c.Object)
	}
	for _, c := range p.Changes {
		out = append(out, c.Object)
	}
	for _, problem := range p.Problems {
		out = append(out, problem.Object)
	}
	slices.SortFunc(out, compareObjects)
	return slices.Compact(out)
}

// Difference describes how an object has changed since the plan was made.
type Difference struct {
	Object Object `json:"object"`
	What   string `json:"what"`
}

// Moved returns the objects that have changed since the plan was made. The argument then has the states of the objects
// at that time, and now has their current states.
func Moved(then, now []Version) []Difference {
	var out []Difference
	at := map[Object]Version{}
	for _, v := range now {
		at[v.Object] = v
	}
	for _, old := range then {
		v, there := at[old.Object]
		delete(at, old.Object)
		what := ""
		switch {
		case !there:
			what = "deleted"
		case v.UID != old.UID:
			what = "deleted and created again"
		case v.Generation != old.Generation:
			what = fmt.Sprintf("generation %d, was %d", v.Generation, old.Generation)
		case v.Generation == 0 && v.ResourceVersion != old.ResourceVersion:
			what = "changed"
		case v.Facts != old.Facts:
			what = cmp.Or(factsOf[old.Object.Kind], "labels changed")
		}
		if what != "" {
			out = append(out, Difference{old.Object, what})
		}
	}
	for o := range at {
		out = append(out, Difference{o, "created"})
	}
	slices.SortFunc(out, func(a, b Difference) int { return compareObjects(a.Object, b.Object) })
	return out
}

// factsOf maps a kind to the text that tells what has changed in an object whose generation is still the same. For a
// kind that is not in the map, the text is "labels changed".
var factsOf = map[string]string{decide.MemberClusterKind: "labels, taints or facts changed"}
