package view

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/view/wire"
)

// Tree shows the objects of a placement or of a bundle, their clusters, and their children on each cluster.
type Tree struct {
	// Placement or Bundle is the root of the tree. One of them is nil.
	Placement *PlacementName `json:"placement,omitempty"`
	Bundle    *PlacementName `json:"bundle,omitempty"`
	// Objects are the displayed objects of the tree. Total is the number of all objects of the placement or bundle.
	Objects []TreeObject `json:"objects"`
	Total   int          `json:"total"`
	// Notes name the data that could not be read from members, by cluster.
	Notes []string `json:"notes,omitempty"`
}

// PlacementName names a placement or a bundle.
type PlacementName struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// TreeObject is one object of the placement or bundle that is the root of the tree.
type TreeObject struct {
	wire.Object
	// Bundle is the bundle that contains the object, such as "Bundle shop/web". It is empty for an object of the hub.
	Bundle string `json:"bundle,omitempty"`
	// Unplaced is true for an object of a bundle if the object has no binding.
	Unplaced bool          `json:"unplaced,omitempty"`
	Clusters []TreeCluster `json:"clusters"`
}

// TreeCluster is the copy of an object on one cluster.
type TreeCluster struct {
	Cluster string `json:"cluster"`
	// State is what the binding wants for the cluster: Present (it shall hold a copy), Absent (it must lose its copy) or
	// Evicting (other clusters replace it).
	State    hubv1.TargetState `json:"state"`
	Applied  string            `json:"applied,omitempty"`
	Health   hubv1.Health      `json:"health,omitempty"`
	Reason   string            `json:"reason,omitempty"`
	Message  string            `json:"message,omitempty"`
	Children []member.Child    `json:"children,omitempty"`
	// Refused is the reason why the hub does not show the objects that controllers on the member created for the copy.
	Refused *wire.Reason `json:"refused,omitempty"`
}

// TreeOf returns the tree of a placement: its objects and their clusters, without children. clusters limits the
// clusters; if it is empty, all are shown. limit is the maximum number of objects.
func TreeOf(placement PlacementName, bindings []hubv1.BindingObject, clusters []string, limit int) Tree {
	return treeOf(Tree{Placement: &placement}, bindings, nil, clusters, limit)
}

// TreeOfBundle returns the tree of a bundle. unplaced are the bundle's objects that have no binding.
func TreeOfBundle(bundle PlacementName, bindings []hubv1.BindingObject, unplaced []hubv1.ObjectIdentity, clusters []string, limit int) Tree {
	return treeOf(Tree{Bundle: &bundle}, bindings, unplaced, clusters, limit)
}

// root returns the placement or the bundle of the tree.
func (t Tree) root() PlacementName {
	if t.Bundle != nil {
		return *t.Bundle
	}
	return *t.Placement
}

func treeOf(t Tree, bindings []hubv1.BindingObject, unplaced []hubv1.ObjectIdentity, clusters []string, limit int) Tree {
	t.Objects, t.Total = []TreeObject{}, len(bindings)+len(unplaced)
	for _, id := range unplaced {
		t.Objects = append(t.Objects, TreeObject{Object: wire.ObjectOf(id), Unplaced: true})
	}
	for _, b := range bindings {
		o := TreeObject{Object: wire.ObjectOf(hubv1.ObjectOf(b)), Bundle: BundleOf(b.BindingSpec().ObjectRef)}
		for _, target := range b.BindingSpec().Clusters {
			if len(clusters) > 0 && !slices.Contains(clusters, target.Name) {
				continue
			}
			c := TreeCluster{Cluster: target.Name, State: target.State}
			if row := b.BindingStatus().Row(target.Name); row != nil {
				c.Applied, c.Health, c.Reason, c.Message = string(row.Applied), row.Health, row.Reason, row.Message
			}
			o.Clusters = append(o.Clusters, c)
		}
		slices.SortFunc(o.Clusters, func(a, b TreeCluster) int { return cmp.Compare(a.Cluster, b.Cluster) })
		t.Objects = append(t.Objects, o)
	}
	slices.SortFunc(t.Objects, func(a, b TreeObject) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	t.Objects = t.Objects[:min(len(t.Objects), limit)]
	return t
}

// On returns the objects of the tree that have a copy on the given cluster.
func (t Tree) On(cluster string) []wire.Object {
	var out []wire.Object
	for _, o := range t.Objects {
		for _, c := range o.Clusters {
			if c.Cluster == cluster {
				out = append(out, o.Object)
			}
		}
	}
	return out
}

// Clusters returns the clusters that hold one of the objects, sorted.
func (t Tree) Clusters() []string {
	var out []string
	for _, o := range t.Objects {
		for _, c := range o.Clusters {
			out = append(out, c.Cluster)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Grow adds the children of objects on a cluster. found has the children, by object.
func (t Tree) Grow(cluster string, found []wire.ObjectChildren) {
	of := map[wire.Object]wire.ObjectChildren{}
	for _, f := range found {
		of[f.Object] = f
	}
	for i := range t.Objects {
		for j := range t.Objects[i].Clusters {
			if c := &t.Objects[i].Clusters[j]; c.Cluster == cluster {
				if f, asked := of[t.Objects[i].Object]; asked {
					c.Children, c.Refused = f.Children, f.Refused
				}
			}
		}
	}
}

// Write writes the tree.
func (t Tree) Write(w io.Writer, _ time.Time) {
	root := t.root()
	fmt.Fprintln(w, printable(fmt.Sprintf("%s %s", root.Kind, qualified(root.Namespace, root.Name))))
	var below []branch
	for _, o := range t.Objects {
		if t.Bundle != nil {
			o.Bundle = "" // the bundle is the root of the tree
		}
		below = append(below, o.branch(root.Namespace))
	}
	if more := t.Total - len(t.Objects); more > 0 {
		below = append(below, branch{text: fmt.Sprintf("and %d more: see --limit", more)})
	}
	grow(w, "", below)
	for _, n := range t.Notes {
		line(w, "Note", n)
	}
}

// branch is one line of the printed tree, with the lines below it.
type branch struct {
	text  string
	below []branch
}

func grow(w io.Writer, indent string, branches []branch) {
	for i, b := range branches {
		fork, next := "├─ ", "│  "
		if i == len(branches)-1 {
			fork, next = "└─ ", "   "
		}
		fmt.Fprintln(w, indent+fork+printable(b.text))
		grow(w, indent+next, b.below)
	}
}

// branch returns the branch of an object. It omits the namespace if the root has the same one.
func (o TreeObject) branch(namespace string) branch {
	name := o.Name
	if o.Namespace != namespace {
		name = qualified(o.Namespace, o.Name)
	}
	b := branch{text: o.Kind + " " + name + bundleIn(o.Bundle)}
	if o.Unplaced {
		b.below = []branch{{text: "no placement selects it"}}
	}
	for _, c := range o.Clusters {
		b.below = append(b.below, c.branch())
	}
	return b
}

func (c TreeCluster) branch() branch {
	words := []string{c.Cluster}
	switch {
	case c.State == hubv1.TargetAbsent:
		words = append(words, "being withdrawn")
	case c.Applied == "":
		words = append(words, "nothing reported yet")
	case c.Applied != "True":
		words = append(words, "Applied="+c.Applied)
	}
	if c.State == hubv1.TargetEvicting {
		words = append(words, "evicting")
	}
	words = append(words, string(c.Health))
	if c.Reason != "" && c.Reason != hubv1.ReasonApplied {
		words = append(words, strings.TrimSuffix(c.Reason+": "+c.Message, ": "))
	}
	below := branches(c.Children)
	if c.Refused != nil {
		below = append(below, branch{text: "not shown: " + c.Refused.Message})
	}
	return branch{text: join(words), below: below}
}

func branches(children []member.Child) []branch {
	var out []branch
	for _, c := range children {
		out = append(out, branch{text: join([]string{c.Kind + " " + c.Name, string(c.Health), c.State}), below: branches(c.Children)})
	}
	return out
}

func join(words []string) string {
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), gap)
}

func qualified(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
