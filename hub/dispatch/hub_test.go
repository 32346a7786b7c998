package dispatch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/test/apiserver"
)

// served is a dispatcher that watches the objects of a real API server, and writes to a member in memory.
type served struct {
	*testing.T
	client.Client
	cached client.Client // the cached client that the dispatcher reads
	member *given
}

// given is a member that records the applied manifests.
type given struct {
	*fakeMember
	mu sync.Mutex
	of map[string][]any // values of spec.of of all writes, by object name
}

// Apply implements member.Cluster.
func (g *given) Apply(ctx context.Context, in member.ApplyIntent) member.Outcome {
	of, _, _ := unstructured.NestedFieldNoCopy(in.Manifest.Object, "spec", "of")
	g.mu.Lock()
	g.of[in.Manifest.GetName()] = append(g.of[in.Manifest.GetName()], of)
	g.mu.Unlock()
	return g.fakeMember.Apply(ctx, in)
}

func (g *given) snapshot() map[string][]any {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := map[string][]any{}
	for name, of := range g.of {
		out[name] = slices.Clone(of)
	}
	return out
}

// Get implements member.Fleet.
func (g *given) Get(string) (member.Cluster, error) { return g, nil }

// ofBindings returns a hub object for every identity.
type ofBindings struct{}

// Get implements Templates.
func (ofBindings) Get(id hubv1.ObjectIdentity) (*unstructured.Unstructured, bool) {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": id.Group + "/v1", "kind": id.Kind,
		"metadata": map[string]any{"namespace": id.Namespace, "name": id.Name, "uid": "uid-" + id.Name, "generation": int64(1)},
		"spec":     map[string]any{},
	}}, true
}

// StoredOf implements Templates.
func (ofBindings) StoredOf(hubv1.BundleReference) []hubv1.ObjectIdentity { return nil }

// Content implements Templates.
func (ofBindings) Content(hubv1.ObjectIdentity) uint64 { return 1 }

// Live implements Templates.
func (b ofBindings) Live(_ context.Context, id hubv1.ObjectIdentity, _ time.Time) (*unstructured.Unstructured, bool, error) {
	o, _ := b.Get(id)
	return o, false, nil
}

type recorded func(hubv1.BindingObject, string, member.Outcome)

// Record implements Recorder.
func (r recorded) Record(binding hubv1.BindingObject, cluster string, o member.Outcome) {
	r(binding, cluster, o)
}

func serve(t *testing.T) *served {
	t.Helper()
	apiserver.Needed(t)
	ctrl.SetLogger(logr.Discard())
	server := apiserver.Hub()
	config, err := server.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	config.QPS = -1
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, hubv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	informers, err := cache.New(config, cache.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := scopes.IndexTargets(informers); err != nil {
		t.Fatal(err)
	}
	direct, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	cached, err := client.New(config, client.Options{Scheme: scheme, Cache: &client.CacheOptions{Reader: informers}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := &served{T: t, Client: direct, cached: cached, member: &given{fakeMember: takes("eu"), of: map[string][]any{}}}
	d := New(Options{
		Client: cached, APIReader: direct, Fleet: s.member, Templates: ofBindings{},
		Recorder: recorded(func(binding hubv1.BindingObject, _ string, o member.Outcome) {
			if o.Applied == metav1.ConditionFalse {
				t.Errorf("%s: %s: %s", binding.GetName(), o.Reason, o.Message)
			}
		}),
	})
	feed := changes.NewFeed()
	feed.Bindings.On(changes.Added|changes.Deleted|changes.Spec, d.BindingChanged)
	feed.Placements.On(changes.Added|changes.Deleted|changes.Spec, d.PlacementChanged)
	feed.OverridePolicies.On(changes.Added|changes.Deleted|changes.Spec, d.OverridePolicyChanged)
	feed.Clusters.On(changes.Facts|changes.Served|changes.AllowedNamespaces, d.ClusterChanged)
	feed.Namespaces.On(changes.Labels, d.NamespaceChanged)
	if err := feed.Watch(ctx, informers); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- informers.Start(ctx) }()
	informers.WaitForCacheSync(ctx)
	if err := d.Engage(ctx, "eu"); err != nil {
		t.Fatal(err)
	}
	q := d.queue("eu")
	t.Cleanup(func() {
		cancel()
		<-q.ended
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *served) do(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// patchCluster changes the MemberCluster by a merge patch.
func (s *served) patchCluster(patch string, status bool) {
	s.Helper()
	c := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}
	if status {
		s.do(s.Status().Patch(s.Context(), c, client.RawPatch(types.MergePatchType, []byte(patch))))
		return
	}
	s.do(s.Patch(s.Context(), c, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// gets waits until the writes to the member had exactly these values of spec.of. want has the values of all writes, by
// object name.
func (s *served) gets(want map[string][]any) {
	s.Helper()
	s.eventually(func() string { return cmp.Diff(want, s.member.snapshot()) })
}

// eventually waits until check returns an empty text.
func (s *served) eventually(check func() string) {
	s.Helper()
	eventually(s.T, 20*time.Second, check)
}

// A label, the version and the capacity of a cluster change one after the other. Each time, exactly the copies that use
// the changed value are written once.
func TestAFactThatChangesIsRenderedWhereItIsRead(t *testing.T) {
	s := serve(t)
	s.do(s.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}))
	c := clusterWithFacts()
	c.Spec.Connection = hubv1.Connection{Type: hubv1.ConnectionDirect, Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: "eu"}}}
	facts := c.Status
	s.do(s.Create(t.Context(), c))
	c.Status = facts
	s.do(s.Status().Update(t.Context(), c))
	for _, p := range readingPolicies() {
		s.do(s.Create(t.Context(), &p))
	}
	s.eventually(func() string { // wait for the caches, so that each later change is rendered once
		var seen hubv1.MemberCluster
		var policies hubv1.OverridePolicyList
		if err := errors.Join(s.cached.Get(t.Context(), client.ObjectKeyFromObject(c), &seen), s.cached.List(t.Context(), &policies)); err != nil {
			return err.Error()
		}
		return cmp.Diff([]any{len(readingPolicies()), "v1.36.0"}, []any{len(policies.Items), seen.Status.Version.Kubernetes})
	})
	for _, kind := range readingKinds {
		id := hubv1.ObjectIdentity{Group: gizmos, Kind: kind, Namespace: "ns", Name: "one-" + strings.ToLower(kind)}
		b := hubv1.NewBinding(id.BindingKey()).(*hubv1.ResourceBinding)
		b.Spec.ObjectRef = hubv1.ObjectReference{APIVersion: gizmos + "/v1", Kind: kind, Name: id.Name, UID: types.UID("uid-" + id.Name)}
		b.Spec.Clusters = []hubv1.BindingTarget{{Name: "eu", State: hubv1.TargetPresent}}
		s.do(s.Create(t.Context(), b))
	}
	want := map[string][]any{
		"one-label": {"sre"}, "one-selected": {nil}, "one-region": {"eu-central-1"}, "one-version": {"v1.36.0"}, "one-capacity": {"8"}, "one-large": {nil}, "one-plain": {nil},
		"one-operator": {""},
	}
	s.gets(want)
	given := func(name string, of any) { want[name] = append(want[name], of) }

	s.patchCluster(`{"metadata":{"labels":{"team":"shop"}}}`, false)
	given("one-label", "shop")
	s.gets(want)
	s.patchCluster(`{"status":{"version":{"kubernetes":"v1.36.1"}}}`, true)
	given("one-version", "v1.36.1")
	s.gets(want)
	s.patchCluster(`{"status":{"capacity":{"memory":"1Gi"}}}`, true) // no policy reads the memory
	s.patchCluster(`{"status":{"capacity":{"cpu":"64"}}}`, true)
	given("one-capacity", "64")
	given("one-large", "large")
	s.gets(want)
	s.patchCluster(`{"status":{"operators":[{"name":"certs","version":"2.0.0","installed":true},{"name":"rotors","version":"1.0.0","installed":true}]}}`, true)
	given("one-operator", "1.0.0")
	s.gets(want)
	s.patchCluster(`{"status":{"nodes":{"total":3,"ready":3}}}`, true) // no expression can read the nodes
	s.patchCluster(`{"metadata":{"labels":{"tier":"1"}}}`, false)
	given("one-selected", "tier")
	s.gets(want)
}
