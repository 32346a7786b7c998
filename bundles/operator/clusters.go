package operator

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/rollup"
)

// Stored is an object that the hub has stored for an operator, with the binding of the object.
type Stored struct {
	hubv1.ObjectIdentity
	// Binding is the binding of the object. It is nil if the object has no binding.
	Binding hubv1.BindingObject
	// NotOn reports whether a cluster shall hold a revision of the bundle that does not have the object. The object then
	// does not count on this cluster. If NotOn is nil, the object counts on all clusters.
	NotOn func(cluster string) bool
}

// NotInRevision returns the NotOn of an object from its binding, for callers that cannot read the revisions of the
// bundle.
func NotInRevision(b hubv1.BindingObject) func(cluster string) bool {
	var rejected []string
	if d := b.BindingStatus().Decision; d != nil {
		for _, r := range d.Rejected {
			if r.Reason == hubv1.ReasonNotInRevision {
				rejected = append(rejected, r.Examples...)
			}
		}
	}
	return func(cluster string) bool {
		t := b.BindingSpec().Target(cluster)
		if t != nil {
			return t.State == hubv1.TargetAbsent && t.Absent != nil && t.Absent.Reason == hubv1.ReasonNotInRevision
		}
		return slices.ContainsFunc(rejected, func(example string) bool { return strings.HasPrefix(example, cluster+":") })
	}
}

// Cluster is a cluster on which an operator is placed.
type Cluster struct {
	Name string
	// WaitsFor says why the operator is not ready on the cluster. It is empty if the operator is ready.
	WaitsFor string
}

// Clusters returns the clusters on which an operator is placed, sorted by name. objects are the objects of the
// operator. Their bindings name the clusters.
func Clusters(objects []Stored) []Cluster {
	on := map[string][]Object{}
	for _, o := range objects {
		if o.Binding == nil || !Needs(o.ObjectIdentity) {
			continue
		}
		for _, t := range o.Binding.BindingSpec().Clusters {
			if t.State != hubv1.TargetAbsent {
				on[t.Name] = nil
			}
		}
	}
	for _, o := range objects {
		o.addTo(on)
	}
	var out []Cluster
	for name, here := range on {
		out = append(out, Cluster{Name: name, WaitsFor: WaitsFor(here)})
	}
	slices.SortFunc(out, func(a, b Cluster) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// addTo adds this object to the list of each cluster in the map, with the state of its copy on this cluster.
func (s Stored) addTo(clusters map[string][]Object) {
	here := make(map[string]Object, len(clusters))
	if s.Binding != nil {
		for _, t := range s.Binding.BindingSpec().Clusters {
			here[t.Name] = Object{Placed: t.State != hubv1.TargetAbsent}
		}
		for _, row := range s.Binding.BindingStatus().Clusters {
			o := here[row.Name]
			o.Health, o.Message = row.Health, row.Message
			if row.Applied != metav1.ConditionTrue {
				o.Health = hubv1.HealthUnknown
			}
			o.Refused = IsRefused(row)
			here[row.Name] = o
		}
	}
	for name := range clusters {
		if s.NotOn != nil && s.NotOn(name) {
			continue
		}
		o := here[name]
		o.ObjectIdentity = s.ObjectIdentity
		clusters[name] = append(clusters[name], o)
	}
}

// IsRefused reports whether the row is of a copy that the hub cannot write until a user changes something.
func IsRefused(row hubv1.ClusterRow) bool {
	return rollup.Failed(row.Applied, row.Reason) && !rollup.Waits(row.Reason)
}
