package replicas

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestTheHashOfTermsDiffersByWhatDecides(t *testing.T) {
	t.Parallel()
	asking := func(cpu string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse("1")}
	}
	limited := func(n int32) hubv1.DividePolicy {
		return hubv1.DividePolicy{By: hubv1.DivideByCapacity, Limits: []hubv1.ReplicaLimit{{MaxReplicas: &n}}}
	}
	hash := func(way hubv1.DividePolicy, requests corev1.ResourceList) string {
		out, err := TermsHash(way, requests)
		if err != nil || len(out) != termsHashLength {
			t.Fatalf("%q, %v", out, err)
		}
		return out
	}
	first := hash(limited(3), asking("2"))
	for why, other := range map[string]string{
		"another way":      hash(hubv1.DividePolicy{By: hubv1.DivideByPack, Limits: limited(3).Limits}, asking("2")),
		"another limit":    hash(limited(4), asking("2")),
		"other requests":   hash(limited(3), asking("2500m")),
		"another resource": hash(limited(3), corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}),
	} {
		if other == first {
			t.Errorf("%s: the hash is the same", why)
		}
	}
	if again := hash(limited(3), asking("2000m")); again != first {
		t.Errorf("the hash of the same in other words is %s, want %s", again, first)
	}
}
