package discovery_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/discovery"
	"github.com/hanse-dev/hanse/test/apiserver"
)

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme, apiextensionsv1.AddToScheme} {
		must(t, add(scheme))
	}
	return scheme
}

// notServed returns the outcome of a write if the member does not serve the kind.
func notServed() member.Outcome {
	return member.Outcome{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonKindNotServed, Message: "not served", Retry: member.RetrySlowly}
}

func (w *world) install(crd *apiextensionsv1.CustomResourceDefinition) {
	w.Helper()
	must(w.T, w.admin.Create(w.Context(), crd.DeepCopy()))
}

func (w *world) change(crd *apiextensionsv1.CustomResourceDefinition) {
	w.Helper()
	// The update is retried, because the API server writes the status of a new definition at the same time.
	must(w.T, retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var now apiextensionsv1.CustomResourceDefinition
		if err := w.admin.Get(w.Context(), client.ObjectKeyFromObject(crd), &now); err != nil {
			return err
		}
		now.Spec = crd.Spec
		return w.admin.Update(w.Context(), &now)
	}))
}

// watched marks a kind as used, and waits until the watch of definitions is synced.
func (w *world) watched(gvk schema.GroupVersionKind) {
	w.Helper()
	w.kinds.Use(gvk, true)
	until(w.T, "the watch of definitions", func() bool { return w.kinds.Watched(gvk.Group) })
}

// wakes waits until OnChange is called for the kind, and fails if it is called for another kind.
func (w *world) wakes(gvk schema.GroupVersionKind) {
	w.Helper()
	select {
	case got := <-w.woken:
		if got != gvk.GroupKind() {
			w.Fatalf("%s was woken, want %s", got, gvk)
		}
	case <-time.After(15 * time.Second):
		w.Fatalf("%s was not woken", gvk)
	}
}

func isServed(kinds *discovery.Kinds, gvk schema.GroupVersionKind) bool {
	_, err := kinds.Find(gvk)
	return err == nil
}

func TestADefinitionThatComesGoesAndComesBackWakesItsKindAlone(t *testing.T) {
	w := newWorld(t)
	kind, other := schema.GroupVersionKind{Group: "comes.example.com", Version: "v1", Kind: "Thing"}, schema.GroupVersionKind{Group: "other.example.com", Version: "v1", Kind: "Other"}
	crd := definition(kind, objectOf(nil))
	w.kinds.Use(other, true)
	w.watched(kind)
	if _, err := w.kinds.Find(kind); !meta.IsNoMatchError(err) {
		t.Fatalf("got %v for a kind that is not served", err)
	}
	if o := w.kinds.LearnFrom(kind, notServed()); o.Retry != member.RetryAfter || o.Message != "not served" {
		t.Errorf("it is polled for: %+v", o)
	}

	w.install(crd)
	w.wakes(kind)
	until(t, "the kind", func() bool { return isServed(w.kinds, kind) })
	if !w.kinds.HasStatus(kind) {
		t.Error("it has no status")
	}
	must(t, w.admin.Delete(t.Context(), crd.DeepCopy()))
	until(t, "its end", func() bool { return !isServed(w.kinds, kind) })
	w.install(crd)
	until(t, "the kind", func() bool { return isServed(w.kinds, kind) })
	for {
		select {
		case got := <-w.woken:
			if got != kind.GroupKind() {
				t.Fatalf("%s was woken", got)
			}
			continue
		default:
		}
		break
	}
}

func TestAKindThatIsDiscoveredForAMomentAfterItsDefinitionWentIsNotKept(t *testing.T) {
	w := newWorld(t)
	kind := schema.GroupVersionKind{Group: "lags.example.com", Version: "v1", Kind: "Thing"}
	crd := definition(kind, objectOf(nil))
	w.watched(kind)
	w.install(crd)
	until(t, "the kind", func() bool { return isServed(w.kinds, kind) })
	w.disco.old.Store(w.disco.last.Load())
	for len(w.woken) > 0 {
		<-w.woken
	}
	must(t, w.admin.Delete(t.Context(), crd.DeepCopy()))
	w.wakes(kind) // wait until the deletion of the definition is known
	if !isServed(w.kinds, kind) {
		t.Fatal("the old answer does not count")
	}
	w.disco.old.Store(nil)
	until(t, "its end", func() bool { return !isServed(w.kinds, kind) })
}

func TestAKindIsKeptAgainAfterAnotherOfItsGroupWent(t *testing.T) {
	w := newWorld(t)
	kind := schema.GroupVersionKind{Group: "siblings.example.com", Version: "v1", Kind: "Thing"}
	sibling := definition(kind, objectOf(nil))
	sibling.Name, sibling.Spec.Names.Plural, sibling.Spec.Names.Kind = "siblings."+kind.Group, "siblings", "Sibling"
	w.watched(kind)
	w.install(sibling)
	w.install(definition(kind, objectOf(nil)))
	until(t, "the kind", func() bool { return isServed(w.kinds, kind) })
	for len(w.woken) > 0 {
		<-w.woken
	}
	w.kinds.Forget(kind)
	must(t, w.admin.Delete(t.Context(), sibling))
	w.wakes(kind) // woken, because the deleted definition may be that of the kind
	until(t, "an answer from memory", func() bool {
		before := w.disco.asked.Load()
		return isServed(w.kinds, kind) && w.disco.asked.Load() == before
	})
}

// A proxy in front of a member may answer for a moment like a server without the kind. No event follows.
func TestAKindIsFoundAgainSoonAfterWrongAnswers(t *testing.T) {
	w := newWorld(t)
	kind := schema.GroupVersionKind{Group: "wrong.example.com", Version: "v1", Kind: "Thing"}
	w.watched(kind)
	w.install(definition(kind, objectOf(nil)))
	until(t, "the kind", func() bool { return isServed(w.kinds, kind) })
	for name, wrong := range map[string]struct {
		status   int32
		body     string
		unserved bool // the answer is that of a server without the kind
	}{
		"not found":       {http.StatusNotFound, "default backend - 404", true},
		"an empty object": {http.StatusOK, "{}", false},
		"a web page":      {http.StatusOK, "<html></html>", false},
	} {
		body := []byte(wrong.body)
		w.disco.status.Store(wrong.status)
		w.disco.old.Store(&body)
		w.kinds.Forget(kind)
		_, err := w.kinds.Find(kind)
		if err == nil || meta.IsNoMatchError(err) != wrong.unserved {
			t.Errorf("%s: %v", name, err)
		}
		if o := w.kinds.LearnFrom(kind, notServed()); o.Retry != member.RetrySlowly {
			t.Errorf("%s: the next attempt waits for an event that never comes: %+v", name, o)
		}
		w.disco.old.Store(nil)
		until(t, "the kind after "+name, func() bool { return isServed(w.kinds, kind) })
	}
}

func TestNothingIsWatchedForBuiltInKindsOrWhenNoKindIsInUse(t *testing.T) {
	w := newWorld(t)
	w.kinds.Use(corev1.SchemeGroupVersion.WithKind("ConfigMap"), true)
	if w.kinds.Watched("used.example.com") {
		t.Error("definitions are watched for a kind that has none")
	}
	kind := schema.GroupVersionKind{Group: "used.example.com", Version: "v1", Kind: "Thing"}
	w.watched(kind)
	w.kinds.Use(kind, false)
	if w.kinds.Watched(kind.Group) {
		t.Error("definitions are watched after the last custom kind")
	}
}

func TestAMemberThatForbidsTheWatchIsAskedNowAndThen(t *testing.T) {
	w := newWorld(t)
	config := rest.CopyConfig(apiServer)
	config.Impersonate = rest.ImpersonationConfig{UserName: "hub-without-definitions", Groups: []string{"system:authenticated"}}
	kinds, _ := w.as(config)
	kind := schema.GroupVersionKind{Group: "forbidden.example.com", Version: "v1", Kind: "Thing"}
	kinds.Use(kind, true)
	until(t, "the refusal", func() bool { return kinds.LearnFrom(kind, notServed()).Message != "not served" })
	if o := kinds.LearnFrom(kind, notServed()); o.Retry != member.RetrySlowly {
		t.Errorf("it waits for an event that never comes: %+v", o)
	}
	if isServed(kinds, kind) {
		t.Fatal("a kind without a definition is served")
	}
	w.install(definition(kind, objectOf(nil)))
	until(t, "the kind", func() bool { return isServed(kinds, kind) })
}

func thing(gvk schema.GroupVersionKind, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec, "status": map[string]any{"not": "sent"}}}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace("default")
	u.SetName("thing")
	return u
}

func TestFieldsComeAndGoWithTheDefinition(t *testing.T) {
	w := newWorld(t)
	kind := schema.GroupVersionKind{Group: "fields.example.com", Version: "v1", Kind: "Thing"}
	size := map[string]property{"size": {Type: "integer"}}
	both := map[string]property{"size": {Type: "integer"}, "colour": {Type: "string"}}
	w.watched(kind)
	manifest := thing(kind, map[string]any{"size": int64(1), "colour": "red"})
	if _, got := w.kinds.Fit(t.Context(), manifest); got != nil {
		t.Errorf("of a kind that is not served, %v is unknown", got)
	}
	isServed(w.kinds, kind)

	w.install(definition(kind, objectOf(size)))
	w.wakes(kind)
	fitting, got := w.kinds.Fit(t.Context(), manifest) // waits until the schema of the new definition is published
	if diff := cmp.Diff([]string{".spec.colour"}, got); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"size": int64(1)}, fitting.Object["spec"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for len(w.woken) > 0 {
		<-w.woken
	}

	w.change(definition(kind, objectOf(both)))
	w.wakes(kind)
	until(t, "the field", func() bool {
		_, got := w.kinds.Fit(t.Context(), manifest)
		return got == nil
	})
	w.change(definition(kind, objectOf(size)))
	until(t, "its end", func() bool {
		_, got := w.kinds.Fit(t.Context(), manifest)
		return len(got) == 1
	})
}

func TestACopyThatIsRefusedAfterAChangeOfItsDefinitionIsTriedAgainSoon(t *testing.T) {
	w := newWorld(t)
	kind := schema.GroupVersionKind{Group: "refused.example.com", Version: "v1", Kind: "Thing"}
	w.watched(kind)
	w.install(definition(kind, objectOf(map[string]property{"size": {Type: "integer"}})))
	w.wakes(kind)
	w.change(definition(kind, objectOf(map[string]property{"size": {Type: "string"}})))
	w.wakes(kind)
	refused := member.Outcome{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonManifestRefused, Retry: member.RetrySlowly}
	if o := w.kinds.LearnFrom(kind, refused); o.Reason != refused.Reason || o.Retry != refused.Retry {
		t.Errorf("the outcome is %+v, want %+v", o, refused)
	}
	w.wakes(kind) // at this time, the member publishes the new schema
}

func TestAClientForMetadataAloneMayAskForItsRights(t *testing.T) {
	apiserver.Needed(t)
	client, err := dynamic.NewForConfig(discovery.MetadataOnly(apiServer))
	must(t, err)
	review, err := client.Resource(schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectrulesreviews"}).
		Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": map[string]any{"namespace": "default"},
		}}, metav1.CreateOptions{})
	must(t, err)
	if rules, _, _ := unstructured.NestedSlice(review.Object, "status", "resourceRules"); len(rules) == 0 {
		t.Errorf("the review has no rules: %v", review)
	}
	list, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, namespace := range list.Items {
		if _, found := namespace.Object["status"]; found || namespace.GetName() == "" {
			t.Errorf("a list has more than metadata: %v", namespace)
		}
	}
}
