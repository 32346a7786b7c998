package apply_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
	"github.com/hanse-dev/hanse/internal/informer"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/apply"
	"github.com/hanse-dev/hanse/test/apiserver"
)

const (
	hubUID   = types.UID("hub-1")
	ownerUID = types.UID("template-1")
)

var (
	environment = &envtest.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{definition("Widget", "widgets")}}
	apiServer   *rest.Config
	counter     atomic.Int32
)

func TestMain(m *testing.M) { os.Exit(apiserver.Run(m, environment, &apiServer)) }

var (
	widget     = schema.GroupVersionKind{Group: "shop.example.com", Version: "v1", Kind: "Widget"}
	configMap  = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	secret     = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	pod        = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	namespace  = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	deployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	// ghost is a kind for which resolve returns a resource, but which the server does not serve.
	ghost = schema.GroupVersionKind{Group: "shop.example.com", Version: "v1", Kind: "Ghost"}
	// widgetV2 is a version of widget for which resolve returns a resource, but which the server does not serve.
	widgetV2 = schema.GroupVersionKind{Group: "shop.example.com", Version: "v2", Kind: "Widget"}
)

var plurals = map[string]string{
	"Widget": "widgets", "ConfigMap": "configmaps", "Secret": "secrets", "Pod": "pods", "Namespace": "namespaces", "Ghost": "ghosts",
	"Deployment": "deployments", "Job": "jobs", "ServiceAccount": "serviceaccounts", "CustomResourceDefinition": "customresourcedefinitions",
	"Role": "roles", "RoleBinding": "rolebindings", "Lease": "leases", "Event": "events",
}

var key = canonical.Key("k")

// resolve returns the resources of the kinds in plurals, and whether a kind is namespaced.
func resolve(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	plural, ok := plurals[gvk.Kind]
	if !ok {
		return schema.GroupVersionResource{}, false, fmt.Errorf("mapping: %w", &meta.NoKindMatchError{GroupKind: gvk.GroupKind()})
	}
	return gvk.GroupVersion().WithResource(plural), gvk.Kind != "Namespace" && gvk.Kind != "CustomResourceDefinition", nil
}

func definition(kind, plural string) *apiextensionsv1.CustomResourceDefinition {
	open, set := true, "set"
	object := func(p map[string]apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: p}
	}
	most := 10.0
	spec := object(map[string]apiextensionsv1.JSONSchemaProps{
		"size":  {Type: "integer", Maximum: &most},
		"color": {Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"red"`)}, {Raw: []byte(`"blue"`)}}},
		"note":  {Type: "string"},
		"tags":  {Type: "array", XListType: &set, Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}}},
		"free":  {Type: "object", XPreserveUnknownFields: &open},
	})
	root := object(map[string]apiextensionsv1.JSONSchemaProps{"spec": spec, "status": {Type: "object", XPreserveUnknownFields: &open}})
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".shop.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "shop.example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &root},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}

// world is one namespace on the member and an Applier for it.
type world struct {
	*testing.T
	admin   dynamic.Interface
	applier *apply.Applier
	ns      string
	// intercept, if set, gets each request of the Applier. If it returns an answer, the request is not sent.
	intercept func(*http.Request) *answer

	mu    sync.Mutex
	wrote []string
}

// answer is the HTTP response that replaces the server's.
type answer struct {
	code int
	body string
}

// status returns a response with a Status of the API server.
func status(code int, s metav1.Status) *answer {
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	s.Status, s.Code = metav1.StatusFailure, int32(code)
	body, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return &answer{code, string(body)}
}

// roundTrip lets intercept answer a request, and fails the test if the Applier uses an HTTP method that it must not
// use.
func (w *world) roundTrip(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	switch r.Method {
	case http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete:
	default:
		w.Errorf("%s %s: a verb that the hub is not granted", r.Method, r.URL.Path)
	}
	if w.intercept != nil {
		if a := w.intercept(r); a != nil {
			header := http.Header{}
			if strings.HasPrefix(a.body, "{") {
				header.Set("Content-Type", "application/json")
			}
			return &http.Response{StatusCode: a.code, Request: r, Header: header, Body: io.NopCloser(strings.NewReader(a.body))}, nil
		}
	}
	return next.RoundTrip(r)
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func newWorld(t *testing.T) *world {
	t.Helper()
	apiserver.Needed(t)
	w := &world{T: t, ns: fmt.Sprintf("t-%d", counter.Add(1))}
	w.admin = dynamic.NewForConfigOrDie(apiServer)
	w.applier = w.as(apiServer, hubUID)
	w.create(object(namespace, "", w.ns, nil))
	return w
}

// as returns an Applier with the credentials of config, for the hub with this UID.
func (w *world) as(config *rest.Config, hub types.UID) *apply.Applier {
	w.Helper()
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport(func(r *http.Request) (*http.Response, error) { return w.roundTrip(next, r) })
	})
	client, err := informer.NewRESTClient(config)
	if err != nil {
		w.Fatal(err)
	}
	return apply.New("m1", false, client, resolve, hub, key, func(gvk schema.GroupVersionKind, u *unstructured.Unstructured) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.wrote = append(w.wrote, gvk.Kind+" "+u.GetName()+" "+u.GetResourceVersion())
	})
}

func ignored(schema.GroupVersionKind, *unstructured.Unstructured) {}

func object(gvk schema.GroupVersionKind, ns, name string, fields map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	for k, v := range fields {
		u.Object[k] = v
	}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(ns)
	u.SetName(name)
	return u
}

func spec(fields map[string]any) map[string]any {
	if fields == nil {
		fields = map[string]any{}
	}
	return map[string]any{"spec": fields}
}

// intent returns the intent to apply the widget web with this spec.
func (w *world) intent(fields map[string]any, digest string) member.ApplyIntent {
	return w.intentOf(object(widget, w.ns, "web", spec(fields)), digest)
}

func (w *world) intentOf(manifest *unstructured.Unstructured, digest string) member.ApplyIntent {
	return member.ApplyIntent{
		Manifest: manifest, Owner: identity(manifest), OwnerUID: ownerUID, Digest: digest,
		ApplySettings: member.ApplySettings{Adoption: hubv1.AdoptionNever, FieldConflict: hubv1.FieldConflictTake},
	}
}

func identity(u *unstructured.Unstructured) hubv1.ObjectIdentity {
	gvk := u.GroupVersionKind()
	return hubv1.ObjectIdentity{Group: gvk.Group, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
}

func (w *world) withdrawal() member.WithdrawIntent {
	return member.WithdrawIntent{
		GVK: widget, Owner: identity(object(widget, w.ns, "web", nil)), OwnerUID: ownerUID, Policy: hubv1.RemovalDelete,
	}
}

func (w *world) objects(gvk schema.GroupVersionKind, ns string) dynamic.ResourceInterface {
	r, namespaced, err := resolve(gvk)
	if err != nil {
		w.Fatal(err)
	}
	if !namespaced {
		return w.admin.Resource(r)
	}
	return w.admin.Resource(r).Namespace(ns)
}

// installDefinition creates a CustomResourceDefinition and waits until the server serves it.
func (w *world) installDefinition(d *apiextensionsv1.CustomResourceDefinition) {
	w.Helper()
	options := envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{d}}
	if _, err := envtest.InstallCRDs(apiServer, options); err != nil {
		w.Fatal(err)
	}
}

// create creates an object on the member with the admin client.
func (w *world) create(u *unstructured.Unstructured) *unstructured.Unstructured {
	w.Helper()
	out, err := w.objects(u.GroupVersionKind(), u.GetNamespace()).Create(w.Context(), u, metav1.CreateOptions{FieldManager: "kubectl-create"})
	if err != nil {
		w.Fatal(err)
	}
	return out
}

// get reads the widget "web" with the admin client. The methods edit and delete change it.
func (w *world) get() *unstructured.Unstructured {
	w.Helper()
	out, err := w.objects(widget, w.ns).Get(w.Context(), "web", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return out
}

func (w *world) edit(patch string) *unstructured.Unstructured {
	w.Helper()
	out, err := w.objects(widget, w.ns).Patch(w.Context(), "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	if err != nil {
		w.Fatal(err)
	}
	return out
}

func (w *world) delete() {
	w.Helper()
	if err := w.objects(widget, w.ns).Delete(w.Context(), "web", metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
}

// apply applies the intent, and fails the test if the outcome is not as wanted.
func (w *world) apply(in member.ApplyIntent, want result) member.Outcome {
	w.Helper()
	before := in.Manifest.DeepCopy()
	out := w.applier.Apply(w.Context(), in)
	if diff := cmp.Diff(before, in.Manifest); diff != "" {
		w.Errorf("the manifest was changed: %s", diff)
	}
	return w.check(out, want)
}

func (w *world) withdraw(in member.WithdrawIntent, want result) member.Outcome {
	w.Helper()
	return w.check(w.applier.Withdraw(w.Context(), in), want)
}

// result has the fields of an Outcome that tests compare.
type result struct {
	applied metav1.ConditionStatus
	reason  string
	wrote   bool
	retry   member.Retry
}

func (w *world) check(out member.Outcome, want result) member.Outcome {
	w.Helper()
	got := result{out.Applied, out.Reason, out.Wrote, out.Retry}
	if got != want {
		w.Fatalf("got %+v %q, want %+v", got, out.Message, want)
	}
	if n := len([]rune(out.Message)); n > 256 {
		w.Errorf("a message of %d characters", n)
	}
	return out
}

var (
	written   = result{metav1.ConditionTrue, hubv1.ReasonApplied, true, member.RetryNever}
	unchanged = result{metav1.ConditionTrue, hubv1.ReasonApplied, false, member.RetryNever}
)

func failed(reason string, retry member.Retry) result {
	return result{metav1.ConditionFalse, reason, false, retry}
}
