package inventory

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/inventory/profile"
	"github.com/hanse-dev/hanse/test/apiserver"
	"github.com/hanse-dev/hanse/test/charts"
	"github.com/hanse-dev/hanse/test/operators"
)

const namespace = "fleet"

var config *rest.Config

func TestMain(m *testing.M) { os.Exit(apiserver.Run(m, apiserver.Hub(), &config)) }

// world is a hub whose account has the rights of the chart alone.
type world struct {
	*testing.T
	client.Client
	decisions *Decisions
}

func newWorld(t *testing.T) *world {
	t.Helper()
	apiserver.Needed(t)
	scheme := runtime.NewScheme()
	w := &world{T: t}
	w.must(clientgoscheme.AddToScheme(scheme))
	w.must(hubv1.AddToScheme(scheme))
	var err error
	w.Client, err = client.New(config, client.Options{Scheme: scheme})
	w.must(err)
	w.must(w.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	const account = "system:serviceaccount:hanse-system:hanse-hub"
	for _, o := range charts.Render(t, "hanse-hub/templates/inventory.yaml", map[string]any{"inventory": map[string]any{"namespace": namespace}}) {
		w.must(w.Create(t.Context(), o))
	}
	reads := rbacv1.PolicyRule{APIGroups: []string{hubv1.GroupVersion.Group}, Resources: []string{
		"memberclusters", "placements", "clusterplacements", "resourcebindings", "clusterresourcebindings",
	}, Verbs: []string{"list", "watch"}}
	w.must(w.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reads"}, Rules: []rbacv1.PolicyRule{reads}}))
	w.must(w.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reads"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reads"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: account}},
	}))
	apiserver.AwaitRights(t, config, account, "", reads)
	as := rest.CopyConfig(config)
	as.Impersonate = rest.ImpersonationConfig{UserName: account}
	w.run(as, scheme)
	return w
}

// run runs the controller until the test ends.
func (w *world) run(as *rest.Config, scheme *runtime.Scheme) {
	mgr, err := ctrl.NewManager(as, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	w.must(err)
	c := New(mgr.GetClient(), namespace)
	c.pause = 50 * time.Millisecond
	w.must(c.SetupWithManager(mgr))
	w.decisions = NewDecisions(mgr.GetClient(), namespace)
	w.decisions.pause, w.decisions.coalesce = 50*time.Millisecond, time.Millisecond
	w.must(mgr.Add(manager.RunnableFunc(w.decisions.Lead)))
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	w.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.Errorf("the manager ended: %v", err)
		}
	})
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) eventually(what string, check func() error) {
	w.Helper()
	var last error
	err := wait.PollUntilContextTimeout(w.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		w.Fatalf("%s: %v", what, last)
	}
}

func (w *world) profile(name string) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(profile.Kind)
	return o, w.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o)
}

func (w *world) join(name string) *hubv1.MemberCluster {
	w.Helper()
	c := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: hubv1.MemberClusterSpec{
		Connection:        hubv1.Connection{Type: hubv1.ConnectionTunnel, Tunnel: &hubv1.TunnelConnection{}},
		AllowedNamespaces: hubv1.AllowedNamespaces{From: hubv1.NamespacesFromAll},
	}}
	w.must(w.Create(w.Context(), c))
	now := metav1.Now()
	c.Status.ClusterID, c.Status.LastObservedTime, c.Status.Version.Kubernetes = "uid-"+name, &now, "v1.36.3"
	c.Status.Operators = []hubv1.OperatorFact{{Name: "prometheus", Version: "0.92.1", Installed: true}}
	c.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: metav1.ConditionTrue, Reason: "WatchesDeliver", LastTransitionTime: now}}
	w.must(w.Status().Update(w.Context(), c))
	return c
}

// shows returns an error unless the profile of a cluster has the operator at a version.
func (w *world) shows(name, version string) func() error {
	return func() error {
		o, err := w.profile(name)
		if err != nil {
			return err
		}
		properties, _, _ := unstructured.NestedSlice(o.Object, "status", "properties")
		for _, at := range properties {
			at := at.(map[string]any)
			if at["name"] == "operators.hanse.dev/prometheus" && at["value"] == version && at["lastObservedTime"] != nil {
				return nil
			}
		}
		return fmt.Errorf("got %v", o.Object["status"])
	}
}

// TestMembersArePublished begins on a hub without the definitions of cluster-inventory-api, and installs those of
// v0.1.2 later.
func TestMembersArePublished(t *testing.T) {
	w := newWorld(t)
	eu := w.join("eu")
	definitions := operators.Definitions(t)
	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{
		definitions[profile.Kind.GroupKind()], definitions[profile.DecisionKind.GroupKind()],
	}})
	w.must(err)
	w.eventually("the profile of eu", w.shows("eu", "0.92.1"))

	eu.Status.Operators[0].Version = "0.93.0"
	w.must(w.Status().Update(t.Context(), eu))
	w.eventually("the new version", w.shows("eu", "0.93.0"))
	o, err := w.profile("eu")
	w.must(err)
	if version, _, _ := unstructured.NestedString(o.Object, "status", "version", "kubernetes"); version != "v1.36.3" || o.GetLabels()[profile.ManagerLabel] != "hanse" {
		t.Errorf("got %v", o.Object)
	}

	foreign := profile.Profile{Name: "cn"}.New(namespace)
	w.must(unstructured.SetNestedField(foreign.Object, "other", "spec", "clusterManager", "name"))
	w.must(w.Create(t.Context(), foreign))
	cn := w.join("cn")
	us := w.join("us") // reconciled after cn
	w.eventually("the profile of us", w.shows("us", "0.92.1"))
	for _, c := range []*hubv1.MemberCluster{eu, cn, us} {
		w.must(w.Delete(t.Context(), c))
	}
	for _, name := range []string{"eu", "us"} {
		w.eventually("the end of the profile of "+name, func() error {
			if _, err := w.profile(name); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		})
	}
	if o, err := w.profile("cn"); err != nil || o.Object["status"] != nil {
		t.Errorf("the profile of another manager was changed: %v, %v", err, o.Object["status"])
	}
	w.sweeps()
	w.decides()
}

// decides is the life of a placement. The test changes bindings as the scheduler does.
func (w *world) decides() {
	w.Helper()
	placement := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}, Spec: hubv1.PlacementSpec{
		ResourceSelectors: []hubv1.ResourceSelector{{Kind: "ConfigMap"}}, Clusters: hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{}},
	}}
	w.must(w.Create(w.Context(), placement))
	w.eventually("the decision without objects", w.chooses("[]"))
	target := hubv1.BindingTarget{Name: "eu", State: hubv1.TargetPresent}
	b := &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "configmap-web"}}
	b.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "web", UID: "uid"}
	b.Spec.PlacementRef = &hubv1.PlacementReference{Kind: "Placement", Namespace: "default", Name: "web", UID: placement.UID}
	b.Spec.Clusters = []hubv1.BindingTarget{target}
	w.must(w.Create(w.Context(), b))
	w.eventually("the decision for one cluster", w.chooses("[map[clusterProfileRef:map[name:eu namespace:fleet]]]"))
	w.must(w.Delete(w.Context(), b))
	w.eventually("the decision after the object", w.chooses("[]"))
	w.must(w.Delete(w.Context(), placement))
	w.eventually("the end of the decision", w.chooses("none"))
}

// chooses returns an error unless the only PlacementDecision has these decisions.
func (w *world) chooses(want string) func() error {
	return func() error {
		w.decisions.wake() // as the hub's watches do
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(profile.DecisionKind.GroupVersion().WithKind("PlacementDecisionList"))
		if err := w.List(w.Context(), list, client.InNamespace(namespace)); err != nil {
			return err
		}
		got := "none"
		if len(list.Items) > 0 {
			got = fmt.Sprint(list.Items[0].Object["decisions"])
		}
		if got != want || len(list.Items) > 1 {
			return fmt.Errorf("%d decisions, %s", len(list.Items), got)
		}
		return nil
	}
}

// sweeps is a start of the hub after a cluster left without it.
func (w *world) sweeps() {
	w.Helper()
	for _, p := range []profile.Profile{{Name: "gone", Labels: map[string]string{profile.ManagerLabel: profile.Manager}}, {Name: "unlabelled"}} {
		w.must(w.Create(w.Context(), p.New(namespace)))
	}
	w.must(New(w.Client, namespace).sweep(w.Context()))
	if _, err := w.profile("gone"); !apierrors.IsNotFound(err) {
		w.Errorf("the profile of a cluster that left stays: %v", err)
	}
	if _, err := w.profile("unlabelled"); err != nil {
		w.Errorf("a profile without the label: %v", err)
	}
}
