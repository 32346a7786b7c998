package cache_test

import (
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/cache"
)

// While the member serves only another version of the kind, the last list proves nothing about the copies.
func TestAKindThatIsNoLongerServedIsNotKnown(t *testing.T) {
	tool := schema.GroupVersionKind{Group: "shop.example.com", Version: "v1", Kind: "Tool"}
	tools := tool.GroupVersion().WithResource("tools")
	w := newWorld(t, func(o *cache.Options) {
		o.Resolve = func(schema.GroupVersionKind) (schema.GroupVersionResource, error) { return tools, nil }
	})
	open := true
	version := func(name string, stored bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: true, Storage: stored, Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &open},
		}}
	}
	if _, err := envtest.InstallCRDs(apiServer, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{{
		ObjectMeta: metav1.ObjectMeta{Name: "tools.shop.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: tool.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: "tools", Kind: tool.Kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", false), version("v2", true)},
		},
	}}}); err != nil {
		t.Fatal(err)
	}
	client := dynamic.NewForConfigOrDie(apiServer)
	serve := func(served bool) {
		t.Helper()
		definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
		patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/versions/0/served","value":%t}]`, served)
		if _, err := client.Resource(definitions).Patch(t.Context(), "tools.shop.example.com", types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(tool)
	u.SetNamespace(w.ns)
	u.SetName("web")
	u.SetLabels(map[string]string{hubv1.HubLabel: string(hubUID)})
	if _, err := client.Resource(tools).Namespace(w.ns).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	known := func() (found, synced bool) {
		_, found, synced = w.observer.Observation(tool, w.key())
		return found, synced
	}
	w.observer.Observe(tool, w.key())
	w.until("the object", func() bool { found, synced := known(); return found && synced })

	serve(false)
	w.until("the reason", func() bool { s, _ := w.observer.State(tool); return s.Reason == hubv1.ReasonKindNotServed })
	if found, synced := known(); found || synced {
		t.Errorf("an object of a kind that is not served is found: %t, synced: %t", found, synced)
	}

	serve(true)
	w.until("the version", func() bool {
		_, err := client.Resource(tools).Namespace(w.ns).Get(t.Context(), "web", metav1.GetOptions{})
		return err == nil
	})
	w.observer.Restart()
	w.until("the object again", func() bool { found, synced := known(); return found && synced })
}
