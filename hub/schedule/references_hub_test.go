package schedule

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// namesTLS makes the scene's object one that names the Secret tls.
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

// tls makes the Secret tls in the namespace of the scene, and returns the scene of this object.
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
	tls.becomes("eu", "sg", "us") // eu may still use it
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

func TestADecisionSaysWhichNeededObjectsAreMissing(t *testing.T) {
	t.Parallel()
	s := newScene(t, "misses", "eu")
	p := s.place("web", "eu")
	p.Spec.References = []hubv1.ReferenceRule{{Kind: "Secret", Path: "/spec/secretName"}}
	s.create(p)
	s.namesTLS()
	s.becomes("eu")
	s.says("1 of ")
	s.says("; without objects that it needs: Secret " + s.id.Namespace + "/tls does not exist on the hub")

	tls := s.tls()
	tls.becomes("eu")
	s.eventually("the decision misses nothing", func() error {
		if c, _, _, _ := scheduler.Decision(s.id.BindingKey()); strings.Contains(c.Message, "without objects") {
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
	s.eventually("the Secret is read twice", func() error {
		objects.mu.Lock()
		defer objects.mu.Unlock()
		if n := objects.asked[tls.id]; n < 2 {
			return fmt.Errorf("it is read %d times", n)
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

func TestAnEditThatTakesARuleAwayWithdrawsNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, "rule", "eu", "sg")
	tls := s.tls()
	p := s.place("web", "eu")
	p.Spec.References = []hubv1.ReferenceRule{{Kind: "Secret", Path: "/spec/secretName"}}
	s.create(p)
	s.namesTLS()
	s.becomes("eu") // its binding has the reference
	tls.becomes("eu")
	s.edit(p, func() { p.Spec.References, p.Spec.Clusters = nil, s.only("eu", "sg") })
	s.becomes("eu", "sg")
	tls.becomes("eu", "sg") // the object still names it
}

func TestABindingKeepsWhichPodsStartAnew(t *testing.T) {
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
