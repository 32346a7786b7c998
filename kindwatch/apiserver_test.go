package kindwatch_test

import (
	"fmt"
	"os"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/kindwatch"
	"github.com/hanse-dev/hanse/test/apiserver"
)

// apiServer is the real one of all tests that need it, or nil.
var apiServer *rest.Config

func TestMain(m *testing.M) { os.Exit(apiserver.Run(m, &envtest.Environment{}, &apiServer)) }

func realClient(t *testing.T) dynamic.Interface {
	t.Helper()
	apiserver.Needed(t)
	c, err := dynamic.NewForConfig(apiServer)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestARealServerPagesAndSelects(t *testing.T) {
	client := realClient(t)
	maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	configMap := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	make1 := func(name, set string) {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(configMap)
		u.SetName(name)
		u.SetLabels(map[string]string{"set": set})
		if _, err := client.Resource(maps).Namespace("default").Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	const many = 530 // more than a page
	for i := range many {
		make1(fmt.Sprintf("paged-%d", i), "paged")
	}
	make1("other", "other")
	told := &log{}
	s := kindwatch.New(kindwatch.Options{
		Client: client, LabelSelector: "set=paged", Handler: told.handle,
		Resolve: func(schema.GroupVersionKind) (schema.GroupVersionResource, error) { return maps, nil },
	})
	s.Start(t.Context(), configMap)
	until(t, "the first list", func() bool { st, _ := s.State(configMap); return st.Synced })
	if got := len(s.List(configMap)); got != many {
		t.Errorf("listed %d of %d", got, many)
	}
	make1("late", "paged")
	until(t, "an event", func() bool { return told.has("+late") })
	if err := client.Resource(maps).Namespace("default").Delete(t.Context(), "late", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the delete", func() bool { return told.has("-late") })
	if _, ok := s.Get(configMap, kindwatch.Key("default", "paged-7")); !ok {
		t.Error("an object is not found by its key")
	}
}

func TestARealDefinitionComesAndGoes(t *testing.T) {
	client := realClient(t)
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	shelves, _ := resolveShelf(shelf)
	told := &log{}
	s := kindwatch.New(kindwatch.Options{Client: client, Resolve: resolveShelf, Handler: told.handle})
	s.Start(t.Context(), shelf)
	until(t, "the reason", reason(s, hubv1.ReasonKindNotServed))

	install := func() {
		if _, err := envtest.InstallCRDs(apiServer, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{{
			ObjectMeta: metav1.ObjectMeta{Name: "shelves.lib.example.com"},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: "lib.example.com", Scope: apiextensionsv1.ClusterScoped,
				Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "shelves", Singular: "shelf", Kind: "Shelf", ListKind: "ShelfList"},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
					Name: "v1", Served: true, Storage: true,
					Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
				}},
			},
		}}}); err != nil {
			t.Fatal(err)
		}
	}
	create := func(name string) {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(shelf)
		u.SetName(name)
		if _, err := client.Resource(shelves).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	install()
	s.Restart()
	until(t, "the first list", synced(s))
	create("a")
	until(t, "an event", func() bool { return told.has("+a") })

	if err := client.Resource(crds).Delete(t.Context(), "shelves.lib.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the delete", func() bool { return told.has("-a") })
	until(t, "the reason", reason(s, hubv1.ReasonKindNotServed))

	install()
	s.Restart()
	until(t, "repair", reason(s, ""))
	create("b")
	until(t, "an event of the new definition", func() bool { return told.has("+b") })
}
