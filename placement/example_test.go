package placement_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement"
)

// A spec is compiled once, and is then used for decisions about any number of objects. The decision gives a reason for
// each cluster that it does not choose.
func Example() {
	spec := &hubv1.PlacementSpec{}
	spec.Clusters.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}}
	compiled, err := placement.Compile(spec)
	if err != nil {
		fmt.Println(err)
		return
	}
	kind := schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "Prometheus"}
	serves := map[schema.GroupKind][]string{kind.GroupKind(): {kind.Version}}
	cluster := func(name, tier string) placement.Cluster {
		labels := map[string]string{"tier": tier}
		return placement.Cluster{Name: name, Labels: labels, Ready: true, NamespaceAllowed: true, Facts: placement.Facts{Served: serves}}
	}
	decision := placement.Decide(placement.Input{
		Placement: compiled,
		Object:    hubv1.HubObject{GVK: kind},
		Clusters:  []placement.Cluster{cluster("eu-fra-1", "prod"), cluster("eu-ber-1", "test"), cluster("cn-sha-1", "prod")},
		Held:      map[string]bool{"eu-fra-1": true},
	})
	for _, t := range decision.Targets {
		fmt.Println("in", t.Cluster)
	}
	for _, r := range decision.Rejected {
		fmt.Printf("not in %s: %s\n", r.Cluster, r.Reason)
	}
	// Output:
	// in cn-sha-1
	// in eu-fra-1
	// not in eu-ber-1: NotSelected
}
