package v1alpha1_test

import (
	"os"
	"path/filepath"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/apiserver"
)

var (
	crdFolder = filepath.Join("..", "..", "charts", "hanse-hub", "files", "crds")
	hubConfig *rest.Config
)

func TestMain(m *testing.M) { os.Exit(apiserver.Run(m, apiserver.Hub(), &hubConfig)) }

// connect returns a client without Go types, like kubectl. It refuses a field that the CRDs do not have, because a
// mistake in a test case must not look like an accepted object.
func connect(t *testing.T) client.Client {
	t.Helper()
	apiserver.Needed(t)
	c, err := client.New(hubConfig, client.Options{Scheme: runtime.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return client.WithFieldValidation(c, metav1.FieldValidationStrict)
}

// object returns an object as a user would write it, in the namespace default if the kind is namespaced.
func object(t *testing.T, kind, name, spec string) *unstructured.Unstructured {
	t.Helper()
	text, err := yaml.YAMLToJSONStrict([]byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	var content any
	if err := json.Unmarshal(text, &content); err != nil { // the package json of API machinery decodes 5 as an int64
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
	obj.SetGroupVersionKind(hubv1.GroupVersion.WithKind(kind))
	obj.SetName(name)
	switch kind {
	case "Placement", "OverridePolicy", "ResourceBinding", "Bundle", "SetRollout":
		obj.SetNamespace(metav1.NamespaceDefault)
	}
	return obj
}

// wantRefusal fails the test unless the API server refused the object as invalid and the error contains words.
func wantRefusal(t *testing.T, err error, words string) {
	t.Helper()
	if !apierrors.IsInvalid(err) {
		t.Fatalf("got error %v, want it to be invalid", err)
	}
	wantError(t, err, words)
}
