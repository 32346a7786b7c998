package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"
	testclock "k8s.io/utils/clock/testing"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/test/apiserver"
)

// namesTLS replaces the scene's object by an object that refers to the Secret tls.
func (s *scene) namesTLS() {
	u := template(uuid.NewUUID())
	if before, ok := objects.Get(s.id); ok {
		u.SetUID(before.GetUID())
	}
	u.SetNamespace(s.id.Namespace)
	u.SetCreationTimestamp(metav1.Now())
	u.SetGeneration(1)
	u.Object["spec"] = map[string]any{"secretName": "tls"}
	objects.set(s.id, u)
}

// tls creates the Secret tls in the namespace of the scene. It returns a second scene, whose object is this Secret.
func (s *scene) tls() *scene {
	out := &scene{t: s.t, id: key{Kind: "Secret", Namespace: s.id.Namespace, Name: "tls"}}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "Opaque"}}
	u.SetNamespace(out.id.Namespace)
	u.SetName("tls")
	u.SetUID(uuid.NewUUID())
	u.SetCreationTimestamp(metav1.Now())
	objects.set(out.id, u)
	return out
}

func (s *scene) says(text string) {
	s.t.Helper()
	s.eventually("the decision says "+text, func() error {
		if c, _, _, _ := scheduler.Decision(s.id.BindingKey()); !strings.Contains(c.Message, text) {
			return fmt.Errorf("it is %s: %s", c.Reason, c.Message)
		}
		return nil
	})
}

func TestANeededObjectGoesAheadAndLeavesLast(t *testing.T) {
	t.Parallel()
	s := newScene(t, "needs", "eu", "sg", "us")
	tls := s.tls()
	p := s.place("web", "eu", "sg")
	p.Spec.References = []hubv1.ReferenceRule{{Kind: "Secret", Path: "/spec/secretName"}}
	s.create(p)
	s.namesTLS()
	s.becomes("eu", "sg")
	tls.becomes("eu", "sg")
	tls.says("2 clusters, because Widget.example.com " + s.id.Namespace + "/web needs it")
	if before, after := tls.binding(), s.binding(); before.CreationTimestamp.After(after.CreationTimestamp.Time) || !before.Spec.Referenced || after.Spec.Referenced {
		t.Errorf("the Secret has %+v of %s, the object %+v of %s", before.Spec, before.CreationTimestamp, after.Spec, after.CreationTimestamp)
	}

	s.edit(p, func() { p.Spec.Clusters = s.only("sg", "us") })
	s.becomes("-eu NotSelected Delete", "sg", "us")
	tls.becomes("eu", "sg", "us") // the copy on eu may still use the needed object
	s.withdraws()
	s.becomes("sg", "us")
	tls.becomes("-eu NotReferenced Delete", "sg", "us")
	tls.withdraws()
	tls.becomes("sg", "us")

	objects.remove(s.id)
	s.becomes("-sg ObjectDeleted Delete", "-us ObjectDeleted Delete")
	tls.becomes("sg", "us")
	s.withdraws()
	tls.becomes("-sg NotReferenced Delete", "-us NotReferenced Delete")
	tls.withdraws()
	tls.becomes("no binding")
}

// A binding that a user deleted is created again, and until then the copies stay.
func TestANeededObjectStaysWhileABindingIsMadeAgain(t *testing.T) {
	apiserver.Needed(t)
	s, clock := newScene(t, "byhand", "eu", "sg"), testclock.NewFakeClock(time.Now())
	objects.mu.Lock()
	objects.unlisted.Insert(stagedKind) // an unlisted kind, so that the scheduler of other tests leaves the bindings alone
	objects.mu.Unlock()
	s.id.Kind = stagedKind.Kind
	needed := &scene{t: t, id: s.id}
	needed.id.Name = "tls"
	own := &hubObjects{cached: map[key]*unstructured.Unstructured{}, live: map[key]*unstructured.Unstructured{}, asked: map[key]int{}, onChange: func(key) {}}
	for _, id := range []key{s.id, needed.id} {
		u := template(uuid.NewUUID())
		u.SetKind(id.Kind)
		u.SetNamespace(id.Namespace)
		u.SetName(id.Name)
		u.Object["spec"] = map[string]any{}
		own.set(id, u)
	}
	own.cached[s.id].Object["spec"] = map[string]any{"secretName": "tls"}
	p := s.place("web", "eu")
	p.Spec.ResourceSelectors[0].Kind, p.Spec.ResourceSelectors[0].Name = stagedKind.Kind, "web"
	p.Spec.References = []hubv1.ReferenceRule{{APIGroup: stagedKind.Group, Kind: stagedKind.Kind, Path: "/spec/secretName"}}
	s.create(p)
	scheduler := New(Options{
		Client: hubClient, APIReader: hubClient, Templates: own, Recorder: &recorder{},
		Kinds: Kinds{HubRunsWorkloads: func() bool { return false }}, Clock: clock,
	})
	decide := func(of *scene) {
		t.Helper()
		clock.Step(2 * time.Second) // wait, so that decisions share no uncached reads
		before := of.binding()
		if _, err := scheduler.Reconcile(t.Context(), of.id); err != nil {
			t.Fatal(err)
		}
		c := changes.Binding{Parts: changes.Added}
		if after := of.binding(); after != nil {
			c.After = after
		}
		if before != nil {
			c.Before, c.Parts = before, changes.Any|changes.Spec
		}
		if c.After == nil {
			c.Parts = changes.Deleted
		}
		if before != nil || c.After != nil {
			scheduler.BindingChanged(t.Context(), c)
		}
	}
	decide(s)
	decide(needed)
	decide(s)
	s.becomes("eu")
	needed.becomes("eu")

	if err := hubClient.Delete(t.Context(), s.binding()); err != nil {
		t.Fatal(err)
	}
	decide(s) // the decision removes the finalizer of the binding
	s.becomes("no binding")
	decide(needed)
	needed.becomes("eu")

	s.edit(p, func() { p.Spec.Clusters = s.only("sg") })
	decide(s)
	decide(needed)
	decide(s)
	s.becomes("sg")
	decide(needed)
	needed.becomes("-eu NotReferenced Delete", "sg")

	if err := hubClient.Delete(t.Context(), s.binding()); err != nil {
		t.Fatal(err)
	}
	decide(s)
	own.remove(s.id)
	decide(s)
	decide(needed)
	needed.becomes("-eu NotReferenced Delete", "-sg NotReferenced Delete")

	b := needed.binding() // delete it, because the other scheduler's guard waits for its decision
	b.Finalizers = nil
	if err := errors.Join(hubClient.Update(t.Context(), b), hubClient.Delete(t.Context(), b)); err != nil {
		t.Fatal(err)
	}
}

func TestADecisionSaysWhichNeededObjectsAreMissing(t *testing.T) {
	t.Parallel()
	s := newScene(t, "misses", "eu")
	p := s.place("web", "eu")
	p.Spec.References = []hubv1.ReferenceRule{{Kind: "Secret", Path: "/spec/secretName"}}
	s.create(p)
	s.namesTLS()
	s.becomes("eu")
	s.says("1 of ")
	s.says("; needed objects are not sent: Secret " + s.id.Namespace + "/tls does not exist on the hub")

	tls := s.tls()
	tls.becomes("eu")
	s.eventually("the decision misses nothing", func() error {
		if c, _, _, _ := scheduler.Decision(s.id.BindingKey()); strings.Contains(c.Message, "needed objects are not sent") {
			return fmt.Errorf("it says %s", c.Message)
		}
		return nil
	})
}

func TestANeededObjectThatTheCacheDoesNotHaveYetGoesAhead(t *testing.T) {
	t.Parallel()
	s := newScene(t, "unseen", "eu")
	tls := s.tls()
	seen, _ := objects.Get(tls.id)
	objects.change(tls.id, func() { delete(objects.cached, tls.id) })
	p := s.place("web", "eu")
	p.Spec.References = []hubv1.ReferenceRule{{Kind: "Secret", Path: "/spec/secretName"}}
	s.create(p)
	s.namesTLS()
	s.eventually("the decision waits for the Secret", func() error {
		if scheduler.inputs.references.plans(tls.id)[s.id] == nil {
			return errors.New("it does not")
		}
		return nil
	})
	if err := hubClient.Get(t.Context(), s.id.BindingKey(), hubv1.NewBinding(s.id.BindingKey())); !apierrors.IsNotFound(err) {
		t.Errorf("reading the binding: %v, want not found", err)
	}

	objects.set(tls.id, seen)
	tls.becomes("eu")
	s.becomes("eu")
	if before, after := tls.binding(), s.binding(); before.CreationTimestamp.After(after.CreationTimestamp.Time) {
		t.Errorf("the binding of the Secret is of %s, the other one of %s", before.CreationTimestamp, after.CreationTimestamp)
	}
}

func TestOnlyNewClustersWaitForAnObjectThatTheCacheDoesNotShow(t *testing.T) {
	apiserver.Needed(t)
	s, clock := newScene(t, "waits", "eu", "sg"), testclock.NewFakeClock(time.Now())
	objects.mu.Lock()
	objects.unlisted.Insert(stagedKind)
	objects.mu.Unlock()
	s.id.Kind = stagedKind.Kind
	own := &hubObjects{cached: map[key]*unstructured.Unstructured{}, live: map[key]*unstructured.Unstructured{}, asked: map[key]int{}, onChange: func(key) {}}
	p := s.place("web", "eu")
	p.Spec.ResourceSelectors[0].Kind = stagedKind.Kind
	p.Spec.References = []hubv1.ReferenceRule{{Kind: "Secret", Path: "/spec/secretName"}}
	s.create(p)
	names := func(secret string) {
		u := template("a")
		u.SetKind(s.id.Kind)
		u.SetNamespace(s.id.Namespace)
		u.Object["spec"] = map[string]any{"secretName": secret}
		own.set(s.id, u)
	}
	unseen := func(name string) {
		id := key{Kind: "Secret", Namespace: s.id.Namespace, Name: name}
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret"}}
		u.SetCreationTimestamp(metav1.NewTime(clock.Now()))
		own.change(id, func() { own.live[id] = u })
	}
	scheduler := New(Options{
		Client: hubClient, APIReader: hubClient, Templates: own, Recorder: &recorder{},
		Kinds: Kinds{HubRunsWorkloads: func() bool { return false }}, Clock: clock,
	})
	decides := func(again time.Duration, want ...string) {
		t.Helper()
		result, err := scheduler.Reconcile(t.Context(), s.id)
		if err != nil || result.RequeueAfter != again {
			t.Fatalf("the next look is after %s, want %s (error %v)", result.RequeueAfter, again, err)
		}
		s.becomes(want...)
	}
	message := func() string {
		c, _, _, _ := scheduler.Decision(s.id.BindingKey())
		return string(c.Status) + " " + c.Reason + ": " + c.Message
	}
	waits := "False ReferenceNotReady: new clusters wait for up to 60 s, because the hub has not read Secret " + s.id.Namespace + "/%s yet"

	names("first")
	unseen("first")
	decides(5*time.Second, "no binding")
	clock.Step(5 * time.Second)
	decides(55 * time.Second)
	if got, want := message(), fmt.Sprintf(waits, "first"); !strings.HasPrefix(got, want) {
		t.Errorf("the condition is %q, want %q", got, want)
	}
	names("second") // a reference to another object does not start a new wait
	clock.Step(54 * time.Second)
	unseen("second")
	decides(time.Second)
	if got, want := message(), fmt.Sprintf(waits, "second"); !strings.HasPrefix(got, want) {
		t.Errorf("the condition is %q, want %q", got, want)
	}
	clock.Step(time.Second)
	decides(0, "eu")

	names("third")
	unseen("third")
	decides(0, "eu") // a cluster that has the object does not wait
	if refs := s.binding().Spec.References; !slices.ContainsFunc(refs, func(r hubv1.BindingReference) bool { return r.Name == "third" }) {
		t.Errorf("a cluster that has the object waits: the references are %+v", refs)
	}
	s.edit(p, func() { p.Spec.Clusters, p.Spec.Priority = s.only("eu", "sg"), 7 })
	names("fourth")
	unseen("fourth")
	decides(5*time.Second, "eu")
	clock.Step(5 * time.Second)
	decides(55*time.Second, "eu")
	if refs := s.binding().Spec.References; !slices.ContainsFunc(refs, func(r hubv1.BindingReference) bool { return r.Name == "fourth" }) {
		t.Errorf("a cluster that has the object waits: the references are %+v", refs)
	}
	own.remove(key{Kind: "Secret", Namespace: s.id.Namespace, Name: "fourth"})
	decides(0, "eu", "sg")
}

func TestAnEditThatTakesARuleAwayWithdrawsNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, "rule", "eu", "sg")
	tls := s.tls()
	p := s.place("web", "eu")
	p.Spec.References = []hubv1.ReferenceRule{{Kind: "Secret", Path: "/spec/secretName"}}
	s.create(p)
	s.namesTLS()
	s.becomes("eu") // the binding of s has the reference
	tls.becomes("eu")
	s.edit(p, func() { p.Spec.References, p.Spec.Clusters = nil, s.only("eu", "sg") })
	s.becomes("eu", "sg")
	tls.becomes("eu", "sg") // the object still refers to the Secret
}

func TestABindingRecordsWhichPodsRestart(t *testing.T) {
	t.Parallel()
	s := newScene(t, "restarts", "eu")
	p := s.place("web", "eu")
	s.create(p)
	s.namesTLS()
	s.becomes("eu")
	s.edit(p, func() {
		p.Spec.References = []hubv1.ReferenceRule{{Path: "/spec/template", Restart: hubv1.RestartOnChange}}
	})
	s.eventually("the binding keeps the path", func() error {
		settings := hubv1.LastSettings(s.binding())
		if paths := settings.RestartPaths(); len(paths) != 1 || paths[0] != "/spec/template" {
			return fmt.Errorf("it has %q", paths)
		}
		return nil
	})
}
