package hub

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/membership/shard"
	"github.com/hanse-dev/hanse/hub/store/templates"
	"github.com/hanse-dev/hanse/member/discovery"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/test/apiserver"
	"github.com/hanse-dev/hanse/test/charts"
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
	o := Options{
		Namespace: hubv1.SystemNamespace, Manager: ManagerOptions{HealthAddress: "0", MetricsAddress: "0"},
		Webhook: WebhookOptions{Names: []string{"localhost"}, DryRunRendered: true},
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	o.Webhook.Address = l.Addr().String()
	must(t, l.Close())
	keeper := newCertificate(o)
	mgr, err := newManager(r.config, o, shard.NewLead(), keeper)
	must(t, err)
	r.admin, err = client.New(r.config, client.Options{Scheme: mgr.GetScheme()})
	must(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	store, err := templates.New(mgr.GetConfig(), mgr.GetAPIReader(), hubv1.SystemNamespace, nil)
	must(t, err)
	kinds, err := discovery.NewForConfig(ctx, mgr.GetConfig(), mgr.GetConfig(), nil, func(schema.GroupKind) {}, func() {})
	must(t, err)
	store.Want(sets.New(gizmo, schema.GroupKind{Group: "apps", Kind: "Deployment"}))
	must(t, keeper.SetupWithManager(mgr))
	r.templates = &slowTemplates{Store: store}
	must(t, addAdmission(mgr, o, r.templates, kinds, keeper))
	must(t, mgr.Add(manager.Runnable(store)))
	r.install(o.Webhook.Address)
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
	url := map[string]any{"webhook": map[string]any{"url": "https://localhost:" + port, "failurePolicy": "Fail", "authors": true}}
	for _, o := range charts.Render(r.T, "hanse-hub/templates/webhook.yaml", url) {
		// The chart calls a hub inside of its cluster through a Service. Here, a second webhook has such a configuration and
		// no rules. The API server therefore never calls it, but validates its path.
		webhooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
		must(r.T, err)
		webhooks = append(webhooks, map[string]any{
			"name": "service.hanse.dev", "sideEffects": "None", "admissionReviewVersions": []any{"v1"},
			"clientConfig": map[string]any{"service": map[string]any{"namespace": hubv1.SystemNamespace, "name": WebhookSecret}},
		})
		must(r.T, unstructured.SetNestedSlice(o.Object, webhooks, "webhooks"))
		r.create(o)
	}
	protected := map[string]any{"protection": map[string]any{"enabled": true}, "webhook": map[string]any{"authors": true}}
	for _, o := range charts.Render(r.T, "hanse-hub/templates/protection.yaml", protected) {
		if o.GetName() == "hanse-hub-authors" {
			r.create(o)
		}
	}
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

// TestAnOverrideIsRefusedThatTheAdmissionOfTheHubWouldRefuse installs the example of the docs on the hub.
func TestAnOverrideIsRefusedThatTheAdmissionOfTheHubWouldRefuse(t *testing.T) {
	apiserver.Needed(t)
	r := startReviewing(t)
	ctx := t.Context()
	example, err := os.Open(filepath.Join(apiserver.Root(), "docs", "examples", "admission", "images.yaml"))
	must(t, err)
	defer func() { must(t, example.Close()) }()
	decoder := utilyaml.NewYAMLOrJSONDecoder(example, 4096)
	for {
		var o unstructured.Unstructured
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		r.create(&o)
	}
	deployment := func(image string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"namespace": "shop", "name": "web"},
			"spec": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"a": "b"}}, "template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"a": "b"}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": image}}},
			}},
		}}
	}
	const refusal = "only images of registry.example.com may run, not evil.example.com/miner"
	eventually(t, 30*time.Second, func() error { // the API server reads its policies by watches
		if err := r.admin.Create(ctx, deployment("evil.example.com/miner"), client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("a Deployment of another registry: %w", err)
		}
		return nil
	})
	template := func(image string) map[string]any {
		spec, _, err := unstructured.NestedMap(deployment(image).Object, "spec", "template", "spec")
		must(t, err)
		spec["restartPolicy"] = "Never"
		return map[string]any{"spec": spec}
	}
	for kind, spec := range map[[2]string]func(template map[string]any) any{
		{"v1", "Pod"}:       func(template map[string]any) any { return template["spec"] },
		{"batch/v1", "Job"}: func(template map[string]any) any { return map[string]any{"template": template} },
		{"batch/v1", "CronJob"}: func(template map[string]any) any {
			return map[string]any{"schedule": "0 * * * *", "jobTemplate": map[string]any{"spec": map[string]any{"template": template}}}
		},
	} {
		of := func(image string) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": kind[0], "kind": kind[1], "metadata": map[string]any{"namespace": "shop", "name": "web"}, "spec": spec(template(image)),
			}}
		}
		refused(t, r.admin.Create(ctx, of("evil.example.com/miner"), client.DryRunAll), refusal)
		must(t, r.admin.Create(ctx, of("registry.example.com/web"), client.DryRunAll))
	}
	web := deployment("registry.example.com/web")
	r.create(web)
	r.bind(web, nil, "eu-1")
	images := func(name, image string) *hubv1.OverridePolicy {
		return &hubv1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: hubv1.OverridePolicySpec{
			ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: "apps", Kind: "Deployment"}},
			Rules: []hubv1.OverrideRule{{Name: "r", Patches: []hubv1.PatchOperation{{
				Op: hubv1.PatchReplace, Path: "/spec/template/spec/containers/0/image", Value: &apiextensionsv1.JSON{Raw: []byte(`"` + image + `"`)},
			}}}},
		}}
	}
	// Until the configuration has the CA, the API server refuses every policy.
	eventually(t, 30*time.Second, func() error { return r.admin.Create(ctx, images("good", "registry.example.com/other")) })
	eventually(t, 30*time.Second, func() error { // the cache of the webhook may not have the binding yet
		if err := r.admin.Create(ctx, images("bad", "evil.example.com/miner"), client.DryRunAll); err == nil {
			return errors.New("the image is taken")
		}
		return nil
	})
	refused(t, r.admin.Create(ctx, images("bad", "evil.example.com/miner")),
		"Deployment.apps shop/web in cluster eu-1: the hub's API server refuses the rendered object", refusal)
}

// recording waits until the API server has the CA of both webhooks, and calls them.
func (r *reviewing) recording() {
	r.Helper()
	eventually(r.T, 30*time.Second, func() error {
		probe := sizes("probe", "5")
		if err := r.admin.Create(r.Context(), probe, client.DryRunAll); err != nil {
			return err
		}
		if probe.Annotations[hubv1.ChangedByAnnotation] == "" {
			return errors.New("no author is recorded")
		}
		return nil
	})
}

const alice, bob = "alice", "bob"

// grantAuthors lets alice and bob write placements of gizmos.
func (r *reviewing) grantAuthors() {
	r.Helper()
	for _, user := range []string{alice, bob} {
		r.grant(user, "authors-"+user,
			rbacv1.PolicyRule{APIGroups: []string{"hanse.dev"}, Resources: []string{"placements"}, Verbs: []string{"create", "patch", "update", "get"}},
			rbacv1.PolicyRule{APIGroups: []string{gizmo.Group}, Resources: []string{"gizmos"}, Verbs: []string{"get", "create", "update", "delete"}})
	}
}

func TestTheAPIServerRecordsWhoChangedAPolicy(t *testing.T) {
	apiserver.Needed(t)
	r := startReviewing(t)
	ctx := t.Context()
	r.grantAuthors()
	asAlice, asBob := r.as(alice), r.as(bob)
	p := func() *hubv1.Placement {
		return &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "authored"}}
	}
	stored := p()
	is := func(want string) {
		t.Helper()
		must(t, r.admin.Get(ctx, client.ObjectKeyFromObject(stored), stored))
		if got := stored.Annotations[hubv1.ChangedByAnnotation]; got != want {
			t.Fatalf("the author is %q, want %q", got, want)
		}
	}
	created := p()
	created.Annotations = map[string]string{hubv1.ChangedByAnnotation: bob}
	created.Spec = hubv1.PlacementSpec{
		ResourceSelectors: []hubv1.ResourceSelector{{APIGroup: gizmo.Group, Kind: gizmo.Kind}}, Clusters: hubv1.ClusterSelection{Names: []string{"eu-1"}},
	}
	r.recording()
	must(t, asAlice.Create(ctx, created))
	is(alice)

	patch := func(c client.Client, content string) {
		t.Helper()
		must(t, c.Patch(ctx, p(), client.RawPatch(types.MergePatchType, []byte(content))))
	}
	patch(asBob, `{"metadata":{"labels":{"a":"b"},"annotations":{"hanse.dev/confirm-removal":"x"}}}`)
	is(alice)
	for _, forged := range []string{`"bob"`, `"carol"`, `""`, `null`} {
		patch(asBob, `{"metadata":{"annotations":{"hanse.dev/changed-by":`+forged+`}}}`)
		is(alice)
	}
	patch(asBob, `{"metadata":{"annotations":{"hanse.dev/changed-by":"carol"}},"spec":{"priority":1}}`)
	is(bob)
	for i, name := range []string{
		hubv1.RolloutApproveAnnotation, hubv1.RolloutPauseAnnotation, hubv1.RolloutSkipAnnotation, hubv1.RolloutPromoteAnnotation, hubv1.RolloutUndoAnnotation,
	} {
		for j, value := range []string{`"x"`, `"y"`, `null`} {
			patch(asAlice, `{"metadata":{"annotations":{"`+name+`":`+value+`}}}`)
			is(alice)
			patch(asBob, fmt.Sprintf(`{"spec":{"priority":%d}}`, 2+3*i+j))
			is(bob)
		}
	}
}

// TestASyncOfUnchangedFilesDoesNotChangeTheAuthor applies the same file in all the ways in which kubectl and GitOps
// tools apply it.
func TestASyncOfUnchangedFilesDoesNotChangeTheAuthor(t *testing.T) {
	apiserver.Needed(t)
	r := startReviewing(t)
	ctx := t.Context()
	r.grantAuthors()
	file := func(priority int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "hanse.dev/v1alpha1", "kind": "Placement", "metadata": map[string]any{"namespace": "shop", "name": "synced"},
			"spec": map[string]any{
				"priority": priority, "clusters": map[string]any{"names": []any{"eu-1"}},
				"resourceSelectors": []any{map[string]any{"apiGroup": gizmo.Group, "kind": gizmo.Kind}},
			},
		}}
	}
	apply := func(user string, priority int64) error {
		return r.as(user).Apply(ctx, client.ApplyConfigurationFromUnstructured(file(priority)), client.FieldOwner("sync"), client.ForceOwnership)
	}
	r.recording()
	must(t, apply(alice, 1))
	stored := func(want string) *hubv1.Placement {
		t.Helper()
		p := &hubv1.Placement{}
		must(t, r.admin.Get(ctx, types.NamespacedName{Namespace: "shop", Name: "synced"}, p))
		if got := p.Annotations[hubv1.ChangedByAnnotation]; got != want {
			t.Fatalf("the author is %q, want %q", got, want)
		}
		return p
	}
	// The hub writes a status at once. Before this, each write of the object also stores the defaults of its status.
	must(t, r.admin.Status().Patch(ctx, stored(alice), client.RawPatch(types.MergePatchType, []byte(`{"status":{"observedGeneration":1}}`))))
	before := stored(alice)
	same := file(1) // not the Go type, which does not write all fields as they are stored
	must(t, r.admin.Get(ctx, client.ObjectKeyFromObject(same), same))
	for name, sync := range map[string]func() error{
		"server-side apply":                 func() error { return apply(alice, 1) },
		"server-side apply by another user": func() error { return apply(bob, 1) },
		"a merge patch without a change": func() error {
			return r.as(bob).Patch(ctx, before.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{}`)))
		},
		"a merge patch of the same spec": func() error {
			return r.as(bob).Patch(ctx, before.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"priority":1}}`)))
		},
		"an update with the same content": func() error { return r.as(bob).Update(ctx, same.DeepCopy(), client.FieldOwner("sync")) },
	} {
		t.Log(name)
		must(t, sync())
		if after := stored(alice); after.ResourceVersion != before.ResourceVersion {
			t.Errorf("%s wrote the object:\n%s", name, cmp.Diff(before, after))
		}
	}
	must(t, apply(bob, 2))
	before = stored(bob)
	must(t, apply(bob, 2))
	if after := stored(bob); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("server-side apply wrote the object:\n%s", cmp.Diff(before, after))
	}
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
	warned(`{"names":["eu-1","sg-1","us-1"]}`, "no cluster is named us-1: there are eu-1, sg-1")
	r.templates.delay.Store(int64(400 * time.Millisecond))
	warned(`{"names":["eu-1"]}`, "could not compute within 1 s which copies the policy would withdraw, because there are too many objects: run hansectl plan")
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
