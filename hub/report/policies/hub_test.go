package policies

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/internal/informer"
	"github.com/hanse-dev/hanse/test/apiserver"
)

var hubConfig *rest.Config

func TestMain(m *testing.M) { os.Exit(apiserver.Run(m, apiserver.Hub(), &hubConfig)) }

// fakeTemplates has no objects, and the same watch state for every kind.
type fakeTemplates struct {
	mu      sync.Mutex
	state   informer.State
	onState func(schema.GroupKind)
	unread  bool // true: the stored objects of bundles are not read yet
}

func (f *fakeTemplates) Head(hubv1.ObjectIdentity) (metav1.Object, bool) {
	return nil, false
}

func (f *fakeTemplates) StoredState() informer.State { return informer.State{Synced: !f.unread} }

func (f *fakeTemplates) Get(hubv1.ObjectIdentity) (*unstructured.Unstructured, bool) {
	return nil, false
}

func (f *fakeTemplates) StoredOf(hubv1.BundleReference) []hubv1.ObjectIdentity {
	return nil
}

func (f *fakeTemplates) Watches(schema.GroupKind, string) bool { return true }

func (f *fakeTemplates) Wanted(string) []schema.GroupKind { return []schema.GroupKind{prometheus} }

func (f *fakeTemplates) OnChange(func(hubv1.ObjectIdentity))       {}
func (f *fakeTemplates) OnState(onState func(gk schema.GroupKind)) { f.onState = onState }

func (f *fakeTemplates) State(schema.GroupKind) (informer.State, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state, true
}

func (f *fakeTemplates) set(s informer.State) {
	f.mu.Lock()
	f.state = s
	f.mu.Unlock()
	f.onState(prometheus)
}

var prometheus = schema.GroupKind{Group: "monitoring.coreos.com", Kind: "Prometheus"}

// start runs the controllers until the test ends.
func start(t *testing.T, templates Templates) client.Client {
	t.Helper()
	apiserver.Needed(t)
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, hubv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	yes := true
	mgr, err := manager.New(hubConfig, manager.Options{
		Scheme: s, Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", Controller: config.Controller{SkipNameValidation: &yes},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := New(Options{Client: mgr.GetClient(), Templates: templates, HubRunsWorkloads: func() bool { return false }, Events: events.NewFakeRecorder(100)})
	ctx, cancel := context.WithCancel(t.Context())
	if err := c.SetupWithManager(ctx, mgr); err != nil {
		t.Fatal(err)
	}
	feed := changes.NewFeed()
	feed.Bindings.On(changes.All, c.BindingChanged)
	feed.Placements.On(changes.All, c.PlacementChanged)
	feed.OverridePolicies.On(changes.All, c.OverridePolicyChanged)
	feed.Clusters.On(changes.Added|changes.Deleted|changes.Facts|changes.Region, c.ClusterChanged)
	feed.Namespaces.On(changes.Labels, c.NamespaceChanged)
	if err := feed.Watch(ctx, mgr.GetCache()); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	direct, err := client.New(hubConfig, client.Options{Scheme: s})
	if err != nil {
		t.Fatal(err)
	}
	return direct
}

func eventually(t *testing.T, c client.Client, o client.Object, what string, is func() bool) {
	t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			t.Fatal(err)
		}
		if is() {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			text, _ := json.MarshalIndent(o, "", " ")
			t.Fatalf("waiting for %s; last seen: %s", what, text)
		}
	}
}

func namespace(t *testing.T, c client.Client) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "policy-"}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

// memberCluster creates a MemberCluster in the region cn.
func memberCluster(t *testing.T, c client.Client, name string) *hubv1.MemberCluster {
	t.Helper()
	cluster := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{hubv1.RegionLabel: "cn"}}}
	cluster.Spec.Connection = hubv1.Connection{
		Type: "Direct", Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: name, Key: "kubeconfig"}},
	}
	cluster.Spec.AllowedNamespaces.From = hubv1.NamespacesFromAll
	if err := c.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	return cluster
}

// follow creates a binding that follows the placement, with the given row for cluster cn-1.
func follow(t *testing.T, c client.Client, p *hubv1.Placement, name string, row hubv1.ClusterRow, applied metav1.ConditionStatus) {
	t.Helper()
	b := binding(name, applied, applied, "cn-1")
	b.Namespace = p.Namespace
	b.Spec.ObjectRef.UID = "u"
	b.Spec.PlacementRef = &hubv1.PlacementReference{Kind: "Placement", Namespace: p.Namespace, Name: p.Name, UID: p.UID, Generation: 1}
	status := b.Status
	if err := c.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	row.Name = "cn-1"
	b.Status = status
	b.Status.Clusters = []hubv1.ClusterRow{row}
	for i := range b.Status.Conditions {
		b.Status.Conditions[i].LastTransitionTime = metav1.Now()
	}
	if err := c.Status().Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

func has(conditions []metav1.Condition, kind string, status metav1.ConditionStatus, reason string) bool {
	c := meta.FindStatusCondition(conditions, kind)
	return c != nil && c.Status == status && c.Reason == reason
}

func TestPlacementStatus(t *testing.T) {
	templates := &fakeTemplates{state: informer.State{Synced: true}}
	c := start(t, templates)
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: namespace(t, c), Name: "metrics"}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{APIGroup: prometheus.Group, Kind: prometheus.Kind}}
	p.Spec.Clusters.LabelSelector = &metav1.LabelSelector{}
	if err := c.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	eventually(t, c, p, "a placement that nothing follows", func() bool {
		return has(p.Status.Conditions, hubv1.ConditionAccepted, metav1.ConditionTrue, hubv1.ReasonAccepted) &&
			has(p.Status.Conditions, hubv1.ConditionApplied, metav1.ConditionUnknown, hubv1.ReasonNothingSelected)
	})

	follow(t, c, p, "web", hubv1.ClusterRow{Applied: metav1.ConditionTrue}, metav1.ConditionTrue)
	eventually(t, c, p, "one object", func() bool {
		return p.Status.Objects == 1 && p.Status.SelectedClusters == 1 &&
			has(p.Status.Conditions, hubv1.ConditionApplied, metav1.ConditionTrue, hubv1.ReasonAppliedEverywhere)
	})

	winner := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "winner", UID: "w"}}
	follow(t, c, winner, "db", hubv1.ClusterRow{Applied: metav1.ConditionTrue}, metav1.ConditionTrue)
	lost := &hubv1.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "db"}}
	if err := c.Status().Patch(t.Context(), lost, client.RawPatch(types.MergePatchType, []byte(`{"status":{"otherPlacements":["Placement/metrics"]}}`))); err != nil {
		t.Fatal(err)
	}
	eventually(t, c, p, "another object that follows another placement", func() bool {
		scheduled := meta.FindStatusCondition(p.Status.Conditions, hubv1.ConditionScheduled)
		return p.Status.Objects == 1 && scheduled != nil &&
			strings.HasSuffix(scheduled.Message, "/db, which follows Placement/winner")
	})

	templates.set(informer.State{Reason: hubv1.ReasonServerError, Message: "conversion webhook failed"})
	eventually(t, c, p, "the kind that cannot be read", func() bool {
		return has(p.Status.Conditions, hubv1.ConditionScheduled, metav1.ConditionUnknown, hubv1.ReasonKindUnreadable) &&
			has(p.Status.Conditions, hubv1.ConditionReady, metav1.ConditionUnknown, hubv1.ReasonKindUnreadable) &&
			strings.Contains(meta.FindStatusCondition(p.Status.Conditions, hubv1.ConditionScheduled).Message, "conversion webhook failed")
	})
	templates.set(informer.State{Synced: true})
	eventually(t, c, p, "the kind to be read again", func() bool {
		return meta.FindStatusCondition(p.Status.Conditions, hubv1.ConditionScheduled).Reason != hubv1.ReasonKindUnreadable
	})

	templates.set(informer.State{Synced: true, Reason: hubv1.ReasonKindNotServed})
	eventually(t, c, p, "the kind to be missed", func() bool {
		return has(p.Status.Conditions, hubv1.ConditionAccepted, metav1.ConditionFalse, hubv1.ReasonKindNotServed)
	})
}

func TestOverridePolicyStatus(t *testing.T) {
	c := start(t, &fakeTemplates{state: informer.State{Synced: true}})
	memberCluster(t, c, "cn-1")
	ns := namespace(t, c)
	selectors := []hubv1.ResourceSelector{{APIGroup: prometheus.Group, Kind: prometheus.Kind}}
	policy := &hubv1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "metrics"}}
	policy.Spec.ResourceSelectors = selectors
	policy.Spec.Rules = []hubv1.OverrideRule{{
		Name:     "busy",
		Clusters: &hubv1.RuleClusters{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{hubv1.RegionLabel: "cn"}}},
		Patches:  []hubv1.PatchOperation{{Op: hubv1.PatchReplace, Path: "/spec/replicas", Value: &apiextensionsv1.JSON{Raw: []byte("5")}}},
	}}
	if err := c.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "metrics", UID: "p"}}
	follow(t, c, p, "web", hubv1.ClusterRow{Applied: metav1.ConditionTrue}, metav1.ConditionTrue)
	eventually(t, c, policy, "a rule that matches", func() bool {
		return has(policy.Status.Conditions, hubv1.ConditionAccepted, metav1.ConditionTrue, hubv1.ReasonAccepted) &&
			has(policy.Status.Conditions, hubv1.ConditionConflicted, metav1.ConditionFalse, hubv1.ReasonNoConflict) &&
			cmp.Equal(policy.Status.Rules, []hubv1.RuleStatus{{Name: "busy", Rank: "Namespaced/0/region/1", Objects: 1, Clusters: 1}})
	})

	message := fmt.Sprintf("OverridePolicy %s/metrics, rule \"busy\", and OverridePolicy %s/other, rule \"x\", both of rank r, disagree about path /spec/replicas", ns, ns)
	follow(t, c, p, "db", hubv1.ClusterRow{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonOverrideConflict, Message: message}, metav1.ConditionFalse)
	eventually(t, c, policy, "the conflict", func() bool {
		return has(policy.Status.Conditions, hubv1.ConditionConflicted, metav1.ConditionTrue, hubv1.ReasonOverrideClash)
	})

	message = fmt.Sprintf("OverridePolicy %s/metrics, rule \"busy\": /spec/replicas: must be an integer, by the cluster's schema", ns)
	follow(t, c, p, "cache", hubv1.ClusterRow{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonOverrideInvalid, Message: message}, metav1.ConditionFalse)
	eventually(t, c, policy, "an object that the policy breaks", func() bool {
		return has(policy.Status.Conditions, hubv1.ConditionAccepted, metav1.ConditionFalse, hubv1.ReasonOverrideInvalid)
	})
}
