package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/health"
	"github.com/hanse-dev/hanse/test/apiserver"
)

var hub *rest.Config

func TestMain(m *testing.M) { os.Exit(apiserver.Run(m, &envtest.Environment{}, &hub)) }

// counted is an API server that counts its reads. A test can disconnect it.
type counted struct {
	client.Client
	reads atomic.Int32
	off   atomic.Bool
}

func (c *counted) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	c.reads.Add(1)
	if c.off.Load() {
		return errors.New("the API server does not answer")
	}
	return c.Client.Get(ctx, key, into, opts...)
}

// reported records the changes for which a catalog calls OnChange's function.
type reported struct {
	mu      sync.Mutex
	changes []string
}

func (t *reported) add(kind schema.GroupKind, before, after *Definition) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changes = append(t.changes, fmt.Sprintf("%s %t %t", kind.Kind, before != nil, after != nil))
}

func (t *reported) all() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.changes...)
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apiextensionsv1.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// start returns a catalog that watches the API server.
func start(t *testing.T) (*Catalog, *counted, *reported) {
	t.Helper()
	apiserver.Needed(t)
	c, err := client.New(hub, client.Options{Scheme: scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	informers, err := cache.New(hub, cache.Options{Scheme: scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	server, changes := &counted{Client: c}, &reported{}
	catalog := New(server, c.RESTMapper())
	catalog.OnChange(changes.add)
	var running sync.WaitGroup
	running.Go(func() { _ = informers.Start(t.Context()) })
	t.Cleanup(running.Wait)
	if err := catalog.Watch(t.Context(), informers); err != nil {
		t.Fatal(err)
	}
	informers.WaitForCacheSync(t.Context())
	return catalog, server, changes
}

// define creates the kind Gauge in a new group, and waits until the API server serves it.
func define(t *testing.T, c client.Client) (*apiextensionsv1.CustomResourceDefinition, schema.GroupKind) {
	t.Helper()
	group := rand.String(8) + ".example.com"
	gauge := schema.GroupKind{Group: group, Kind: "Gauge"}
	anything := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
		Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"spec":   {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"replicas": {Type: "integer"}}},
			"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"mode": {Type: "string"}, "replicas": {Type: "integer"}}},
		},
	}}
	scaled := &apiextensionsv1.CustomResourceSubresources{
		Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
		Scale:  &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas"},
	}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "gauges." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "gauges", Kind: "Gauge", Singular: "gauge", ListKind: "GaugeList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{Name: "v1alpha1", Served: false, Schema: anything}, {Name: "v1", Served: true, Storage: true, Schema: anything, Subresources: scaled},
			},
		},
	}
	if err := c.Create(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the kind is served", func() error {
		_, err := c.RESTMapper().RESTMapping(gauge)
		return err
	})
	return crd, gauge
}

func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting until %s: %v: %v", what, err, last)
	}
}

func TestAChangedDefinitionCountsAtOnce(t *testing.T) {
	t.Parallel()
	c, server, changes := start(t)
	crd, gauge := define(t, server.Client)
	if d := c.Known(gauge); d != nil || server.reads.Load() != 0 {
		t.Fatalf("before anybody asks, %v is known after %d reads", d, server.reads.Load())
	}
	for range 3 {
		d, err := c.Get(t.Context(), gauge)
		if err != nil {
			t.Fatal(err)
		}
		v, err := d.Version("v1")
		if err != nil || !v.StatusSubresource || !v.Status.HasStatus() || d.ScalePath() != ".spec.replicas" || len(v.Conventions.Columns) != 0 {
			t.Fatalf("version v1 is %+v, %v", v, err)
		}
		if _, err := d.Version("v9"); err == nil {
			t.Fatal("a version that there is not is known")
		}
	}
	patch := client.MergeFrom(crd.DeepCopy())
	crd.Spec.Versions[1].AdditionalPrinterColumns = []apiextensionsv1.CustomResourceColumnDefinition{{Name: "Status", Type: "string", JSONPath: ".status.mode"}}
	if err := server.Client.Patch(t.Context(), crd, patch); err != nil {
		t.Fatal(err)
	}
	want := []health.Column{{Name: "Status", Path: []string{"status", "mode"}}}
	eventually(t, "the new column is known", func() error {
		v, err := c.Known(gauge).Version("v1")
		if diff := cmp.Diff(want, v.Conventions.Columns); diff != "" || err != nil {
			return fmt.Errorf("%s %w", diff, err)
		}
		return nil
	})
	if err := server.Client.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the definition is known", func() error {
		d, err := c.Get(t.Context(), gauge)
		if got := changes.all(); d != nil || err != nil || len(got) < 2 || got[len(got)-1] != "Gauge true false" {
			return fmt.Errorf("%v, %w; told of %v", d, err, got)
		}
		return nil
	})
}

func TestADefinitionIsReadOnceForAllWhoAsk(t *testing.T) {
	t.Parallel()
	c, server, _ := start(t)
	crd, gauge := define(t, server.Client)
	var asking sync.WaitGroup
	for range 20 {
		asking.Go(func() {
			if d, err := c.Get(t.Context(), gauge); d == nil || err != nil {
				t.Errorf("got %v, %v", d, err)
			}
		})
	}
	asking.Wait()
	label := client.MergeFrom(crd.DeepCopy())
	crd.Labels = map[string]string{"team": "platform"}
	if err := server.Client.Patch(t.Context(), crd, label); err != nil {
		t.Fatal(err)
	}
	_, later := define(t, server.Client) // the event of later comes after the event of the label
	if _, err := c.Get(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(t.Context(), gauge); err != nil || server.reads.Load() != 2 {
		t.Errorf("two definitions were read %d times, %v", server.reads.Load(), err)
	}
}

func TestTheLastAnswerHoldsWhileTheServerDoesNotAnswer(t *testing.T) {
	t.Parallel()
	c, server, _ := start(t)
	_, gauge := define(t, server.Client)
	server.off.Store(true)
	if d, err := c.Get(t.Context(), gauge); d != nil || err == nil {
		t.Errorf("of a definition that cannot be read got %v, %v", d, err)
	}
	server.off.Store(false)
	known, err := c.Get(t.Context(), gauge)
	if err != nil || known == nil {
		t.Fatalf("got %v, %v", known, err)
	}
	if !c.Invalidate(gauge, known.ResourceVersion) {
		t.Error("what is doubted the first time is not read again")
	}
	server.off.Store(true)
	if d, err := c.Get(t.Context(), gauge); d != known || err != nil {
		t.Errorf("while the server is off got %v, %v", d, err)
	}
	server.off.Store(false)
	if d, err := c.Get(t.Context(), gauge); d != known || err != nil {
		t.Errorf("of an unchanged definition got %v, %v", d, err)
	}
	if c.Invalidate(gauge, known.ResourceVersion) {
		t.Error("one definition is doubted twice")
	}
	if !c.Invalidate(gauge, "an older one") {
		t.Error("who acts by an older definition is not told to look again")
	}
}

func TestKindsWithoutADefinition(t *testing.T) {
	t.Parallel()
	c, server, _ := start(t)
	deployment := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	for range 2 {
		d, err := c.Get(t.Context(), deployment)
		if v, versionErr := d.Version("v1"); d != nil || err != nil || versionErr != nil || v.StatusSubresource || d.ScalePath() != "" {
			t.Errorf("of a Deployment got %v, %v, %v, %v", d, err, v, versionErr)
		}
	}
	if n := server.reads.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	if _, err := c.Get(t.Context(), schema.GroupKind{Group: "nowhere.example.com", Kind: "Nothing"}); !meta.IsNoMatchError(err) {
		t.Errorf("of a kind that is not served got %v", err)
	}
}

func TestAHubObjectHasTheVersionsOfItsDefinition(t *testing.T) {
	t.Parallel()
	c, server, changes := start(t)
	crd, gauge := define(t, server.Client)
	ref := hubv1.ObjectReference{APIVersion: gauge.Group + "/v1", Kind: gauge.Kind}
	template := &unstructured.Unstructured{}
	template.SetGroupVersionKind(gauge.WithVersion("v1"))
	template.SetGeneration(4)
	is := func(template *unstructured.Unstructured, want hubv1.HubObject) func() error {
		return func() error {
			got, err := c.HubObject(t.Context(), ref, template)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				return fmt.Errorf("%s %w", diff, err)
			}
			return nil
		}
	}
	if err := is(template, hubv1.HubObject{GVK: gauge.WithVersion("v1"), Generation: 4})(); err != nil {
		t.Errorf("with one served version: %s", err)
	}
	before := c.Known(gauge)
	patch := client.MergeFrom(crd.DeepCopy())
	newer := crd.Spec.Versions[1]
	newer.Name, newer.Storage = "v2", false
	crd.Spec.Versions = append(crd.Spec.Versions, newer)
	if err := server.Client.Patch(t.Context(), crd, patch); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new version is known", is(template, hubv1.HubObject{GVK: gauge.WithVersion("v1"), OtherVersions: []string{"v2"}, Generation: 4}))
	eventually(t, "it is told that the versions have changed", func() error {
		if len(changes.all()) == 0 || c.Known(gauge).SameVersions(before) {
			return errors.New("not told")
		}
		return nil
	})
	if err := is(nil, hubv1.HubObject{GVK: gauge.WithVersion("v2"), OtherVersions: []string{"v1"}})(); err != nil {
		t.Errorf("an object that is not known has not the version that the hub prefers: %s", err)
	}
	core := hubv1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap"}
	if got, err := c.HubObject(t.Context(), core, nil); err != nil || len(got.OtherVersions) > 0 || got.GVK.Version != "v1" {
		t.Errorf("a kind without a definition: %+v, %v", got, err)
	}
	server.off.Store(true)
	if got, err := c.HubObject(t.Context(), hubv1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment"}, nil); err == nil || got.GVK.Kind != "Deployment" {
		t.Errorf("a definition that cannot be read: %+v, %v", got, err)
	}
}
