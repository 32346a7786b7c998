package scopes

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// inParts returns an API server that returns a list in two parts. The objects of the second part have no finalizers.
func inParts(t *testing.T, kind string) client.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		item := `{"metadata": {"name": %q}}`
		names, next := []string{"c", "d"}, ""
		if r.FormValue("continue") == "" {
			item, names, next = `{"metadata": {"name": %q, "finalizers": ["first"]}}`, []string{"a", "b"}, "more"
		}
		fmt.Fprintf(w, `{"apiVersion": "hanse.dev/v1alpha1", "kind": %q, "metadata": {"continue": %q}, "items": [`+item+", "+item+"]}", kind, next, names[0], names[1])
	}))
	t.Cleanup(server.Close)
	scheme := runtime.NewScheme()
	if err := hubv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(hubv1.GroupVersion.WithKind("ResourceBinding"), meta.RESTScopeNamespace)
	mapper.Add(hubv1.GroupVersion.WithKind("ClusterResourceBinding"), meta.RESTScopeRoot)
	c, err := client.New(&rest.Config{Host: server.URL}, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestABindingThatIsKeptDoesNotChangeWithTheNextPart(t *testing.T) {
	for kind, read := range map[string]func(client.Client, func(hubv1.BindingObject)) error{
		"ResourceBindingList": func(c client.Client, visit func(hubv1.BindingObject)) error {
			return EachBinding(t.Context(), c, "", 2, visit)
		},
		"ClusterResourceBindingList": func(c client.Client, visit func(hubv1.BindingObject)) error {
			return EachClusterBinding(t.Context(), c, 2, visit)
		},
	} {
		var kept []hubv1.BindingObject
		if err := read(inParts(t, kind), func(b hubv1.BindingObject) { kept = append(kept, b) }); err != nil {
			t.Fatal(err)
		}
		var is []string
		for _, b := range kept {
			is = append(is, fmt.Sprint(b.GetName(), b.GetFinalizers()))
		}
		if want := []string{"a[first]", "b[first]", "c[]", "d[]"}; !slices.Equal(is, want) {
			t.Errorf("%s: the bindings are %v, want %v", kind, is, want)
		}
	}
}
