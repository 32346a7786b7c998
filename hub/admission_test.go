package hub

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/decide"
	"github.com/hanse-dev/hanse/hub/shard"
	"github.com/hanse-dev/hanse/hub/templates"
	"github.com/hanse-dev/hanse/member/served"
	"github.com/hanse-dev/hanse/test/apiserver"
)

var gizmo = schema.GroupKind{Group: "shop.example.com", Kind: "Gizmo"}

// reviewing is an API server that calls the webhook of this process, configured as by the chart.
type reviewing struct {
	*testing.T
	config    *rest.Config
	admin     client.Client
	templates *slowTemplates
}

// slowTemplates returns the hub's objects after a delay.
type slowTemplates struct {
	*templates.Store
	delay atomic.Int64
}

func (s *slowTemplates) Head(id hubv1.ObjectIdentity) (metav1.Object, bool) {
	<-time.After(time.Duration(s.delay.Load()))
	return s.Store.Head(id)
}

func startReviewing(t *testing.T) *reviewing {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "gizmos.shop.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: gizmo.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "gizmos", Singular: "gizmo", Kind: "Gizmo", ListKind: "GizmoList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
					"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"size": {Type: "integer", Maximum: ptr.To(9.0)}}},
				}},
			}}},
		},
	}
	server := apiserver.Hub()
	server.CRDs = []*apiextensionsv1.CustomResourceDefinition{definition}
	r := &reviewing{T: t, config: serve(t, server)}
	o := Options{Namespace: hubv1.SystemNamespace, HealthAddress: "0", MetricsAddress: "0", WebhookNames: []string{"localhost"}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	o.WebhookAddress = l.Addr().String()
	must(t, l.Close())
	keeper := newCertificate(o)
	mgr, err := newManager(r.config, o, shard.NewLead(), keeper)
	must(t, err)
	r.admin, err = client.New(r.config, client.Options{Scheme: mgr.GetScheme()})
	must(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	store, err := templates.New(mgr.GetConfig(), mgr.GetAPIReader(), hubv1.SystemNamespace, nil)
	must(t, err)
	kinds, err := served.NewForConfig(ctx, mgr.GetConfig(), mgr.GetConfig(), func(schema.GroupKind) {}, func() {})
	must(t, err)
	store.Want(sets.New(gizmo))
	must(t, keeper.SetupWithManager(mgr))
	r.templates = &slowTemplates{Store: store}
	must(t, addAdmission(mgr, o, r.templates, kinds, keeper))
	must(t, mgr.Add(manager.Runnable(store)))
	r.install(o.WebhookAddress)
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	r.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	for _, name := range []string{"eu-1", "sg-1"} {
		r.create(&hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: hubv1.MemberClusterSpec{
			Connection:        hubv1.Connection{Type: hubv1.ConnectionDirect, Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: name, Key: "kubeconfig"}}},
			AllowedNamespaces: hubv1.AllowedNamespaces{From: hubv1.NamespacesFromAll},
		}})
	}
	u := r.gizmo("web")
	r.create(u)
	r.bind(u, nil, "eu-1")
	return r
}

// bind creates the binding of an object that the hub has read.
func (r *reviewing) bind(u *unstructured.Unstructured, by *hubv1.Placement, clusters ...string) {
	r.Helper()
	id := hubv1.IdentityOf(u)
	b := &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: id.Namespace, Name: id.BindingKey().Name}, Spec: hubv1.BindingSpec{
		ObjectRef: hubv1.ObjectReference{APIVersion: u.GetAPIVersion(), Kind: id.Kind, Name: id.Name, UID: u.GetUID()},
	}}
	for _, name := range clusters {
		b.Spec.Clusters = append(b.Spec.Clusters, hubv1.BindingTarget{Name: name, State: hubv1.TargetPresent})
	}
	if by != nil {
		b.Spec.PlacementRef = decide.ReferenceTo(by)
	}
	r.create(b)
	eventually(r.T, 30*time.Second, func() error {
		if _, ok := r.templates.Get(id); !ok {
			return fmt.Errorf("the hub has not read %s", id)
		}
		return nil
	})
}

// install creates the objects that the chart creates.
func (r *reviewing) install(address string) {
	r.Helper()
	r.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hubv1.SystemNamespace}})
	r.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: WebhookSecret}})
	_, port, err := net.SplitHostPort(address)
	must(r.T, err)
	r.create(&admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: WebhookName},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name:         "policies.hanse.dev",
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://localhost:" + port + "/validate-policies")},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule: admissionregistrationv1.Rule{APIGroups: []string{"hanse.dev"}, APIVersions: []string{"*"},
					Resources: []string{"placements", "clusterplacements", "overridepolicies", "clusteroverridepolicies"}},
			}},
			MatchConditions:         []admissionregistrationv1.MatchCondition{{Name: "spec-changes", Expression: "request.operation == 'CREATE' || object.spec != oldObject.spec"}},
			FailurePolicy:           ptr.To(admissionregistrationv1.Fail),
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}, {
			// The chart has a second webhook, for a hub that the API server calls through a Service. In this test, the second
			// webhook has no rules. The API server therefore never calls it, but validates its path.
			Name:                    "service.hanse.dev",
			ClientConfig:            admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: hubv1.SystemNamespace, Name: WebhookSecret}},
			SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"},
		}},
	})
}

func (r *reviewing) create(o client.Object) {
	r.Helper()
	must(r.T, r.admin.Create(r.Context(), o))
}

func (r *reviewing) gizmo(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1)}}}
	u.SetGroupVersionKind(gizmo.WithVersion("v1"))
	u.SetNamespace("shop")
	u.SetName(name)
	return u
}

// as returns the client of a user.
func (r *reviewing) as(user string) client.Client {
	r.Helper()
	config := rest.CopyConfig(r.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	c, err := client.New(config, client.Options{Scheme: r.admin.Scheme()})
	must(r.T, err)
	return c
}

// grant gives a user rights in the namespace shop.
func (r *reviewing) grant(user, name string, rules ...rbacv1.PolicyRule) {
	r.Helper()
	r.create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Rules: rules})
	r.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	})
	apiserver.AwaitRights(r.T, r.config, user, "shop", rules...)
}

func sizes(name, value string) *hubv1.OverridePolicy {
	return &hubv1.OverridePolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: hubv1.OverridePolicySpec{
			ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: gizmo.Group, Kind: gizmo.Kind}},
			Rules:             []hubv1.OverrideRule{{Name: "r", MergePatch: &apiextensionsv1.JSON{Raw: []byte(`{"spec":{"size":` + value + `}}`)}}},
		},
	}
}

func TestTheAPIServerAsksTheHubAboutPolicies(t *testing.T) {
	apiserver.Needed(t)
	r := startReviewing(t)
	ctx := t.Context()

	// Until the configuration has the CA, the API server refuses every policy.
	good := sizes("good", "5")
	eventually(t, 30*time.Second, func() error { return r.admin.Create(ctx, good.DeepCopy()) })

	r.answersOnlyByTheConfiguredPath()

	// The API server publishes the schema of a new kind a little later than it serves it.
	bad := sizes("bad", `"huge"`)
	eventually(t, 30*time.Second, func() error {
		if r.admin.Create(ctx, bad.DeepCopy(), client.DryRunAll) == nil {
			return errors.New("a wrong policy is taken")
		}
		return nil
	})
	refused(t, r.admin.Create(ctx, bad.DeepCopy()), `Gizmo.shop.example.com shop/web in cluster eu-1: /spec/size must be an integer, not "huge"`)
	refused(t, r.admin.Create(ctx, sizes("large", `10`)), "/spec/size must be at most 9, not 10")

	const alice = "alice"
	r.grant(alice, "policies", rbacv1.PolicyRule{APIGroups: []string{"hanse.dev"}, Resources: []string{"overridepolicies", "placements"}, Verbs: []string{"create", "patch", "get"}})
	asAlice := r.as(alice)
	own := sizes("alices", "6")
	refused(t, asAlice.Create(ctx, own.DeepCopy()), "alice needs the right to get, create, update, delete gizmos.shop.example.com in namespace shop", "override placements.hanse.dev")
	placement := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "alices"}, Spec: hubv1.PlacementSpec{
		ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: gizmo.Group, Kind: gizmo.Kind}}, Clusters: hubv1.ClusterSelection{Names: []string{"eu-1"}},
	}}
	refused(t, asAlice.Create(ctx, placement.DeepCopy()), "gizmos.shop.example.com in namespace shop")

	r.grant(alice, "gizmos", rbacv1.PolicyRule{APIGroups: []string{gizmo.Group}, Resources: []string{"gizmos"}, Verbs: []string{"get", "create", "update", "delete"}})
	eventually(t, 10*time.Second, func() error { return asAlice.Create(ctx, placement.DeepCopy()) })
	refused(t, asAlice.Create(ctx, own.DeepCopy()), "override placements.hanse.dev in namespace shop")
	r.grant(alice, "override", rbacv1.PolicyRule{APIGroups: []string{"hanse.dev"}, Resources: []string{"placements"}, Verbs: []string{"override"}})
	eventually(t, 10*time.Second, func() error { return asAlice.Create(ctx, own.DeepCopy()) })

	// Another user may change the labels of a policy, but not its spec.
	const bob = "bob"
	r.grant(bob, "labels", rbacv1.PolicyRule{APIGroups: []string{"hanse.dev"}, Resources: []string{"overridepolicies"}, Verbs: []string{"create", "patch", "get"}})
	asBob := r.as(bob)
	eventually(t, 10*time.Second, func() error {
		return asBob.Patch(ctx, good.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`)))
	})
	refused(t, asBob.Patch(ctx, good.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/rules/0/mergePatch/spec/size","value":2}]`))), "bob needs the right to")
}

func TestTheAPIServerShowsTheCopiesThatAPolicyWouldWithdraw(t *testing.T) {
	apiserver.Needed(t)
	r := startReviewing(t)
	ctx := t.Context()
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "gizmos"}, Spec: hubv1.PlacementSpec{
		ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: gizmo.Group, Kind: gizmo.Kind}}, Clusters: hubv1.ClusterSelection{Names: []string{"eu-1", "sg-1"}},
	}}
	eventually(t, 30*time.Second, func() error { return r.admin.Create(ctx, p) }) // fails until the API server has the CA
	for i := range 3 {
		u := r.gizmo(fmt.Sprintf("g-%d", i))
		r.create(u)
		r.bind(u, p, "eu-1", "sg-1")
	}
	// A dry run is reviewed, too. The same edit can therefore be repeated until the caches have all objects.
	warned := func(spec, want string) {
		t.Helper()
		eventually(t, 30*time.Second, func() error {
			var got warnings
			config := rest.CopyConfig(r.config)
			config.WarningHandler = &got
			c, err := client.New(config, client.Options{Scheme: r.admin.Scheme()})
			must(t, err)
			must(t, c.Patch(ctx, p.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"clusters":`+spec+`}}`)), client.DryRunAll))
			if text := strings.Join(got, "; "); text != want {
				return fmt.Errorf("warnings %q, want %q", text, want)
			}
			return nil
		})
	}
	warned(`{"names":["eu-1"]}`, "the policy would withdraw 3 copies of 3 objects, from sg-1 (3): first Gizmo.shop.example.com shop/g-0; the removal is within the limit and needs no confirmation")
	warned(`{"names":["eu-1","sg-1","us-1"]}`, "")
	r.templates.delay.Store(int64(400 * time.Millisecond))
	warned(`{"names":["eu-1"]}`, "which copies the policy would withdraw is not known: too many objects to tell within 1 s: run hansectl simulate")
}

// warnings are the warnings in the answers of an API server.
type warnings []string

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _ string, text string) { *w = append(*w, text) }

// answersOnlyByTheConfiguredPath sends a review that claims to come from an administrator, as any client that reaches
// the port can do. Only a request at the path in the webhook configuration may get a review as answer.
func (r *reviewing) answersOnlyByTheConfiguredPath() {
	r.Helper()
	var config admissionregistrationv1.ValidatingWebhookConfiguration
	must(r.T, r.admin.Get(r.Context(), types.NamespacedName{Name: WebhookName}, &config))
	called := *config.Webhooks[0].ClientConfig.URL
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(config.Webhooks[0].ClientConfig.CABundle)
	caller := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	defer caller.CloseIdleConnections()
	u, err := url.Parse(called)
	must(r.T, err)
	for path, want := range map[string]int{
		u.Path: http.StatusOK, "/validate-policies": http.StatusNotFound, "/validate-policies/": http.StatusNotFound, "/validate-policies/0": http.StatusNotFound,
	} {
		u.Path = path
		answer, err := caller.Post(u.String(), "application/json", strings.NewReader(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1",
			"kind":{"group":"hanse.dev","version":"v1alpha1","kind":"Placement"},"operation":"CREATE","userInfo":{"username":"a","groups":["system:masters"]},"object":{}}}`))
		must(r.T, err)
		must(r.T, answer.Body.Close())
		if answer.StatusCode != want {
			r.Errorf("at %s it answers %d, want %d", path, answer.StatusCode, want)
		}
	}
}

// refused fails the test unless the API server refused the request with these words.
func refused(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("it was taken, want a refusal with %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}
