package browser

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/console"
)

// fakeHub answers the requests of the console as an API server with these objects would. The user has every right,
// unless rightless or tenant is set.
type fakeHub struct {
	objects []client.Object
	// rightless is true if the user may list and read nothing.
	rightless bool
	// tenant is the only namespace whose objects the user may list and read.
	tenant string
	// bindings is the hub's cache of bindings. If it is nil, pages read them from the API server.
	bindings client.Reader
	// views answers the requests about members. It is nil if the hub answers none.
	views http.Handler
}

// served are the kinds that the fake API server knows, with their resources.
var served = map[schema.GroupVersionKind]string{
	hubv1.GroupVersion.WithKind("MemberCluster"): "memberclusters", hubv1.GroupVersion.WithKind("Placement"): "placements",
	hubv1.GroupVersion.WithKind("ClusterPlacement"): "clusterplacements", hubv1.GroupVersion.WithKind("OverridePolicy"): "overridepolicies",
	hubv1.GroupVersion.WithKind("ClusterOverridePolicy"): "clusteroverridepolicies", hubv1.GroupVersion.WithKind("Bundle"): "bundles",
	hubv1.GroupVersion.WithKind("ClusterBundle"): "clusterbundles", hubv1.GroupVersion.WithKind("FederatedOperator"): "federatedoperators",
	hubv1.GroupVersion.WithKind("ResourceBinding"): "resourcebindings", hubv1.GroupVersion.WithKind("ClusterResourceBinding"): "clusterresourcebindings",
	{Version: "v1", Kind: "ConfigMap"}: "configmaps", {Version: "v1", Kind: "Namespace"}: "namespaces", {Version: "v1", Kind: "Event"}: "events",
	{Group: "authorization.k8s.io", Version: "v1", Kind: "SelfSubjectAccessReview"}: "selfsubjectaccessreviews",
	{Group: "authentication.k8s.io", Version: "v1", Kind: "SelfSubjectReview"}:      "selfsubjectreviews",
}

// withoutNamespace are the served kinds whose objects have no namespace.
var withoutNamespace = map[string]bool{
	"MemberCluster": true, "ClusterPlacement": true, "ClusterOverridePolicy": true, "ClusterBundle": true, "FederatedOperator": true,
	"ClusterResourceBinding": true, "Namespace": true, "SelfSubjectAccessReview": true, "SelfSubjectReview": true,
}

func (f *fakeHub) mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}, hubv1.GroupVersion})
	for kind, resource := range served {
		var scope meta.RESTScope = meta.RESTScopeNamespace
		if withoutNamespace[kind.Kind] {
			scope = meta.RESTScopeRoot
		}
		m.AddSpecific(kind, kind.GroupVersion().WithResource(resource), kind.GroupVersion().WithResource(strings.TrimSuffix(resource, "s")), scope)
	}
	return m
}

// ServeHTTP implements http.Handler.
func (f *fakeHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(status int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/selfsubjectreviews"):
		answer(http.StatusCreated, &authenticationv1.SelfSubjectReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
			Status:   authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: "system:serviceaccount:" + cmp.Or(f.tenant, "platform") + ":on-call"}},
		})
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		answer(http.StatusCreated, &authorizationv1.SelfSubjectAccessReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
			Status:   authorizationv1.SubjectAccessReviewStatus{Allowed: !f.rightless},
		})
	case f.rightless, f.tenant != "" && !strings.Contains(r.URL.Path+"/", "/namespaces/"+f.tenant+"/"):
		answer(http.StatusForbidden, metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden,
			Message: `things is forbidden: User "nobody" cannot list resource "things"`,
		})
	default:
		answer(f.find(r))
	}
}

// find answers a request for a list or for one object.
func (f *fakeHub) find(r *http.Request) (status int, body any) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if parts[0] == "api" {
		parts = append([]string{"apis", ""}, parts[1:]...)
	}
	group, rest := parts[1], parts[3:]
	namespace := ""
	if rest[0] == "namespaces" && len(rest) > 2 {
		namespace, rest = rest[1], rest[2:]
	}
	items := []client.Object{}
	kind := ""
	for of, resource := range served {
		if of.Group == group && resource == rest[0] {
			kind = of.Kind
		}
	}
	for _, o := range f.objects {
		of := o.GetObjectKind().GroupVersionKind()
		if of.Group != group || of.Kind != kind || namespace != "" && o.GetNamespace() != namespace {
			continue
		}
		if len(rest) > 1 && o.GetName() == rest[1] {
			return http.StatusOK, o
		}
		items = append(items, o)
		if r.URL.Query().Get("limit") == "1" { // the console asks for one object to find whether it may list them
			break
		}
	}
	if len(rest) > 1 || kind == "" {
		return http.StatusNotFound, metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound, Message: "not found",
		}
	}
	version := strings.TrimPrefix(group+"/"+parts[2], "/")
	if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList") {
		return http.StatusOK, map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": map[string]any{}, "items": items}
	}
	return http.StatusOK, map[string]any{"apiVersion": version, "kind": kind + "List", "metadata": map[string]any{}, "items": items}
}

// add adds objects, with the kinds of their types.
func (f *fakeHub) add(objects ...client.Object) {
	for _, o := range objects {
		name := reflect.TypeOf(o).Elem().Name()
		for kind := range served {
			if kind.Kind == name {
				o.GetObjectKind().SetGroupVersionKind(kind)
			}
		}
		f.objects = append(f.objects, o)
	}
}

// console serves the console of the hub, and returns its origin.
func (f *fakeHub) console(t *testing.T) string {
	t.Helper()
	api := httptest.NewServer(f)
	t.Cleanup(api.Close)
	c, err := console.New(console.Options{
		Config: &rest.Config{Host: api.URL}, Mapper: f.mapper(), Logger: logr.Discard(), Views: f.views, Bindings: f.bindings,
		Key: func() ([]byte, error) { return []byte("a key of 32 bytes for test alone"), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := c.Handler()
	if err != nil {
		t.Fatal(err)
	}
	pages := httptest.NewServer(handler)
	t.Cleanup(func() {
		pages.CloseClientConnections()
		pages.Close()
	})
	return pages.URL
}

func namespaceNamed(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
