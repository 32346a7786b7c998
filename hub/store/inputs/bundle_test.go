package inputs

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// webWidget is the manifest of the Widget shop/web.
const webWidget = `{"apiVersion": "example.com/v2", "kind": "Widget", "metadata": {"name": "web", "namespace": "shop", "annotations": {"of": "its author"}}}`

// stack returns the metadata of a stored bundle.
func stack(namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: "stack", UID: "uid-of-stack"}
}

func configMap(namespace, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "manifests"}, Data: map[string]string{"a.json": text}}
}

func TestAnObjectOfABundleIsReadAsTheHubWouldStoreIt(t *testing.T) {
	t.Parallel()
	inConfigMap := hubv1.BundleSpec{ConfigMaps: []hubv1.ConfigMapSource{{Name: "manifests"}}}
	inline := hubv1.BundleSpec{Manifests: []runtime.RawExtension{{Raw: []byte(webWidget)}}}
	charted := &hubv1.OperatorChart{Namespace: "shop", Archive: &hubv1.ArchiveSource{ConfigMap: "manifests"}}
	for name, tc := range map[string]struct {
		bundle    hubv1.BundleObject
		configMap *corev1.ConfigMap
		charts    Charts
		// says is the expected error. gone means that the bundle does not contain the object.
		says string
		gone bool
	}{
		"of a Bundle":                              {bundle: &hubv1.Bundle{ObjectMeta: stack("shop"), Spec: inline}},
		"of a Bundle with a ConfigMap":             {bundle: &hubv1.Bundle{ObjectMeta: stack("shop"), Spec: inConfigMap}, configMap: configMap("shop", webWidget)},
		"of a ClusterBundle, of the hub's own":     {bundle: &hubv1.ClusterBundle{ObjectMeta: stack(""), Spec: inConfigMap}, configMap: configMap(hubv1.SystemNamespace, webWidget)},
		"of a bundle that no longer has it":        {bundle: &hubv1.Bundle{ObjectMeta: stack("shop"), Spec: inConfigMap}, configMap: configMap("shop", strings.Replace(webWidget, `"web"`, `"b"`, 1)), gone: true},
		"of a bundle whose ConfigMap is not there": {bundle: &hubv1.Bundle{ObjectMeta: stack("shop"), Spec: inConfigMap}, says: "reading ConfigMap shop/manifests of Bundle shop/stack: "},
		"of a bundle that the hub refuses": {
			bundle: &hubv1.Bundle{ObjectMeta: stack("shop"), Spec: inConfigMap}, configMap: configMap("shop", `{"kind": "Widget"}`), says: "reading the objects of Bundle shop/stack: ",
		},
		"of an operator, by the caller's renderer": {
			bundle: &hubv1.FederatedOperator{ObjectMeta: stack(""), Spec: hubv1.FederatedOperatorSpec{Chart: charted}}, configMap: configMap(hubv1.SystemNamespace, webWidget),
			charts: func(o *hubv1.FederatedOperator, source Source) (Rendered, error) {
				archive, err := source.ConfigMap(client.ObjectKey{Namespace: BundleHome(o), Name: o.Spec.Chart.Archive.ConfigMap})
				if err != nil {
					return Rendered{}, err
				}
				u := &unstructured.Unstructured{}
				return Rendered{Objects: []*unstructured.Unstructured{u}}, u.UnmarshalJSON([]byte(archive.Data["a.json"]))
			},
		},
		"of an operator that is not rendered": {
			bundle: &hubv1.FederatedOperator{ObjectMeta: stack(""), Spec: hubv1.FederatedOperatorSpec{Chart: charted}}, says: "rendering the chart of FederatedOperator stack: not here",
			charts: func(*hubv1.FederatedOperator, Source) (Rendered, error) {
				return Rendered{}, errors.New("not here")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t, tc.bundle)
			if tc.configMap != nil {
				h = newHub(t, tc.bundle, tc.configMap)
			}
			of := hubv1.ReferenceTo(tc.bundle)
			b, err := Bundle(t.Context(), h, of)
			if err != nil || b == nil {
				t.Fatalf("the bundle is %v, %v", b, err)
			}
			binding := bindingOf("web")
			binding.Status.Clusters = []hubv1.ClusterRow{{Name: "eu", Generation: 4}, {Name: "us", Generation: 3}}
			object, err := SourceOn(t.Context(), h, tc.charts).Object(b, binding)
			if tc.says != "" || err != nil {
				if tc.says == "" || err == nil || !strings.HasPrefix(err.Error(), tc.says) {
					t.Errorf("the error is %v, want %q", err, tc.says)
				}
				return
			}
			if tc.gone || object == nil {
				if !tc.gone || object != nil {
					t.Errorf("the object is %v", object)
				}
				return
			}
			found := hubv1.BundleOf(object)
			if found == nil || found.BundleReference != of || object.GetUID() != b.GetUID() || object.GetGeneration() != 4 || object.GetAnnotations()["of"] != "its author" {
				t.Errorf("the object is %v", object)
			}
		})
	}
}

func TestABundleThatIsGoneIsNoError(t *testing.T) {
	t.Parallel()
	h, of := newHub(t), hubv1.BundleReference{Kind: hubv1.BundleKind, Namespace: "shop", Name: "stack"}
	if b, err := Bundle(t.Context(), h, of); b != nil || err != nil {
		t.Errorf("the bundle is %v, %v", b, err)
	}
	h.forbids(hubv1.BundleKind)
	if _, err := Bundle(t.Context(), h, of); err == nil || !strings.HasPrefix(err.Error(), "reading Bundle shop/stack: ") {
		t.Errorf("the error is %v", err)
	}
}
