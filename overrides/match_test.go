package overrides_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/overrides"
)

// The hub checks the objects of operators in kube-system as a whole, before overrides apply.
func TestNoPolicySelectsAnObjectOfASystemNamespace(t *testing.T) {
	policy := &hubv1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "wider"}}
	policy.Spec.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"all": "yes"}}
	policy.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: "rbac.authorization.k8s.io", Kind: "Role"}}
	for namespace, want := range map[string]int{"kube-system": 0, "kube-public": 0, "hanse-system": 0, "turbines": 1} {
		matching, err := overrides.Matching([]hubv1.OverridePolicyObject{policy}, hubv1.SelectableObject{
			ObjectIdentity:  hubv1.ObjectIdentity{Group: "rbac.authorization.k8s.io", Kind: "Role", Namespace: namespace, Name: "leader"},
			NamespaceLabels: map[string]string{"all": "yes"},
		})
		if err != nil || len(matching) != want {
			t.Errorf("%s: %d policies, %v", namespace, len(matching), err)
		}
	}
}
