package dispatch

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/member"
)

var neededKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

// needing adds a Rotor that needs a ConfigMap on its members.
func needing(w *world, name, needed string) *hubv1.ResourceBinding {
	return w.addWith(rotor, name, func(s *hubv1.BindingSpec) {
		s.References = []hubv1.BindingReference{{Kind: "ConfigMap", Name: needed, Path: "/spec/config"}}
	})
}

// addWith does the same as add, and changes the spec of the binding.
func (w *world) addWith(gvk schema.GroupVersionKind, name string, change func(*hubv1.BindingSpec)) *hubv1.ResourceBinding {
	b := w.add(gvk, name)
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&b.Spec)
	return b
}

// begin starts the members' queues, and returns when the queues have listed the existing bindings. After that, only
// events add bindings to the queues.
func (w *world) begin() {
	w.Helper()
	w.add(rotor, "first")
	w.engage()
	for cluster := range w.members {
		w.reads(cluster, "first", hubv1.ReasonApplied, "")
	}
}

func TestACopyIsCreatedAfterTheObjectThatItNeeds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, takes("eu"), takes("us"))
	w.begin()
	// The dispatcher gets no event of this binding yet.
	config := w.addWith(neededKind, "settings", func(s *hubv1.BindingSpec) {
		s.Clusters = []hubv1.BindingTarget{{Name: "eu", State: hubv1.TargetPresent}}
	})
	w.dispatcher.BindingChanged(t.Context(), changes.Binding{After: needing(w, "main", "settings")})
	w.reads("us", "main", hubv1.ReasonApplied, "") // the needed object is not sent to us
	w.reads("eu", "main", hubv1.ReasonReferenceNotReady, "the copy is created after ConfigMap ns/settings, which it needs, is on the cluster: the hub has not written this object yet")

	w.dispatcher.BindingChanged(t.Context(), changes.Binding{After: config})
	w.reads("eu", "settings", hubv1.ReasonApplied, "")
	m := w.members["eu"]
	m.mu.Lock()
	seen := m.copies["settings"]
	m.mu.Unlock()
	w.dispatcher.HealthSeen("eu", seen)
	w.reads("eu", "main", hubv1.ReasonApplied, "")
}

func TestObjectsThatNeedEachOtherDoNotWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, takes("eu"))
	w.begin()
	config := w.addWith(neededKind, "settings", func(s *hubv1.BindingSpec) {
		s.References = []hubv1.BindingReference{{APIGroup: rotor.Group, Kind: rotor.Kind, Name: "main", Path: "/data/rotor"}}
	})
	main := needing(w, "main", "settings")
	w.dispatcher.BindingChanged(t.Context(), changes.Binding{After: main})
	w.reads("eu", "main", hubv1.ReasonApplied, "")
	w.dispatcher.BindingChanged(t.Context(), changes.Binding{After: config})
	w.reads("eu", "settings", hubv1.ReasonApplied, "")
}

func TestACopyDoesNotWaitForAFormerReference(t *testing.T) {
	t.Parallel()
	w := newWorld(t, takes("eu"))
	w.begin()
	w.add(neededKind, "settings")
	main := w.addWith(rotor, "main", func(s *hubv1.BindingSpec) {
		s.References = []hubv1.BindingReference{{Kind: "ConfigMap", Name: "settings", Path: "/spec/config", Former: true}}
	})
	w.dispatcher.BindingChanged(t.Context(), changes.Binding{After: main})
	w.reads("eu", "main", hubv1.ReasonApplied, "")
}

func TestACopyDoesNotWaitForAnObjectThatIsNotOurs(t *testing.T) {
	t.Parallel()
	m := takes("eu")
	m.answer = func(_ context.Context, object string) member.Outcome {
		if object == "settings" {
			return member.Outcome{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonAlreadyExists}
		}
		return member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied, Wrote: true}
	}
	w := newWorld(t, m)
	w.add(neededKind, "settings").Status.Clusters = []hubv1.ClusterRow{{Name: "eu", Applied: metav1.ConditionFalse, Reason: hubv1.ReasonAlreadyExists}}
	needing(w, "other", "settings")
	reading(w, "pods")
	w.engage()
	w.reads("eu", "settings", hubv1.ReasonAlreadyExists, "")
	w.reads("eu", "other", hubv1.ReasonApplied, "")
	w.reads("eu", "pods", hubv1.ReasonApplied, "")
}
