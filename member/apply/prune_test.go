package apply_test

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// pruning returns the intent to prune the copy at its current version. The hub object of the copy does not exist.
func (w *world) pruning() member.PruneIntent {
	w.Helper()
	live := w.get()
	return member.PruneIntent{
		GVK: widget, Owner: identity(live), UID: live.GetUID(), ResourceVersion: live.GetResourceVersion(), Policy: hubv1.RemovalDelete,
		Source: hubAt(w.T, 9, "10-a 11-b"),
	}
}

func (w *world) prune(in member.PruneIntent, want result) member.Outcome {
	w.Helper()
	return w.check(w.applier.Prune(w.Context(), in), want)
}

// copied creates the copy that the test prunes.
func (w *world) copied() {
	w.Helper()
	w.apply(w.sized(3, hubAt(w.T, 5, "10-a 11-b")), written)
}

func TestPruneRemovesTheCopyThatWasShown(t *testing.T) {
	w := newWorld(t)
	w.copied()
	in := w.pruning()
	w.prune(in, withdrawn)
	if !w.gone() {
		t.Error("it is still there")
	}
	w.prune(in, wasGone)
}

func TestPruneKeepsCopiesThatTheUserDidNotSee(t *testing.T) {
	changed := failed(hubv1.ReasonPending, member.RetryNever)
	t.Run("a copy that changed", func(t *testing.T) {
		w := newWorld(t)
		w.copied()
		in := w.pruning()
		w.edit(`{"metadata":{"labels":{"new":"yes"}}}`)
		w.prune(in, changed)
		w.holds(3, "5;11-b")
	})
	t.Run("a copy that changes between the read and the delete", func(t *testing.T) {
		w := newWorld(t)
		w.copied()
		in := w.pruning()
		w.intercept = func(r *http.Request) *answer {
			if r.Method == http.MethodDelete {
				w.edit(`{"metadata":{"labels":{"new":"yes"}}}`)
			}
			return nil
		}
		w.prune(in, changed)
		w.holds(3, "5;11-b")
	})
	t.Run("another object of that name", func(t *testing.T) {
		w := newWorld(t)
		w.copied()
		in := w.pruning()
		w.delete()
		w.copied()
		w.prune(in, changed)
		w.holds(3, "5;11-b")
	})
}

func TestPruneLeavesAloneWhatTheHubDidNotApply(t *testing.T) {
	for name, patch := range map[string]string{
		"an object without our entry of managedFields, as after a restore on the member": `{"metadata":{"managedFields":[{}]}}`,
		"an object without the label":         `{"metadata":{"labels":{"hanse.dev/hub":null}}}`,
		"the copy of another hub":             `{"metadata":{"labels":{"hanse.dev/hub":"hub-2"}}}`,
		"the copy of another object":          `{"metadata":{"annotations":{"hanse.dev/owner":"shop.example.com/Widget/other/web/template-1"}}}`,
		"an object without the mark of owner": `{"metadata":{"annotations":{"hanse.dev/owner":null}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.copied()
			w.edit(patch)
			in := w.pruning()
			in.Owner.Namespace = w.ns
			if out := w.prune(in, wasGone); out.UID != w.get().GetUID() || !strings.Contains(out.Message, "left alone") {
				t.Errorf("got %+v", out)
			}
		})
	}
}

func TestPruneHoldsACopyThatIsNewerThanTheHub(t *testing.T) {
	w := newWorld(t)
	w.copied()
	in := w.pruning()
	in.Source = hubAt(t, 9, "10-a 11-restored")
	w.prune(in, older)
	in.Source = hubAt(t, 4, "10-a 11-b") // the hub has the object at an older generation
	in.OwnerUID = ownerUID
	w.prune(in, older)
	w.holds(3, "5;11-b")
	in.Source = hubAt(t, 1, "500-accepted")
	w.prune(in, withdrawn)
}

func TestPruneOrphansWhatItMustNotDelete(t *testing.T) {
	orphaned := func(t *testing.T, w *world, in member.PruneIntent) {
		t.Helper()
		if out := w.prune(in, withdrawn); out.Orphaned == nil || !strings.Contains(out.Message, "stays on the cluster") {
			t.Errorf("got %+v", out)
		}
		live := w.get()
		if live.GetLabels()[hubv1.HubLabel] != "" || live.GetAnnotations()[hubv1.OwnerAnnotation] != "" {
			t.Errorf("it has marks still: %v %v", live.GetLabels(), live.GetAnnotations())
		}
	}
	t.Run("a copy that was adopted", func(t *testing.T) {
		w := newWorld(t)
		w.create(object(widget, w.ns, "web", spec(map[string]any{"size": int64(3)})))
		in := w.sized(3, hubAt(t, 5, "10-a 11-b"))
		in.Adoption = hubv1.AdoptionAlways
		w.apply(in, written)
		orphaned(t, w, w.pruning())
	})
	t.Run("a copy whose policy is Orphan", func(t *testing.T) {
		w := newWorld(t)
		w.copied()
		in := w.pruning()
		in.Policy = hubv1.RemovalOrphan
		orphaned(t, w, in)
	})
}

func TestPruneWaitsForNothing(t *testing.T) {
	w := newWorld(t)
	w.copied()
	w.edit(`{"metadata":{"finalizers":["example.com/slow"]}}`)
	w.prune(w.pruning(), result{metav1.ConditionFalse, hubv1.ReasonFinalizersRemain, true, member.RetrySlowly})
	w.edit(`{"metadata":{"finalizers":null}}`)
}
