package upgrade

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/apiserver"
)

var config *rest.Config

func TestMain(m *testing.M) { os.Exit(apiserver.Run(m, apiserver.Hub(), &config)) }

const crdName = "clusterplacements.hanse.dev"

// TestARolledBackCRDHidesFieldsUntilTheObjectIsWritten checks what docs/upgrade.md says about a rollback. The object
// has a field, and a value of an enum, that only the newer CRD has.
func TestARolledBackCRDHidesFieldsUntilTheObjectIsWritten(t *testing.T) {
	apiserver.Needed(t)
	scheme := runtime.NewScheme()
	must(t, apiextensionsv1.AddToScheme(scheme))
	c, err := client.New(config, client.Options{Scheme: scheme})
	must(t, err)
	older := &apiextensionsv1.CustomResourceDefinition{}
	must(t, c.Get(t.Context(), client.ObjectKey{Name: crdName}, older))
	newer := older.DeepCopy()
	spec := newer.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	spec.Properties["newer"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	preemption := spec.Properties["preemption"]
	preemption.Enum = append(slices.Clone(preemption.Enum), apiextensionsv1.JSON{Raw: []byte(`"Sometimes"`)})
	spec.Properties["preemption"] = preemption
	p := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"resourceSelectors": []any{map[string]any{"apiGroup": "example.com", "kind": "Widget"}},
		"clusters":          map[string]any{"names": []any{"eu-fra-1"}},
	}}}
	p.SetGroupVersionKind(hubv1.GroupVersion.WithKind("ClusterPlacement"))
	p.SetName("web")
	must(t, c.Create(t.Context(), p))

	install(t, c, newer)
	eventually(t, "the newer CRD stores the field", func() bool {
		patch(t, c, p, `{"spec":{"newer":"kept","preemption":"Sometimes"}}`)
		return newerField(p) == "kept"
	})

	install(t, c, older)
	eventually(t, "the older CRD hides the field", func() bool { return read(t, c, p) == "" })
	if got, _, _ := unstructured.NestedString(p.Object, "spec", "preemption"); got != "Sometimes" {
		t.Errorf("the value that only the newer CRD allows is %q", got)
	}
	install(t, c, newer)
	eventually(t, "the newer CRD shows it again", func() bool { return read(t, c, p) == "kept" })

	install(t, c, older)
	eventually(t, "the older CRD hides the field again", func() bool { return read(t, c, p) == "" })
	if !patch(t, c, p, `{"spec":{"priority":5}}`) {
		t.Error("the older CRD refuses a change of another field than the one with the unknown value")
	}
	install(t, c, newer)
	eventually(t, "the newer CRD stores the field of another object", func() bool {
		other := p.DeepCopy()
		other.SetName("other")
		other.SetResourceVersion("")
		must(t, unstructured.SetNestedField(other.Object, "stored", "spec", "newer"))
		return client.IgnoreAlreadyExists(c.Create(t.Context(), other)) == nil && patch(t, c, other, `{"spec":{"newer":"stored"}}`) && newerField(other) == "stored"
	})
	if got := read(t, c, p); got != "" {
		t.Errorf("after a write by the older CRD, the field is %q", got)
	}
}

func install(t *testing.T, c client.Client, crd *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	is := &apiextensionsv1.CustomResourceDefinition{}
	must(t, c.Get(t.Context(), client.ObjectKey{Name: crd.Name}, is))
	is.Spec = *crd.Spec.DeepCopy()
	must(t, c.Update(t.Context(), is))
}

// patch applies a change. It returns false if the API server refuses the change.
func patch(t *testing.T, c client.Client, p *unstructured.Unstructured, text string) bool {
	t.Helper()
	err := c.Patch(t.Context(), p, client.RawPatch("application/merge-patch+json", []byte(text)))
	if err != nil {
		t.Logf("patching %s: %v", p.GetName(), err)
	}
	return err == nil
}

// read returns the value of NewerField in the stored object.
func read(t *testing.T, c client.Client, p *unstructured.Unstructured) string {
	t.Helper()
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(p), p))
	return newerField(p)
}

func newerField(p *unstructured.Unstructured) string {
	text, _, _ := unstructured.NestedString(p.Object, "spec", "newer")
	return text
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) { return is(), nil })
	if err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
