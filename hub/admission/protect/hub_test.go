package protect

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/internal/informer"
)

// fakeTemplates are hub objects with labels. reported is true if the hub has read all objects of their kinds.
type fakeTemplates struct {
	mu       sync.Mutex
	heads    map[hubv1.ObjectIdentity]metav1.Object
	reported bool
	onChange func(hubv1.ObjectIdentity)
	onState  func(schema.GroupKind)
}

func (f *fakeTemplates) OnChange(g func(hubv1.ObjectIdentity)) { f.onChange = g }
func (f *fakeTemplates) OnState(g func(schema.GroupKind))      { f.onState = g }

func (f *fakeTemplates) Head(id hubv1.ObjectIdentity) (metav1.Object, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o, ok := f.heads[id]
	return o, ok
}

func (f *fakeTemplates) State(schema.GroupKind) (informer.State, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return informer.State{Synced: f.reported, Delivered: f.reported}, true
}

// set creates or updates an object with these labels.
func (f *fakeTemplates) set(id hubv1.ObjectIdentity, labels map[string]string) {
	f.mu.Lock()
	f.heads[id] = &metav1.ObjectMeta{Namespace: id.Namespace, Name: id.Name, Labels: labels}
	f.mu.Unlock()
	f.onChange(id)
}

func (f *fakeTemplates) notify() {
	f.mu.Lock()
	f.reported = true
	f.mu.Unlock()
	f.onState(schema.GroupKind{})
}

// keep runs a Keeper with the rights of the hub until the test ends.
func keep(t *testing.T, templates *fakeTemplates) {
	t.Helper()
	admin := as(t, "")
	yes := true
	mgr, err := manager.New(hubConfig, manager.Options{
		Scheme: admin.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: config.Controller{SkipNameValidation: &yes},
	})
	must(t, err)
	feed := changes.NewFeed()
	k := New(Options{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Mapper: mgr.GetRESTMapper(), Templates: templates, Namespace: hubv1.SystemNamespace, Limit: 5,
		Counted: feed.Bindings.Listed,
	})
	must(t, k.SetupWithManager(mgr))
	feed.Bindings.On(changes.All, k.BindingChanged)
	must(t, feed.Watch(t.Context(), mgr.GetCache()))
	ended := make(chan error)
	go func() { ended <- mgr.Start(t.Context()) }()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Errorf("the manager ended: %v", err)
		}
	})
}

// says waits until the ConfigMap has this content for the namespaces of the test, and returns its resourceVersion.
func says(t *testing.T, admin client.Client, want map[string]string) string {
	t.Helper()
	var cm corev1.ConfigMap
	eventually(t, func() error {
		must(t, admin.Get(t.Context(), types.NamespacedName{Namespace: hubv1.SystemNamespace, Name: Name}, &cm))
		got := map[string]string{}
		for name := range want {
			if text, found := cm.Data[name]; found || want[name] != "" {
				got[name] = text
			} else {
				got[name] = ""
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("the ConfigMap (-want +got):\n%s", diff)
		}
		return nil
	})
	return cm.ResourceVersion
}

// placedObject creates the binding of an object that is placed on n clusters.
func placedObject(t *testing.T, namespace, name string, n int) *hubv1.ResourceBinding {
	t.Helper()
	b := binding(namespace, name)
	for i := range n {
		b.Spec.Clusters = append(b.Spec.Clusters, hubv1.BindingTarget{Name: fmt.Sprintf("c-%d", i), State: hubv1.TargetPresent})
	}
	must(t, as(t, theHub).Create(t.Context(), b))
	return b
}

func newNamespace(t *testing.T, admin client.Client) *corev1.Namespace {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "protect-"}}
	must(t, admin.Create(t.Context(), ns))
	return ns
}

func TestANamespaceWithManyCopiesIsDeletedOnlyWhenAllowed(t *testing.T) {
	admin, ctx := installed(t), t.Context()
	many, few, careful := newNamespace(t, admin), newNamespace(t, admin), newNamespace(t, admin)
	placedObject(t, many.Name, "a", 4)
	b := placedObject(t, many.Name, "b", 4)
	placedObject(t, few.Name, "c", 5)
	placedObject(t, careful.Name, "d", 1)
	templates := &fakeTemplates{heads: map[hubv1.ObjectIdentity]metav1.Object{}}
	keep(t, templates)
	id := hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: careful.Name, Name: "d"}
	templates.set(id, map[string]string{hubv1.DeletionProtectionLabel: "true"})
	written := says(t, admin, map[string]string{
		many.Name: "more than 5 placed copies", few.Name: "", careful.Name: "ConfigMap " + careful.Name + "/d with the label hanse.dev/deletion-protection",
	})

	t.Run("one with few copies goes", func(t *testing.T) { must(t, admin.Delete(ctx, few)) })
	t.Run("one with many stays until it is said which one is meant", func(t *testing.T) {
		eventually(t, func() error { // the API server reads the ConfigMap by a watch
			if err := admin.Delete(ctx, many, client.DryRunAll); err == nil {
				return fmt.Errorf("the deletion of %s passes", many.Name)
			}
			return nil
		})
		refused(t, admin.Delete(ctx, many), "it holds more than 5 placed copies",
			"kubectl annotate namespaces "+many.Name+" --overwrite hanse.dev/allow-deletion="+string(many.UID))
		allow(t, admin, many, "another-uid")
		refused(t, admin.Delete(ctx, many), "it holds more than 5 placed copies")
		allow(t, admin, many, many.UID)
		must(t, admin.Delete(ctx, many))
		must(t, admin.Delete(ctx, many)) // a second deletion, while the object is being deleted
	})
	t.Run("one with an object that has the label stays", func(t *testing.T) {
		refused(t, admin.Delete(ctx, careful), "it holds ConfigMap "+careful.Name+"/d with the label")
	})
	t.Run("a leader that starts writes nothing, also before it has read the labels", func(t *testing.T) {
		later := &fakeTemplates{heads: map[hubv1.ObjectIdentity]metav1.Object{}}
		keep(t, later)
		before := says(t, admin, map[string]string{careful.Name: "ConfigMap " + careful.Name + "/d with the label hanse.dev/deletion-protection"})
		if before != written {
			t.Errorf("version %s became %s", written, before)
		}
	})
	t.Run("what it holds no more is not protected", func(t *testing.T) {
		must(t, as(t, theCleaner).Delete(ctx, b))
		templates.notify()
		templates.set(id, nil)
		says(t, admin, map[string]string{many.Name: "", careful.Name: ""})
	})
}

func TestADefinitionWithManyCopiesIsDeletedOnlyWhenAllowed(t *testing.T) {
	admin, ctx := installed(t), t.Context()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "gadgets.protect.example.com"}}
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "protect.example.com", Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Singular: "gadget", Kind: "Gadget", ListKind: "GadgetList"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
		}},
	}
	must(t, admin.Create(ctx, crd))
	eventually(t, func() error {
		_, err := admin.RESTMapper().RESTMapping(schema.GroupKind{Group: "protect.example.com", Kind: "Gadget"})
		return err
	})
	ns := newNamespace(t, admin)
	b := binding(ns.Name, "g")
	b.Spec.ObjectRef.APIVersion, b.Spec.ObjectRef.Kind = "protect.example.com/v1", "Gadget"
	for i := range 6 {
		b.Spec.Clusters = append(b.Spec.Clusters, hubv1.BindingTarget{Name: fmt.Sprintf("c-%d", i), State: hubv1.TargetPresent})
	}
	must(t, as(t, theHub).Create(ctx, b))
	templates := &fakeTemplates{heads: map[hubv1.ObjectIdentity]metav1.Object{}, reported: true}
	keep(t, templates)
	says(t, admin, map[string]string{crd.Name: "more than 5 placed copies"})
	eventually(t, func() error {
		if err := admin.Delete(ctx, crd, client.DryRunAll); err == nil {
			return fmt.Errorf("the deletion of %s passes", crd.Name)
		}
		return nil
	})
	refused(t, admin.Delete(ctx, crd), "kubectl annotate customresourcedefinitions "+crd.Name+" --overwrite hanse.dev/allow-deletion="+string(crd.UID))
	refused(t, admin.DeleteAllOf(ctx, &apiextensionsv1.CustomResourceDefinition{}, client.MatchingFields{"metadata.name": crd.Name}), "kubectl annotate")
	allow(t, admin, crd, crd.UID)
	must(t, admin.Delete(ctx, crd))
}

func TestAProtectedObjectIsDeletedOnlyWhenAllowed(t *testing.T) {
	admin, ctx := installed(t), t.Context()
	ns := newNamespace(t, admin)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "careful", Labels: map[string]string{hubv1.DeletionProtectionLabel: "true"}}}
	must(t, admin.Create(ctx, cm))
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "other"}}
	must(t, admin.Create(ctx, other))
	tenant := as(t, aTenant)
	words := "kubectl annotate configmaps careful -n " + ns.Name + " --overwrite hanse.dev/allow-deletion=" + string(cm.UID)
	refused(t, tenant.Delete(ctx, cm), "its label hanse.dev/deletion-protection protects it", words)
	refused(t, admin.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(ns.Name), client.MatchingLabels{hubv1.DeletionProtectionLabel: "true"}), words)
	must(t, tenant.Delete(ctx, other))
	must(t, as(t, theCleaner).Delete(ctx, cm, client.DryRunAll))
	allow(t, admin, cm, cm.UID)
	must(t, tenant.Delete(ctx, cm))

	ns.Labels = map[string]string{hubv1.DeletionProtectionLabel: "true"}
	must(t, admin.Update(ctx, ns))
	refused(t, admin.Delete(ctx, ns), "its label hanse.dev/deletion-protection protects it")
	allow(t, admin, ns, ns.UID)
	must(t, admin.Delete(ctx, ns))
}

func allow(t *testing.T, admin client.Client, o client.Object, uid types.UID) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, hubv1.AllowDeletionAnnotation, uid)
	must(t, admin.Patch(t.Context(), o.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, patch)))
}

func TestAConfigMapThatAUserDeletesIsCreatedAgain(t *testing.T) {
	admin, ctx := installed(t), t.Context()
	hub := asTheHub(t, admin)
	templates := &fakeTemplates{heads: map[hubv1.ObjectIdentity]metav1.Object{}, reported: true}
	k := New(Options{
		Client: hub, APIReader: hub, Mapper: admin.RESTMapper(), Templates: templates, Namespace: hubv1.SystemNamespace, Limit: 5,
		Counted: func() bool { return true },
	})
	b := binding("shop", "web")
	for i := range 8 {
		b.Spec.Clusters = append(b.Spec.Clusters, hubv1.BindingTarget{Name: fmt.Sprintf("c-%d", i), State: hubv1.TargetPresent})
	}
	k.BindingChanged(ctx, changes.Binding{After: b})
	reconcile := func() {
		t.Helper()
		k.lookNow = time.Time{} // as after 30 s
		_, err := k.Reconcile(ctx, Name)
		must(t, err)
	}
	reconcile()
	protected := says(t, admin, map[string]string{"shop": "more than 5 placed copies"})
	must(t, admin.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: Name}}))
	reconcile()
	reconcile()
	if again := says(t, admin, map[string]string{"shop": "more than 5 placed copies"}); again == protected {
		t.Error("the ConfigMap was not deleted")
	}
}
