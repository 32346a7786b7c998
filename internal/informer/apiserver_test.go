package informer_test

import (
	"fmt"
	"os"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/informer"
	"github.com/hanse-dev/hanse/test/apiserver"
)

// apiServer is the configuration of a real API server for all tests that need one. It is nil if the binaries of the API
// server are not installed.
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
	const many = 530 // more objects than a page has
	for i := range many {
		make1(fmt.Sprintf("paged-%d", i), "paged")
	}
	make1("other", "other")
	reported := &log{}
	s := informer.New(informer.Options{
		Client: client, LabelSelector: "set=paged", Handler: reported.handle,
		Resolve: func(schema.GroupVersionKind) (schema.GroupVersionResource, error) { return maps, nil },
	})
	s.Start(t.Context(), configMap)
	until(t, "the first list", func() bool { st, _ := s.State(configMap); return st.Synced })
	if got := len(s.List(configMap)); got != many {
		t.Errorf("listed %d of %d", got, many)
	}
	make1("late", "paged")
	until(t, "an event", func() bool { return reported.has("+late") })
	if err := client.Resource(maps).Namespace("default").Delete(t.Context(), "late", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the delete", func() bool { return reported.has("-late") })
	if _, ok := s.Get(configMap, informer.Key("default", "paged-7")); !ok {
		t.Error("an object is not found by its key")
	}
}

func TestARealDefinitionComesAndGoes(t *testing.T) {
	client := realClient(t)
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	shelves, _ := resolveShelf(shelf)
	reported := &log{}
	s := informer.New(informer.Options{Client: client, Resolve: resolveShelf, Handler: reported.handle})
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
	until(t, "an event", func() bool { return reported.has("+a") })

	if err := client.Resource(crds).Delete(t.Context(), "shelves.lib.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the delete", func() bool { return reported.has("-a") })
	until(t, "the reason", reason(s, hubv1.ReasonKindNotServed))

	install()
	s.Restart()
	until(t, "repair", reason(s, ""))
	create("b")
	until(t, "an event of the new definition", func() bool { return reported.has("+b") })
}

func TestAKindIsWatchedInTheNamespacesThatAreNamed(t *testing.T) {
	admin, ctx := realClient(t), t.Context()
	maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	configMap := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	const user = "watches-two"
	create := func(r schema.GroupVersionResource, ns, text string) {
		t.Helper()
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		if _, err := admin.Resource(r).Namespace(ns).Create(ctx, u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	rbac := func(plural string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: plural}
	}
	named := func(ns, name string) {
		t.Helper()
		create(maps, ns, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, labels: {set: two}}}", name))
	}
	for _, ns := range []string{"two-a", "two-b", "two-other"} {
		create(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "", fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", ns))
		named(ns, "first")
	}
	for _, ns := range []string{"two-a", "two-b"} {
		create(rbac("roles"), ns, `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: two}, rules: [{apiGroups: [""], resources: [configmaps], verbs: [list, watch]}]}`)
		create(rbac("rolebindings"), ns, fmt.Sprintf(`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: two}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: two},
			subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %s}]}`, user))
		apiserver.AwaitRights(t, apiServer, user, ns, rbacv1.PolicyRule{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"configmaps"}})
	}
	config := rest.CopyConfig(apiServer)
	config.Impersonate.UserName = user
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	reported := &log{}
	watched := func(namespaces ...string) *informer.Set {
		s := informer.New(informer.Options{
			Client: client, LabelSelector: "set=two", Handler: reported.handle, Namespaces: func(schema.GroupVersionResource) []string { return namespaces },
			Resolve: func(schema.GroupVersionKind) (schema.GroupVersionResource, error) { return maps, nil },
		})
		s.Start(ctx, configMap)
		return s
	}

	everywhere := watched()
	until(t, "the refusal of all namespaces", func() bool { st, _ := everywhere.State(configMap); return st.Reason == hubv1.ReasonForbidden })
	s := watched("two-a", "two-b")
	until(t, "the first lists", func() bool { st, _ := s.State(configMap); return st.Delivered && st.Reason == "" })
	if got := len(s.List(configMap)); got != 2 {
		t.Errorf("%d objects, want 2", got)
	}
	named("two-b", "late")
	until(t, "an event of the second namespace", func() bool { return reported.has("+late") })
	for key, want := range map[string]bool{"two-a/first": true, "two-b/late": true, "two-other/first": false} {
		if _, got := s.Get(configMap, key); got != want {
			t.Errorf("%s is known: %t", key, got)
		}
	}
	if !s.Watches(configMap, "two-b") || s.Watches(configMap, "two-other") || !everywhere.Watches(configMap, "two-other") {
		t.Error("it says that it watches another namespace, or not its own")
	}
	s.Stop(configMap)
	if _, found := s.State(configMap); found || len(s.List(configMap)) > 0 {
		t.Error("something is left after the stop")
	}
	mixed := watched("two-a", "two-other")
	until(t, "the refusal of one namespace", func() bool { st, _ := mixed.State(configMap); return st.Reason == hubv1.ReasonForbidden })
	if st, _ := mixed.State(configMap); st.Synced {
		t.Error("it is synced without one of its namespaces")
	}
}
