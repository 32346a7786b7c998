package operator

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Stored is a stored object of an operator, with its binding.
type Stored struct {
	hubv1.ObjectIdentity
	// Binding of the object. It is nil if the object has no binding.
	Binding hubv1.BindingObject
}

// Cluster is a cluster on which an operator is placed.
type Cluster struct {
	Name string
	// WaitsFor says why the operator is not ready there. It is empty if the operator is ready.
	WaitsFor string
}

// Clusters returns the clusters on which an operator is placed, sorted by name, from the bindings of its objects.
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

// addTo adds the object to each cluster, with the state of its copy there.
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
