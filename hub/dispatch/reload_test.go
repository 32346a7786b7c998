package dispatch

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/placement/decide"
)

// reading adds a Rotor whose pods read the ConfigMap settings and the Secret tls, and restart when one of them changes.
func reading(w *world, name string) *hubv1.ResourceBinding {
	b := w.add(rotor, name)
	spec := hubv1.PlacementSpec{References: []hubv1.ReferenceRule{{Path: "/spec/template", Restart: hubv1.RestartOnChange}}}
	b.Annotations = map[string]string{hubv1.SettingsAnnotation: spec.Settings()}
	b.Spec.References = []hubv1.BindingReference{{Kind: "ConfigMap", Name: "settings", Path: "/spec/template"}}
	w.says(name, "spec", map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{
		map[string]any{"name": "app", "envFrom": []any{
			map[string]any{"configMapRef": map[string]any{"name": "settings"}}, map[string]any{"secretRef": map[string]any{"name": "tls"}},
		}},
	}}}})
	return b
}

// says sets a field of an object of the hub, without an event.
func (w *world) says(name, field string, value map[string]any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fields == nil {
		w.fields = map[string]map[string]any{}
	}
	w.fields[name] = map[string]any{field: value}
}

// edit changes objects of the hub, without an event.
func (w *world) edit(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// digest returns the digest annotation of the pods of main on a cluster. It is empty without the annotation.
func (w *world) digest(cluster string) string {
	m := w.members[cluster]
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.manifests["main"] == nil {
		return ""
	}
	return reloadIn(m.manifests["main"])
}

func reloadIn(manifest *unstructured.Unstructured) string {
	value, _, _ := unstructured.NestedString(manifest.Object, "spec", "template", "metadata", "annotations", hubv1.ReloadAnnotation)
	return value
}

// restarts waits until the pods of main on a cluster have another digest, and returns it.
func (w *world) restarts(cluster, before string) (after string) {
	w.Helper()
	w.eventually(5*time.Second, func() string {
		if after = w.digest(cluster); after == before || after == "" {
			return fmt.Sprintf("the digest is %q", after)
		}
		return ""
	})
	return after
}

func TestPodsRestartAfterTheirClusterHasTheNewContent(t *testing.T) {
	t.Parallel()
	m, refuses := takes("eu"), atomic.Bool{}
	m.answer = func(_ context.Context, object string) member.Outcome {
		if object == "settings" && refuses.Load() {
			return member.Outcome{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonManifestRefused, Message: "it is immutable"}
		}
		return member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied, Wrote: true}
	}
	w := newWorld(t, m)
	settings := w.add(neededKind, "settings")
	w.says("settings", "data", map[string]any{"a": "first"})
	reading(w, "main")
	w.engage()
	first := w.restarts("eu", "")
	if order := m.written(); !slices.Equal(order, []string{"settings", "main"}) {
		t.Errorf("the writes were %q", order)
	}

	refuses.Store(true)
	w.says("settings", "data", map[string]any{"a": "second"})
	w.edit(func() {
		settings.Status.Clusters = []hubv1.ClusterRow{{Name: "eu", Applied: metav1.ConditionFalse, Reason: hubv1.ReasonManifestRefused, Message: "it is immutable"}}
	})
	w.dispatcher.WakeObject(t.Context(), hubv1.ObjectOf(settings))
	w.reads("eu", "settings", hubv1.ReasonManifestRefused, "")
	w.dispatcher.WakeObject(t.Context(), hubv1.ObjectIdentity{Group: rotor.Group, Kind: rotor.Kind, Namespace: "ns", Name: "main"})
	w.reads("eu", "main", hubv1.ReasonReferenceNotReady,
		"the copy waits until ConfigMap ns/settings, which its pods read, has its new content on the cluster: ManifestRefused: it is immutable")
	if got := w.digest("eu"); got != first {
		t.Errorf("the digest changed from %q to %q before the content", first, got)
	}

	refuses.Store(false)
	w.dispatcher.WakeObject(t.Context(), hubv1.ObjectOf(settings))
	w.restarts("eu", first) // the workload restarts without an event of the Rotor
	if order := m.written(); !slices.Equal(order, []string{"settings", "main", "settings", "main"}) {
		t.Errorf("the writes were %q", order)
	}
	w.reads("eu", "main", hubv1.ReasonApplied, "")
}

// oneRevision returns the same template for every revision, and no override rules. Several queues may read it at once.
type oneRevision struct{ template *unstructured.Unstructured }

// Template implements Revisions.
func (o oneRevision) Template(context.Context, string) (*unstructured.Unstructured, error) {
	return o.template, nil
}

// Rules implements Revisions.
func (oneRevision) Rules(context.Context, string) (*decide.HeldRules, error) {
	return &decide.HeldRules{}, nil
}

func TestAClusterWithAnEarlierRevisionKeepsItsDigest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, takes("eu"), takes("us"))
	settings := w.add(neededKind, "settings")
	w.says("settings", "data", map[string]any{"a": "second"})
	earlier := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": "first"}}}
	earlier.SetNamespace("ns")
	earlier.SetName("settings")
	w.dispatcher.opts.Revisions = oneRevision{earlier}
	settings.Spec.Revisions = []hubv1.ObjectRevision{{Number: 1, Template: "first", Policies: "rules"}}
	settings.Spec.Target("eu").Revision = 1
	reading(w, "main")
	w.engage()
	first, second := w.restarts("eu", ""), w.restarts("us", "")
	if first == second {
		t.Errorf("both clusters have the digest %q", first)
	}

	before := settings.DeepCopy()
	w.edit(func() { settings.Spec.Target("eu").Revision = 0 })
	w.dispatcher.BindingChanged(t.Context(), changes.Binding{Before: before, After: settings.DeepCopy()})
	if got := w.restarts("eu", first); got != second {
		t.Errorf("with the same revision, one cluster has the digest %q, the other one %q", got, second)
	}
}

func TestTheRuleThatRestartsPodsIsPartOfARevision(t *testing.T) {
	t.Parallel()
	w := newWorld(t, takes("eu"), takes("us"))
	w.add(neededKind, "settings")
	w.says("settings", "data", map[string]any{"a": "first"})
	main := reading(w, "main")
	template, _ := templatesOf{w}.Get(hubv1.ObjectOf(main))
	w.dispatcher.opts.Revisions = oneRevision{template} // the revision's content has no rule yet
	main.Spec.Revisions = []hubv1.ObjectRevision{{Number: 1, Template: "first", Policies: "rules"}}
	main.Spec.Target("eu").Revision = 1
	w.engage()
	w.restarts("us", "")
	w.reads("eu", "main", hubv1.ReasonApplied, "")
	if got := w.digest("eu"); got != "" {
		t.Errorf("at a revision without the rule, the digest is %q", got)
	}
}

func TestAnotherHubProcessRestartsNoPods(t *testing.T) {
	t.Parallel()
	m := takes("eu")
	w := newWorld(t, m)
	settings := w.add(neededKind, "settings")
	w.says("settings", "data", map[string]any{"a": "first"})
	main := reading(w, "main")
	w.engage()
	w.restarts("eu", "")
	w.reads("eu", "main", hubv1.ReasonApplied, "")

	m.mu.Lock()
	served := m.served
	w.edit(func() {
		for _, b := range []*hubv1.ResourceBinding{settings, main} {
			c := m.copies[b.Spec.ObjectRef.Name]
			b.Status.Clusters = []hubv1.ClusterRow{{Name: "eu", Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied, UID: c.UID, Hash: c.Hash, Digest: c.Digest}}
		}
	})
	m.mu.Unlock()
	other := New(w.dispatcher.opts)
	seen := make(chan string, 100)
	other.opts.Recorder = recorded(func(b hubv1.BindingObject, _ string, o member.Outcome) {
		seen <- b.BindingSpec().ObjectRef.Name + " " + o.Reason
	})
	if err := other.Engage(t.Context(), "eu"); err != nil {
		t.Fatal(err)
	}
	for found := map[string]bool{}; !found["main Applied"] || !found["settings Applied"]; {
		found[<-seen] = true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.served != served {
		t.Errorf("the other process made %d calls", m.served-served)
	}
}

func TestAPreviewShowsTheDigestWithThePoliciesOfTheCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t, takes("eu"))
	w.add(neededKind, "settings")
	w.says("settings", "data", map[string]any{"a": "first"})
	w.add(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "tls")
	w.says("tls", "data", map[string]any{"a": "first"})
	id := hubv1.ObjectOf(reading(w, "main"))
	w.engage()
	first := w.restarts("eu", "")
	replaces := func(kind string) []hubv1.OverridePolicyObject {
		policy := &hubv1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
		policy.Spec.ResourceSelectors = []hubv1.ResourceSelector{{Kind: kind}}
		policy.Spec.Rules = []hubv1.OverrideRule{{Name: "r", Patches: []hubv1.PatchOperation{{Op: hubv1.PatchReplace, Path: "/data/a", Value: &apiextensionsv1.JSON{Raw: []byte(`"second"`)}}}}}
		return []hubv1.OverridePolicyObject{policy}
	}
	for name, tc := range map[string]struct {
		policies []hubv1.OverridePolicyObject
		same     bool
	}{
		"no other policy is as on the cluster":                               {nil, true},
		"a policy for the ConfigMap changes the digest":                      {replaces("ConfigMap"), false},
		"a policy for the Secret does not, because it would confirm guesses": {replaces("Secret"), true},
	} {
		t.Run(name, func(t *testing.T) {
			in, stop, err := w.dispatcher.Intent(t.Context(), "eu", id, tc.policies)
			if err != nil || stop != nil {
				t.Fatalf("stop %+v, error %v", stop, err)
			}
			if got := reloadIn(in.Manifest); got == "" || (got == first) != tc.same {
				t.Errorf("the digest is %q, on the cluster %q", got, first)
			}
		})
	}
}

func TestACopyWaitsForTheHubToKnowWhatItsPodsRead(t *testing.T) {
	t.Parallel()
	m := takes("eu")
	w := newWorld(t, m)
	settings := w.add(neededKind, "settings")
	w.says("settings", "data", map[string]any{"a": "first"})
	main := hubv1.ObjectOf(reading(w, "main"))
	w.deleted = map[string]bool{"settings": true} // the object is being deleted, but its binding still sends it
	w.engage()
	if _, stop, err := w.dispatcher.Intent(t.Context(), "eu", main, nil); err != nil || stop == nil || stop.Reason != hubv1.ReasonPending {
		t.Errorf("stop %+v, error %v", stop, err)
	}
	w.edit(func() { w.deleted = nil })
	w.dispatcher.WakeObject(t.Context(), hubv1.ObjectOf(settings))
	w.restarts("eu", "")
	if order := m.written(); !slices.Equal(order, []string{"settings", "main"}) {
		t.Errorf("the writes were %q", order)
	}
}

func TestOnlyWhatTheHubSendsToTheClusterCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, takes("eu"))
	settings := w.add(neededKind, "settings")
	w.says("settings", "data", map[string]any{"a": "first"})
	settings.Spec.Clusters[0] = hubv1.BindingTarget{Name: "eu", State: hubv1.TargetAbsent, Absent: &hubv1.Absence{Reason: "NotSelected", UID: "settings", Policy: hubv1.RemovalOrphan}}
	reading(w, "main")
	w.engage()
	w.reads("eu", "main", hubv1.ReasonApplied, "")
	if got := w.digest("eu"); got != "" {
		t.Errorf("the digest is %q", got)
	}
}

func TestWithoutTheRulePodsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t, takes("eu"))
	w.add(neededKind, "settings")
	w.says("settings", "data", map[string]any{"a": "first"})
	reading(w, "main").Annotations = nil
	w.engage()
	w.reads("eu", "main", hubv1.ReasonApplied, "")
	if got := w.digest("eu"); got != "" {
		t.Errorf("the digest is %q", got)
	}
	if q := w.dispatcher.queue("eu"); len(q.needs.readers.keys) > 0 {
		t.Errorf("the queue has %v", q.needs.readers.keys)
	}
}

func TestAReaderOfOtherObjectsIsNotWokenByTheFormerOnes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, takes("eu"))
	w.add(neededKind, "settings")
	main := reading(w, "main")
	w.engage()
	w.reads("eu", "main", hubv1.ReasonApplied, "")
	readers := func(name string) int {
		id := hubv1.ObjectIdentity{Kind: neededKind.Kind, Namespace: "ns", Name: name}
		return len(w.dispatcher.queue("eu").needs.readers.of(id.BindingKey()))
	}
	w.eventually(5*time.Second, func() string {
		if readers("settings") != 1 {
			return "the ConfigMap has no reader"
		}
		return ""
	})
	w.says("main", "spec", map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{
		map[string]any{"name": "app", "envFrom": []any{map[string]any{"configMapRef": map[string]any{"name": "other"}}}},
	}}}})
	w.dispatcher.WakeObject(t.Context(), hubv1.ObjectOf(main))
	w.eventually(5*time.Second, func() string {
		if former, now := readers("settings"), readers("other"); former != 0 || now != 1 {
			return fmt.Sprintf("the former ConfigMap has %d readers, the new one %d", former, now)
		}
		return ""
	})
}
