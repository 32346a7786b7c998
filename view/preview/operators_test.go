package preview

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestAnObjectOfAnOperatorIsRenderedWithoutOperators(t *testing.T) {
	policy := &hubv1.ClusterOverridePolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	policy.Spec.NamespaceSelector = &metav1.LabelSelector{}
	policy.Spec.ResourceSelectors = []hubv1.ResourceSelector{{Kind: "ConfigMap"}}
	policy.Spec.Rules = []hubv1.OverrideRule{{Name: "r", Patches: []hubv1.PatchOperation{
		{Op: hubv1.PatchAdd, Path: "/data/rotors", Expression: "cluster.operators[?'rotors'].version.orValue('none')"},
	}}}
	cluster := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}
	cluster.Status.Operators = []hubv1.OperatorFact{{Name: "rotors", Version: "1.0.0", Installed: true}}
	for bundle, want := range map[string]string{"": "1.0.0", hubv1.ClusterBundleKind: "1.0.0", hubv1.FederatedOperatorKind: "none"} {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "shop", "name": "web"}, "data": map[string]any{},
		}}
		if bundle != "" {
			of := hubv1.ObjectBundle{BundleReference: hubv1.BundleReference{Kind: bundle, Name: "rotors"}}
			object.SetAnnotations(map[string]string{hubv1.BundleAnnotation: of.Annotation()})
		}
		out := Render(RenderInput{Object: object, Policies: []hubv1.OverridePolicyObject{policy}, Clusters: []*hubv1.MemberCluster{cluster}})[0]
		got, _, _ := unstructured.NestedString(out.Manifest, "data", "rotors")
		if got != want {
			t.Errorf("an object of %q has %q: %s", bundle, got, out.Error)
		}
	}
}
