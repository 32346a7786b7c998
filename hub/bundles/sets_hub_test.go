package bundles

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/test/apiserver"
)

// record reads the SetRollout of a bundle. It is nil if there is none.
func (w *world) record(b *hubv1.Bundle) *hubv1.SetRollout {
	w.Helper()
	record := &hubv1.SetRollout{}
	err := w.admin.Get(w.Context(), hubv1.ReferenceTo(b).SetRolloutKey(w.system), record)
	if client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return record
}

// lists waits until the newest list of a bundle has exactly these ConfigMaps, and returns the SetRollout.
func (w *world) lists(b *hubv1.Bundle, names ...string) (record *hubv1.SetRollout) {
	w.Helper()
	w.eventually(fmt.Sprintf("the newest list of %s has %q", b.Name, names), func() error {
		if record = w.record(b); record == nil {
			return errors.New("there is no SetRollout")
		}
		list, err := w.revisions(w.admin).SetList(w.Context(), record.Spec.Newest.List)
		if err != nil {
			return err
		}
		var has []string
		for _, id := range list.Objects() {
			part, err := w.revisions(w.admin).SetPart(w.Context(), list[id])
			if err != nil {
				return err
			}
			has = append(has, part.GetName())
		}
		if !slices.Equal(has, names) {
			return fmt.Errorf("it has %q", has)
		}
		return nil
	})
	return record
}

// follows makes the binding of an object follow a rollout.
func (w *world) follows(b *hubv1.ResourceBinding) {
	w.Helper()
	b.Spec.Revisions = []hubv1.ObjectRevision{{Number: 1, Template: "a", Policies: "b", Time: metav1.Now()}}
	b.Spec.Rollout = &hubv1.BindingRollout{Revision: 1, Newest: 1, Phase: hubv1.RolloutComplete, Since: metav1.Now(), Began: metav1.Now()}
	must(w.T, w.admin.Update(w.Context(), b))
}

func TestABundleWithARolloutHasTheListOfItsObjects(t *testing.T) {
	t.Parallel()
	apiserver.Needed(t)
	w := newWorld(t, "sets", hubConfig)
	w.grant(writing("", "configmaps"))
	stop := w.lead()
	b := w.bundle("web", configMap("a"), configMap("b"))
	w.says(b, hubv1.ReasonStored, "")
	binding := w.bind(b, "a")
	w.stores("a", "b")
	if record := w.record(b); record != nil {
		t.Errorf("without a rollout, there is %v", record.Spec)
	}
	w.follows(binding)
	record := w.lists(b, "a", "b")
	if record.Spec.Bundle != hubv1.ReferenceTo(b) || record.Spec.BundleUID != b.UID || record.Spec.Newest.Generation != b.Generation || record.Spec.Rollout != nil {
		t.Errorf("the SetRollout has %v", record.Spec)
	}

	w.cut(b, configMap("b"), configMap("c"))
	w.lists(b, "b", "c")
	w.stores("-a", "b", "c") // no revision of the SetRollout is in use
	must(t, w.admin.Delete(t.Context(), w.record(b)))
	w.lists(b, "b", "c")
	stop()

	must(t, w.admin.Delete(t.Context(), b))
	again := w.bundle("web", configMap("b"))
	w.lead()
	w.eventually("the SetRollout of an earlier bundle goes", func() error {
		if record := w.record(b); record != nil && record.Spec.BundleUID != again.UID {
			return errors.New("it is still there")
		}
		return nil
	})
	must(t, w.admin.Delete(t.Context(), again))
	w.eventually("the SetRollout goes with its bundle", func() error {
		if w.record(b) != nil {
			return errors.New("it is still there")
		}
		return nil
	})
}

func TestAnObjectOfARevisionInUseIsNotRemoved(t *testing.T) {
	t.Parallel()
	apiserver.Needed(t)
	w := newWorld(t, "sets-held", hubConfig)
	w.grant(writing("", "configmaps"))
	stop := w.lead()
	b := w.bundle("web", configMap("a"), configMap("b"))
	w.says(b, hubv1.ReasonStored, "")
	w.follows(w.bind(b, "a"))
	record := w.lists(b, "a", "b")
	before := record.DeepCopy()
	newest := record.Spec.Newest
	list, err := w.revisions(w.admin).SetList(t.Context(), newest.List)
	must(t, err)
	packed, err := list.Pack(key)
	must(t, err)
	var parts []decide.Payload
	for _, id := range list.Objects() {
		content, err := w.revisions(w.admin).SetPart(t.Context(), list[id])
		must(t, err)
		part, err := decide.PackPart(key, content)
		must(t, err)
		parts = append(parts, part)
	}
	record.Spec.Revisions = []hubv1.SetRevision{{Number: 1, List: newest.List, Time: newest.Time}}
	record.Spec.Rollout = &hubv1.BindingRollout{Revision: 1, Newest: 1, Phase: hubv1.RolloutComplete, Since: newest.Time, Began: newest.Time}
	must(t, w.admin.Patch(t.Context(), record, client.MergeFrom(before)))

	w.cut(b, configMap("b"), configMap("c"))
	record = w.lists(b, "b", "c")
	w.stores("a", "b", "c")
	t.Run("and is stored again after a user has deleted its Secret", func(t *testing.T) {
		w.forget("a")
		w.stores("a", "b", "c")
	})
	t.Run("nor if its list is lost", func(t *testing.T) {
		stop() // the process has read the list
		must(t, w.admin.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.system, Name: "set-list-" + newest.List}}))
		w.cut(b, configMap("c"))
		w.lead()
		w.lists(b, "c")
		w.stores("a", "b", "c")
	})
	t.Run("until no revision has it", func(t *testing.T) {
		record = w.record(b)
		before := record.DeepCopy()
		record.Spec.Revisions = []hubv1.SetRevision{{Number: 2, List: record.Spec.Newest.List, Time: newest.Time}}
		must(t, w.admin.Patch(t.Context(), record, client.MergeFrom(before)))
		w.stores("-a", "c") // b has no binding, so that its Secret is deleted at once
	})
	t.Run("and comes back with its content when the bundle returns to a revision", func(t *testing.T) {
		must(t, w.revisions(w.admin).EnsureSet(t.Context(), packed, parts))
		record = w.record(b)
		before := record.DeepCopy()
		record.Spec.Revisions = append([]hubv1.SetRevision{{Number: 1, List: newest.List, Time: newest.Time}}, record.Spec.Revisions...)
		record.Spec.Rollout.Revision = 1
		must(t, w.admin.Patch(t.Context(), record, client.MergeFrom(before)))
		w.stores("a", "b", "c")
		if value, _, _ := unstructured.NestedString(w.stored()["a"].Manifest.Object, "data", "a"); value != "b" {
			t.Errorf("it has %q", value)
		}
	})
}

// mortal are the clients of a hub that ends after a number of writes: it makes no further write.
type mortal struct {
	client.Client
	left *atomic.Int32
}

var errEnded = errors.New("the hub has ended")

func (m mortal) ended() bool { return m.left.Add(-1) < 0 }

// Create implements client.Client.
func (m mortal) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	if m.ended() {
		return errEnded
	}
	return m.Client.Create(ctx, o, opts...)
}

// Patch implements client.Client.
func (m mortal) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	if m.ended() {
		return errEnded
	}
	return m.Client.Patch(ctx, o, p, opts...)
}

// Delete implements client.Client.
func (m mortal) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	if m.ended() {
		return errEnded
	}
	return m.Client.Delete(ctx, o, opts...)
}

// TestAHubThatEndsInBetweenLeavesNoPartOfABundle ends the hub before each write of a change of a bundle. No object of
// the bundle may change before the SetRollout names the complete new list.
func TestAHubThatEndsInBetweenLeavesNoPartOfABundle(t *testing.T) {
	t.Parallel()
	apiserver.Needed(t)
	w := newWorld(t, "sets-ends", hubConfig)
	w.grant(writing("", "configmaps"))
	stop := w.lead()
	b := w.bundle("web", configMap("a"), configMap("b"), configMap("c"))
	w.says(b, hubv1.ReasonStored, "")
	w.follows(w.bind(b, "a"))
	newest := w.lists(b, "a", "b", "c").Spec.Newest.List
	stop()
	value := func(name string, writes int) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"writes":"%d"}}`, name, writes)
	}
	for writes := 0; ; writes++ {
		before := w.stored()
		var left atomic.Int32
		left.Store(int32(writes)) //nolint:gosec // a few
		w.through = func(c client.Client) client.Client { return mortal{c, &left} }
		w.cut(b, value("a", writes), value("b", writes), value("c", writes))
		stop := w.lead()
		w.eventually("the hub has ended, or the change is complete", func() error {
			if left.Load() >= 0 && w.condition(b).Reason != hubv1.ReasonStored {
				return errors.New("it still works")
			}
			return nil
		})
		stop()
		record := w.record(b)
		if record.Spec.Newest.List == newest {
			if diff := cmp.Diff(before, w.stored()); diff != "" {
				t.Errorf("after %d writes, objects have changed before the list was named (-before +after):\n%s", writes, diff)
			}
		} else {
			w.lists(b, "a", "b", "c") // it is complete
		}
		complete := left.Load() >= 0
		w.through = nil
		stop = w.lead()
		w.says(b, hubv1.ReasonStored, "")
		stop()
		newest = w.record(b).Spec.Newest.List
		for name, o := range w.stored() {
			if got, _, _ := unstructured.NestedString(o.Manifest.Object, "data", "writes"); got != fmt.Sprint(writes) {
				t.Errorf("after %d writes and a new start, %s has %q", writes, name, got)
			}
		}
		if complete {
			t.Logf("a change has at most %d writes", writes)
			return
		}
	}
}
