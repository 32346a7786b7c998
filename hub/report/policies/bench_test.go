package policies

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// BenchmarkFold computes the status of a placement with 1,000 objects on three clusters. While the objects change, the
// hub computes this status at most twice a second.
func BenchmarkFold(b *testing.B) {
	clusters := []string{"ap-se-1", "cn-sha-1", "eu-fra-1"}
	of := selected{regions: map[string]string{"ap-se-1": "ap-southeast-1", "cn-sha-1": "cn-shanghai", "eu-fra-1": "eu-central-1"}}
	observed := &runtime.RawExtension{Raw: []byte(`{"availableReplicas":3,"conditions":[{"lastTransitionTime":"2026-03-01T12:00:00Z","observedGeneration":7,` +
		`"reason":"AllUp","status":"True","type":"Available"},{"reason":"Done","status":"True","type":"Reconciled"}],"paused":false,"replicas":3,"unavailableReplicas":0,"updatedReplicas":3}`)}
	for i := range 1000 {
		binding := binding(fmt.Sprint("web-", i), metav1.ConditionTrue, metav1.ConditionTrue, clusters...)
		for _, c := range clusters {
			binding.Status.Clusters = append(binding.Status.Clusters, hubv1.ClusterRow{Name: c, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy, Observed: observed})
		}
		of.following = append(of.following, binding)
	}
	b.ReportAllocs()
	for b.Loop() {
		var s hubv1.PlacementStatus
		fold(&s, 1, of)
	}
}
