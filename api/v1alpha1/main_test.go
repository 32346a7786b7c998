package v1alpha1_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

var (
	crdFolder = filepath.Join("..", "..", "charts", "hanse-hub", "files", "crds")
	hubConfig *rest.Config
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return m.Run()
	}
	ctrl.SetLogger(logr.Discard())
	server := &envtest.Environment{CRDDirectoryPaths: []string{crdFolder}, ErrorIfCRDPathMissing: true}
	cfg, err := server.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting the API server:", err)
		return 1
	}
	defer func() { _ = server.Stop() }()
	cfg.QPS = -1
	hubConfig = cfg
	return m.Run()
}

// connect returns a client that knows no types, as kubectl does not, and that refuses a field which the CRDs do not have:
// a slip in a test case must not pass for an accepted object.
func connect(t *testing.T) client.Client {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" { // read here, too: what TestMain reads does not count for cached results
		t.Skip("KUBEBUILDER_ASSETS is not set: no API server to test against")
	}
	c, err := client.New(hubConfig, client.Options{Scheme: runtime.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return client.WithFieldValidation(c, metav1.FieldValidationStrict)
}

// object is what a user would write, in the namespace default if the kind has namespaces.
func object(t *testing.T, kind, name, spec string) *unstructured.Unstructured {
	t.Helper()
	text, err := yaml.YAMLToJSONStrict([]byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	var content any
	if err := json.Unmarshal(text, &content); err != nil { // the API machinery's: 5 is an int64
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
	obj.SetGroupVersionKind(hubv1.GroupVersion.WithKind(kind))
	obj.SetName(name)
	switch kind {
	case "Placement", "OverridePolicy", "ResourceBinding":
		obj.SetNamespace(metav1.NamespaceDefault)
	}
	return obj
}

// wantRefusal wants the API server to have found the object invalid, in these words.
func wantRefusal(t *testing.T, err error, words string) {
	t.Helper()
	if !apierrors.IsInvalid(err) {
		t.Fatalf("got error %v, want it to be invalid", err)
	}
	wantError(t, err, words)
}
