package operator

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Stored is an object of an operator on the hub.
type Stored struct {
	hubv1.ObjectIdentity
	// Binding of the object; nil if it has none.
	Binding hubv1.BindingObject
}

// Cluster is a cluster that an operator is placed on.
type Cluster struct {
	Name string
	// WaitsFor says why the operator is not ready there; empty if it is ready.
	WaitsFor string
}

// Clusters returns the clusters that an operator is placed on, by name, as the bindings of its objects describe them.
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
		if Needs(o.ObjectIdentity) {
			o.addTo(on)
		}
	}
	var out []Cluster
	for name, here := range on {
		out = append(out, Cluster{Name: name, WaitsFor: WaitsFor(here)})
	}
	slices.SortFunc(out, func(a, b Cluster) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// addTo adds the object to each of the clusters, as its row describes the copy there.
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
			here[row.Name] = o
		}
	}
	for name := range clusters {
		o := here[name]
		o.ObjectIdentity = s.ObjectIdentity
		clusters[name] = append(clusters[name], o)
	}
}
