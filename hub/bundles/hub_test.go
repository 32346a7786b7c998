package bundles

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/chart"
	"github.com/hanse-dev/hanse/bundles/manifest"
	"github.com/hanse-dev/hanse/hub/bundles/fetch"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/hub/store/revisions"
	"github.com/hanse-dev/hanse/hub/store/templates"
	"github.com/hanse-dev/hanse/internal/canonical"
	"github.com/hanse-dev/hanse/test/apiserver"
)

var hubConfig *rest.Config

func TestMain(m *testing.M) { os.Exit(apiserver.Run(m, apiserver.Hub(), &hubConfig)) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is a namespace with Bundles. Their objects are stored in a second namespace.
type world struct {
	*testing.T
	config            *rest.Config
	admin             client.Client
	namespace, system string
	charts            *fetch.Fetcher
	checks            bool               // whether the hub asks for new versions of charts
	clock             clock.PassiveClock // clock of the hub; nil: the clock of the system
	control           *Controller
	events            chan string // the texts of events
	// through wraps the client of the hub. It is nil if the hub writes as usual.
	through func(client.Client) client.Client
}

func newWorld(t *testing.T, name string, server *rest.Config) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, errors.Join(clientgoscheme.AddToScheme(scheme), hubv1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme)))
	admin, err := client.New(server, client.Options{Scheme: scheme})
	must(t, err)
	w := &world{T: t, config: server, admin: admin, namespace: name, system: name + "-system", charts: fetch.New(fetch.Options{}), events: make(chan string, 1000)}
	for _, ns := range []string{w.namespace, w.system} {
		must(t, admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	}
	return w
}

var key = canonical.Key("key")

// revisions returns a store of the lists of bundles that writes with a client.
func (w *world) revisions(c client.Client) *revisions.Store {
	w.Helper()
	uncached, err := client.NewWithWatch(w.config, client.Options{Scheme: w.admin.Scheme()})
	must(w.T, err)
	return revisions.New(revisions.Options{Client: c, Reader: uncached, Namespace: w.system, Key: key})
}

// lead runs the controller for the Bundles of the namespace until the end of the test, or until stop is called.
func (w *world) lead() (stop func()) {
	w.Helper()
	yes := true
	mgr, err := manager.New(w.config, manager.Options{
		Scheme: w.admin.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: config.Controller{SkipNameValidation: &yes},
		Cache:      cache.Options{ByObject: map[client.Object]cache.ByObject{&hubv1.Bundle{}: {Namespaces: map[string]cache.Config{w.namespace: {}}}}},
	})
	must(w.T, err)
	store, err := templates.New(w.config, mgr.GetAPIReader(), w.system, nil)
	must(w.T, err)
	c, direct := mgr.GetClient(), w.admin
	if w.through != nil {
		c, direct = w.through(c), w.through(direct)
	}
	w.control = New(Options{
		Client: c, APIReader: mgr.GetAPIReader(), Mapper: mgr.GetRESTMapper(), Templates: store,
		Events: &events.FakeRecorder{Events: w.events}, Namespace: w.system, Charts: w.charts, Render: chart.Render,
		CheckVersions: w.checks, Clock: w.clock, Sets: w.revisions(direct), Key: key,
	})
	must(w.T, w.control.SetupWithManager(mgr))
	must(w.T, mgr.Add(store))
	ctx, cancel := context.WithCancel(w.Context())
	feed := changes.NewFeed()
	feed.Bindings.On(changes.Added|changes.Spec, w.control.BindingChanged)
	feed.Bindings.On(changes.Deleted, w.control.BindingDeleted)
	feed.SetRollouts.On(changes.Deleted|changes.Spec, w.control.SetRolloutChanged)
	feed.Bundles.On(changes.Added|changes.Deleted|changes.Spec|changes.Ending|changes.Labels|changes.Verbs, w.control.BundleChanged)
	must(w.T, feed.Watch(ctx, mgr.GetCache()))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		<-mgr.Elected() // a manager that is stopped while its parts start may wait for them in vain
		mgr.GetCache().WaitForCacheSync(ctx)
		cancel()
		if err := <-ended; err != nil {
			w.Errorf("the manager ended: %v", err)
		}
	})
	w.Cleanup(stop)
	return stop
}

// grant gives the account default of the namespace these rights in the namespace.
func (w *world) grant(rules ...rbacv1.PolicyRule) {
	w.Helper()
	must(w.T, w.admin.Create(w.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "bundles"}, Rules: rules}))
	must(w.T, w.admin.Create(w.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "bundles"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "bundles"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.namespace, Name: "default"}},
	}))
	apiserver.AwaitRights(w.T, w.config, "system:serviceaccount:"+w.namespace+":default", w.namespace, rules...)
}

// writing returns the right to write all objects of a resource.
func writing(group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"get", "create", "update", "delete"}}
}

// bundle creates a Bundle.
func (w *world) bundle(name string, manifests ...string) *hubv1.Bundle {
	w.Helper()
	b := &hubv1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	for _, m := range manifests {
		b.Spec.Manifests = append(b.Spec.Manifests, runtime.RawExtension{Raw: []byte(m)})
	}
	must(w.T, w.admin.Create(w.Context(), b))
	return b
}

func configMap(name string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"},"data":{"a":"b"}}`
}

func (w *world) id(name string) hubv1.ObjectIdentity {
	return hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: w.namespace, Name: name}
}

// stored returns the stored objects by name. The name of a removed object has the prefix "-".
func (w *world) stored() map[string]manifest.Stored {
	w.Helper()
	var list corev1.SecretList
	must(w.T, w.admin.List(w.Context(), &list, client.InNamespace(w.system), client.HasLabels{hubv1.ManifestLabel}))
	out := map[string]manifest.Stored{}
	for _, secret := range list.Items {
		s, err := manifest.ReadStored(&secret)
		must(w.T, err)
		name := s.Manifest.GetName()
		if !s.Removed.IsZero() {
			name = "-" + name
		}
		out[name] = s
	}
	return out
}

func (w *world) eventually(what string, try func() error) {
	w.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(w.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		last = try()
		return last == nil, nil
	}); err != nil {
		w.Fatalf("waiting until %s: %v", what, last)
	}
}

// stores waits until exactly these objects are stored.
func (w *world) stores(names ...string) {
	w.Helper()
	w.eventually(fmt.Sprintf("%q are stored", names), func() error {
		stored := w.stored()
		for _, name := range names {
			if _, ok := stored[name]; !ok {
				return fmt.Errorf("stored are %v", stored)
			}
		}
		if len(stored) != len(names) {
			return fmt.Errorf("stored are %v", stored)
		}
		return nil
	})
}

// condition reads the condition Stored of a bundle.
func (w *world) condition(b *hubv1.Bundle) metav1.Condition {
	w.Helper()
	must(w.T, w.admin.Get(w.Context(), client.ObjectKeyFromObject(b), b))
	if c := meta.FindStatusCondition(b.Status.Conditions, hubv1.ConditionStored); c != nil && c.ObservedGeneration == b.Generation {
		return *c
	}
	return metav1.Condition{}
}

func (w *world) says(b *hubv1.Bundle, reason, message string) {
	w.Helper()
	w.eventually(fmt.Sprintf("Bundle %s says %s", b.Name, reason), func() error {
		if c := w.condition(b); c.Reason != reason || !strings.Contains(c.Message, message) {
			return fmt.Errorf("it says %s: %q", c.Reason, c.Message)
		}
		return nil
	})
}

// cut sets the manifests of a bundle.
func (w *world) cut(b *hubv1.Bundle, manifests ...string) {
	w.Helper()
	patch := `{"spec":{"manifests":[` + strings.Join(manifests, ",") + `]}}`
	must(w.T, w.admin.Patch(w.Context(), b, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// bind creates the binding of a stored object.
func (w *world) bind(b *hubv1.Bundle, name string) *hubv1.ResourceBinding {
	w.Helper()
	binding := hubv1.NewBinding(w.id(name).BindingKey()).(*hubv1.ResourceBinding)
	binding.Spec.ObjectRef = hubv1.ObjectReference{
		APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: b.UID, Bundle: &hubv1.BundleReference{Kind: hubv1.BundleKind, Namespace: b.Namespace, Name: b.Name},
	}
	must(w.T, w.admin.Create(w.Context(), binding))
	return binding
}

func TestABundleWithRolesNeedsTheRightsToEscalateAndBind(t *testing.T) {
	t.Parallel()
	apiserver.Needed(t)
	w := newWorld(t, "roles", hubConfig)
	w.grant(writing("rbac.authorization.k8s.io", "roles", "rolebindings"), writing("", "configmaps"))
	w.lead()
	b := w.bundle("web", configMap("a"),
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"all"},"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"all"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"}}`)
	w.says(b, hubv1.ReasonAccountMayNot, "ServiceAccount roles/default of the hub needs the right to "+
		"bind clusterroles.rbac.authorization.k8s.io in namespace roles; bind, escalate roles.rbac.authorization.k8s.io in namespace roles; the stored objects stay")
	w.stores()
}

func TestABundleThatWasDeletedWhileNoReplicaLedLosesItsObjects(t *testing.T) {
	t.Parallel()
	apiserver.Needed(t)
	w := newWorld(t, "deleted", hubConfig)
	w.grant(writing("", "configmaps"))
	stop := w.lead()
	b, other := w.bundle("web", configMap("a"), configMap("b")), w.bundle("other", configMap("c"))
	w.says(b, hubv1.ReasonStored, "")
	w.says(other, hubv1.ReasonStored, "")
	w.stores("a", "b", "c")
	binding := w.bind(b, "a")
	stop()
	must(t, w.admin.Delete(t.Context(), b))

	w.lead()
	w.stores("-a", "c") // the object without a binding is deleted at once
	must(t, w.admin.Delete(t.Context(), binding))
	w.stores("c")
}

// forget deletes the Secret of a stored object, as a user may do by mistake.
func (w *world) forget(name string) {
	w.Helper()
	must(w.T, w.admin.Delete(w.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.system, Name: w.id(name).ManifestName()}}))
}

func TestAnObjectIsRemovedThatIsNeitherStoredNorInItsBundle(t *testing.T) {
	t.Parallel()
	apiserver.Needed(t)
	for name, lose := range map[string]func(w *world, b *hubv1.Bundle, stop func()){
		"its secret went after the bundle lost it": func(w *world, b *hubv1.Bundle, _ func()) {
			w.cut(b, configMap("b"))
			w.stores("-a", "b")
			w.forget("a")
		},
		"its secret went before the bundle lost it": func(w *world, b *hubv1.Bundle, stop func()) {
			stop()
			w.forget("a")
			w.cut(b, configMap("b"))
			w.lead()
		},
		"its secret went before the bundle was deleted": func(w *world, b *hubv1.Bundle, stop func()) {
			stop()
			w.forget("a")
			w.forget("b")
			must(w.T, w.admin.Delete(w.Context(), b))
			w.lead()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, strings.ReplaceAll(name, " ", "-"), hubConfig)
			w.grant(writing("", "configmaps"))
			stop := w.lead()
			b := w.bundle("web", configMap("a"), configMap("b"))
			w.stores("a", "b")
			binding := w.bind(b, "a")
			lose(w, b, stop)
			w.eventually("it is removed, and nobody takes its manifest for content", func() error {
				if got, ok := w.stored()["-a"]; !ok || manifest.HasContent(got.Manifest) || got.UID != b.UID {
					return fmt.Errorf("stored are %v", w.stored())
				}
				return nil
			})
			must(t, w.admin.Delete(t.Context(), binding))
			w.eventually("its Secret goes with its binding", func() error {
				if _, ok := w.stored()["-a"]; ok {
					return errors.New("it is still stored")
				}
				return nil
			})
		})
	}
}

func TestNoObjectGoesWithTheDefinitionOfBundles(t *testing.T) {
	t.Parallel()
	apiserver.Needed(t)
	server := apiserver.Hub()
	started, err := server.Start()
	must(t, err)
	started.QPS = -1
	t.Cleanup(func() { _ = server.Stop() })
	w := newWorld(t, "definition", started)
	w.grant(writing("", "configmaps"))
	w.lead()
	b := w.bundle("web", configMap("a"))
	w.says(b, hubv1.ReasonStored, "")
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "bundles.hanse.dev"}}
	must(t, w.admin.Delete(t.Context(), definition))
	w.eventually("the definition is gone", func() error {
		if err := w.admin.Get(t.Context(), client.ObjectKeyFromObject(definition), definition); !apierrors.IsNotFound(err) {
			return fmt.Errorf("read: %w", err)
		}
		return nil
	})
	w.eventually("the controller finds the bundle missing and its definition, too", func() error {
		_, err := w.control.Reconcile(t.Context(), hubv1.ReferenceTo(b))
		var u interface{ Undecided() bool }
		if !errors.As(err, &u) {
			return fmt.Errorf("it returns %w", err)
		}
		return nil
	})
	w.stores("a")
}

func TestNothingIsWrittenForABundleWhileTheCacheIsOutdated(t *testing.T) {
	t.Parallel()
	apiserver.Needed(t)
	w := newWorld(t, "stale", hubConfig)
	w.grant(writing("", "configmaps"))
	w.lead()
	w.bundle("first", configMap("first"))
	w.stores("first")
	// The controller does not watch this namespace, so the test itself calls the functions that store the bundle.
	fresh := &hubv1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stale"}}
	fresh.Spec.Manifests = []runtime.RawExtension{{Raw: []byte(configMap("a"))}}
	fresh.Finalizers = []string{"example.com/hold"}
	must(t, w.admin.Create(t.Context(), fresh))
	tests := map[string]func(*hubv1.Bundle){
		"another generation":         func(b *hubv1.Bundle) { b.Generation++ },
		"another uid":                func(b *hubv1.Bundle) { b.UID = "other" },
		"a bundle that is not there": func(b *hubv1.Bundle) { b.Name = "missing" },
	}
	for name, change := range tests {
		b := fresh.DeepCopy()
		change(b)
		if _, _, err := w.control.store(t.Context(), b); !isOutdated(err) {
			t.Errorf("%s: got error %v", name, err)
		}
	}
	if c, _, err := w.control.store(t.Context(), fresh.DeepCopy()); err != nil || c.Reason != hubv1.ReasonAccountMayNot {
		t.Errorf("the bundle as it is: got %+v, %v", c, err)
	}
	must(t, w.admin.Delete(t.Context(), fresh.DeepCopy()))
	if _, _, err := w.control.store(t.Context(), fresh.DeepCopy()); !isOutdated(err) {
		t.Errorf("a bundle that is being deleted: got error %v", err)
	}
	must(t, w.admin.Patch(t.Context(), fresh, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	w.stores("first")
}

func TestOneOfTwoBundlesGetsAnObject(t *testing.T) {
	t.Parallel()
	apiserver.Needed(t)
	w := newWorld(t, "race", hubConfig)
	w.grant(writing("", "configmaps"))
	w.lead()
	winner, loser := w.bundle("a", configMap("x")), w.bundle("b", configMap("x"))
	w.eventually("one has the object", func() error {
		a, b := w.condition(winner), w.condition(loser)
		if a.Status != metav1.ConditionTrue && b.Status == metav1.ConditionTrue {
			winner, loser, a, b = loser, winner, b, a
		}
		if a.Reason != hubv1.ReasonStored || b.Reason != hubv1.ReasonIdentityTaken {
			return fmt.Errorf("one says %s, the other %s", a.Reason, b.Reason)
		}
		return nil
	})
	w.says(loser, hubv1.ReasonIdentityTaken, "Bundle race/"+winner.Name+" has this object: remove it from one of the two; the stored objects stay")
	if got := w.stored(); len(got) != 1 || got["x"].UID != winner.UID {
		t.Errorf("stored are %v", got)
	}
	must(t, w.admin.Delete(t.Context(), winner))
	w.eventually("the first bundle has lost the object", func() error {
		if got, ok := w.stored()["x"]; ok && got.UID == winner.UID {
			return errors.New("it is still stored")
		}
		return nil
	})
	// The other bundle may have stored the object already, because it retries from time to time.
	must(t, w.admin.Patch(t.Context(), loser, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))))
	w.says(loser, hubv1.ReasonStored, "")
	if got := w.stored(); len(got) != 1 || got["x"].UID != loser.UID {
		t.Errorf("stored are %v", got)
	}
}

func TestAnObjectWithCopiesCannotMoveToAnotherBundleYet(t *testing.T) {
	t.Parallel()
	apiserver.Needed(t)
	w := newWorld(t, "moves", hubConfig)
	w.grant(writing("", "configmaps"))
	w.lead()
	from := w.bundle("a", configMap("x"), configMap("y"))
	w.says(from, hubv1.ReasonStored, "")
	w.bind(from, "x") // the hub may hold the removal of its copies
	w.cut(from, configMap("y"))
	w.stores("-x", "y")
	w.says(w.bundle("b", configMap("x")), hubv1.ReasonIdentityTaken,
		"ConfigMap moves/x: Bundle moves/a no longer has this object, but clusters still have copies of it: wait until the copies are removed; "+
			"if the condition RemovalHeld is True, run hansectl confirm; the stored objects stay")
	if got := w.stored()["-x"]; got.UID != from.UID {
		t.Errorf("stored is %+v", got)
	}
}

func TestASecretWithoutAReadableObjectIsReplaced(t *testing.T) {
	t.Parallel()
	apiserver.Needed(t)
	w := newWorld(t, "broken", hubConfig)
	w.grant(writing("", "configmaps"))
	stop := w.lead()
	b := w.bundle("web", configMap("a"))
	w.says(b, hubv1.ReasonStored, "")
	stop()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.system, Name: w.id("a").ManifestName()}}
	must(t, w.admin.Patch(t.Context(), secret, client.RawPatch(types.MergePatchType, []byte(`{"data":{"manifest":"aGFuc2U="}}`))))
	broken := secret.UID

	w.lead()
	w.eventually("the Secret is another one", func() error {
		if err := w.admin.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
			return err
		}
		if secret.UID == broken {
			return errors.New("it is the broken one")
		}
		return nil
	})
	w.stores("a")
	w.says(b, hubv1.ReasonStored, "")
}

func TestAnObjectThatIsStoredAgainHasALaterGenerationThanItsCopies(t *testing.T) {
	t.Parallel()
	apiserver.Needed(t)
	w := newWorld(t, "again", hubConfig)
	w.grant(writing("", "configmaps"))
	w.lead()
	b := w.bundle("web", configMap("a"))
	w.stores("a")
	binding := w.bind(b, "a")
	binding.Status.Clusters = []hubv1.ClusterRow{{Name: "eu", Applied: metav1.ConditionTrue, Generation: 7}, {Name: "us", Applied: metav1.ConditionTrue, Generation: 4}}
	must(t, w.admin.Status().Update(t.Context(), binding))
	w.eventually("the cache has the rows", func() error {
		var cached hubv1.ResourceBinding
		if err := w.control.opts.Client.Get(t.Context(), client.ObjectKeyFromObject(binding), &cached); err != nil || len(cached.Status.Clusters) < 2 {
			return fmt.Errorf("it has %+v, %w", cached.Status, err)
		}
		return nil
	})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.system, Name: w.id("a").ManifestName()}}
	must(t, w.admin.Delete(t.Context(), secret))
	w.eventually("it is stored again", func() error {
		if got := w.stored()["a"].Generation; got != 8 {
			return fmt.Errorf("its generation is %d", got)
		}
		return nil
	})
}
