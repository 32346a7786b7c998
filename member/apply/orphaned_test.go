package apply_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/content"
)

// adopted adopts an object that was on the member before, and returns the outcome.
func (w *world) adopted() member.Outcome {
	w.Helper()
	w.create(object(widget, w.ns, "web", spec(map[string]any{"size": int64(3)})))
	in := w.intent(map[string]any{"size": int64(3)}, "d1")
	in.Adoption = hubv1.AdoptionAlways
	return w.apply(in, written)
}

// confirmed returns the intent to apply a copy whose row in the binding has the fields of the outcome.
func (w *world) confirmed(of member.Outcome, fields map[string]any, digest string) member.ApplyIntent {
	in := w.intent(fields, digest)
	in.Confirmed, in.ConfirmedUID, in.Adopted = of.Hash, of.UID, of.Adopted
	return in
}

// withdrawalOf returns the intent to withdraw a copy whose row has the fields of the outcome.
func (w *world) withdrawalOf(of member.Outcome, policy hubv1.RemovalPolicy) member.WithdrawIntent {
	in := w.withdrawal()
	in.ConfirmedUID, in.ConfirmedDigest, in.Adopted = of.UID, of.Digest, of.Adopted
	in.Policy, in.PolicyIfAdopted = policy, hubv1.RemovalOrphan
	return in
}

const forgotten = `{"metadata":{"annotations":{"hanse.dev/adopted":null}}}`

func TestACopyThatWasAdoptedIsOrphaned(t *testing.T) {
	tests := map[string]struct {
		copy    func(*world) member.Outcome
		intent  func(*member.WithdrawIntent)
		deleted bool
	}{
		"a copy that the hub made is deleted": {
			copy: func(w *world) member.Outcome {
				return w.apply(w.intent(map[string]any{"size": int64(3)}, "d1"), written)
			},
			deleted: true,
		},
		"one that was adopted stays": {copy: (*world).adopted},
		"also if its mark was taken off": {copy: func(w *world) member.Outcome {
			out := w.adopted()
			w.edit(forgotten)
			return out
		}},
		"also if its row was lost": {copy: func(w *world) member.Outcome {
			w.adopted()
			return member.Outcome{}
		}},
		"also if its owner was deleted and made anew": {copy: (*world).adopted, intent: func(in *member.WithdrawIntent) { in.OwnerUID = "template-2" }},
		"unless the placement says Delete": {
			copy: (*world).adopted, intent: func(in *member.WithdrawIntent) { in.PolicyIfAdopted = hubv1.RemovalDelete }, deleted: true,
		},
		"one that was deleted since and made anew by the hub is deleted": {
			copy: func(w *world) member.Outcome {
				out := w.adopted()
				w.delete()
				return w.apply(w.confirmed(out, map[string]any{"size": int64(3)}, "d1"), written)
			},
			deleted: true,
		},
		"a row of an earlier object of that name says nothing": {
			copy: func(w *world) member.Outcome {
				out := w.adopted()
				w.delete()
				w.apply(w.intent(map[string]any{"size": int64(3)}, "d1"), written)
				return out
			},
			deleted: true,
		},
		"a mark that somebody forged keeps a copy": {copy: func(w *world) member.Outcome {
			out := w.apply(w.intent(map[string]any{"size": int64(3)}, "d1"), written)
			w.edit(`{"metadata":{"annotations":{"hanse.dev/adopted":"true"}}}`)
			return out
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			in := w.withdrawalOf(tc.copy(w), hubv1.RemovalDelete)
			if tc.intent != nil {
				tc.intent(&in)
			}
			out := w.withdraw(in, withdrawn)
			if w.gone() != tc.deleted {
				t.Fatalf("deleted is %t, %q", w.gone(), out.Message)
			}
			if tc.deleted {
				if out.Orphaned != nil {
					t.Errorf("it tells of a copy that was left: %+v", out.Orphaned)
				}
				return
			}
			live := w.get()
			if len(live.GetAnnotations())+len(live.GetLabels()) > 0 || !strings.Contains(out.Message, "it was adopted") {
				t.Errorf("labels %v, annotations %v, %q", live.GetLabels(), live.GetAnnotations(), out.Message)
			}
			want := &hubv1.OrphanedCopy{UID: live.GetUID(), Digest: in.ConfirmedDigest, Adopted: true}
			if diff := cmp.Diff(want, out.Orphaned); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheMarkOfAnAdoptedCopyStays(t *testing.T) {
	w := newWorld(t)
	first := w.adopted()
	if !first.Adopted || w.get().GetAnnotations()[hubv1.AdoptedAnnotation] != "true" {
		t.Fatalf("%+v, annotations %v", first, w.get().GetAnnotations())
	}
	in := w.confirmed(first, map[string]any{"size": int64(4)}, "d2")
	in.Observed = first.ResourceVersion
	second := w.apply(in, written)
	if !second.Adopted || w.get().GetAnnotations()[hubv1.AdoptedAnnotation] != "true" {
		t.Errorf("after an update: %+v, annotations %v", second, w.get().GetAnnotations())
	}
	w.edit(forgotten)
	third := w.apply(w.confirmed(second, map[string]any{"size": int64(4)}, "d2"), written)
	if !third.Adopted || w.get().GetAnnotations()[hubv1.AdoptedAnnotation] != "true" {
		t.Errorf("after it was taken off: %+v, annotations %v", third, w.get().GetAnnotations())
	}
	w.apply(w.confirmed(third, map[string]any{"size": int64(4)}, "d2"), unchanged)
	w.delete()
	fourth := w.apply(w.confirmed(third, map[string]any{"size": int64(4)}, "d2"), written)
	if fourth.Adopted || w.get().GetAnnotations()[hubv1.AdoptedAnnotation] != "" {
		t.Errorf("a copy that the hub made anew: %+v, annotations %v", fourth, w.get().GetAnnotations())
	}
}

func TestAnOrphanedCopyIsTakenBack(t *testing.T) {
	size3 := map[string]any{"size": int64(3)}
	made := func(w *world) member.Outcome { return w.apply(w.intent(size3, "d1"), written) }
	tests := map[string]struct {
		copy    func(*world) member.Outcome // default: a copy that the hub created
		since   func(*world)
		intent  func(*member.ApplyIntent)
		want    result
		drifted []member.FieldDrift
		adopted bool
	}{
		"as it was left":                    {want: written},
		"one that was adopted stays so":     {copy: (*world).adopted, want: written, adopted: true},
		"with a newer template":             {intent: func(in *member.ApplyIntent) { in.Manifest, in.Digest = in.Manifest.DeepCopy(), "d2"; size(in, 5) }, want: written},
		"by another hub object of the name": {intent: func(in *member.ApplyIntent) { in.OwnerUID = "template-2" }, want: written},
		"an edit since then is put back": {
			since: func(w *world) { w.edit(`{"spec":{"size":9}}`) }, want: written,
			drifted: []member.FieldDrift{{Path: ".spec.size", Manager: content.UnknownManager}},
		},
		"an edit since then stands if conflicts are reported": {
			since:   func(w *world) { w.edit(`{"spec":{"size":9}}`) },
			intent:  func(in *member.ApplyIntent) { in.FieldConflict = hubv1.FieldConflictReport },
			want:    failed(hubv1.ReasonFieldConflict, member.RetrySlowly),
			drifted: []member.FieldDrift{{Path: ".spec.size", Manager: content.UnknownManager}},
		},
		"a newer template is no conflict": {
			intent: func(in *member.ApplyIntent) {
				in.Manifest, in.Digest, in.FieldConflict = in.Manifest.DeepCopy(), "d2", hubv1.FieldConflictReport
				size(in, 5)
			},
			want: written,
		},
		"a pause holds": {
			since: func(w *world) { w.edit(`{"metadata":{"annotations":{"hanse.dev/pause":"2999-01-01T00:00:00Z"}}}`) },
			want:  failed(hubv1.ReasonPaused, member.RetryAfter),
		},
		"another object of the name is nobody's, whatever its marks": {
			since: func(w *world) {
				u := w.get()
				w.delete()
				u.SetResourceVersion("")
				u.SetUID("")
				u.SetLabels(map[string]string{hubv1.HubLabel: string(hubUID)})
				u.SetAnnotations(map[string]string{hubv1.OwnerAnnotation: w.withdrawal().Owner.Owner(ownerUID), hubv1.DigestAnnotation: "d1"})
				w.create(u)
			},
			want: failed(hubv1.ReasonAlreadyExists, member.RetrySlowly),
		},
		"another hub has it": {
			since: func(w *world) { w.edit(`{"metadata":{"labels":{"hanse.dev/hub":"hub-2"}}}`) },
			want:  failed(hubv1.ReasonOwnedByOther, member.RetrySlowly),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if tc.copy == nil {
				tc.copy = made
			}
			left := w.withdraw(w.withdrawalOf(tc.copy(w), hubv1.RemovalOrphan), withdrawn).Orphaned
			if left == nil || left.UID != w.get().GetUID() || left.Digest != "d1" {
				t.Fatalf("what was left is %+v", left)
			}
			if tc.since != nil {
				tc.since(w)
			}
			before := w.get()
			in := w.intent(size3, "d1")
			in.Orphaned = left
			if tc.intent != nil {
				tc.intent(&in)
			}
			out := w.apply(in, tc.want)
			if diff := cmp.Diff(tc.drifted, out.Drifted, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if tc.want != written {
				if diff := cmp.Diff(before, w.get()); diff != "" {
					t.Error(diff)
				}
				return
			}
			live := w.get()
			if live.GetUID() != before.GetUID() || live.GetLabels()[hubv1.HubLabel] != string(hubUID) || out.Adopted != tc.adopted {
				t.Errorf("%+v, labels %v", out, live.GetLabels())
			}
			w.withdraw(w.withdrawalOf(out, hubv1.RemovalDelete), withdrawn)
			if tc.want == written && w.gone() == tc.adopted {
				t.Errorf("after its withdrawal gone is %t", w.gone())
			}
		})
	}
}

func size(in *member.ApplyIntent, n int64) {
	in.Manifest.Object["spec"] = map[string]any{"size": n}
}

// The hub stopped after it had orphaned the copy and before it wrote the status of the binding.
func TestAnUnrecordedOrphaningIsReportedAgain(t *testing.T) {
	w := newWorld(t)
	out := w.apply(w.intent(map[string]any{"size": int64(3)}, "d1"), written)
	in := w.withdrawalOf(out, hubv1.RemovalOrphan)
	first := w.withdraw(in, withdrawn).Orphaned
	if diff := cmp.Diff(first, w.withdraw(in, wasGone).Orphaned); diff != "" {
		t.Error(diff)
	}
	in.Policy = hubv1.RemovalDelete
	if again := w.withdraw(in, wasGone).Orphaned; again != nil {
		t.Errorf("an object that was to be deleted and is nobody's is taken for an orphan: %+v", again)
	}
	in.Policy, in.ConfirmedUID = hubv1.RemovalOrphan, "another"
	if again := w.withdraw(in, wasGone).Orphaned; again != nil {
		t.Errorf("another object is taken for an orphan: %+v", again)
	}
}

func TestNoHintSaysToDeleteWhatTakesOtherObjectsAlong(t *testing.T) {
	crd := schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
	tests := map[string]struct {
		gvk     schema.GroupVersionKind
		name    string
		deletes bool
	}{
		"a definition": {gvk: crd, name: "widgets.shop.example.com"},
		"a namespace":  {gvk: namespace, name: "default"},
		"a widget":     {gvk: widget, name: "web", deletes: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(object(widget, w.ns, "web", nil))
			w.noWrites()
			manifest := object(tc.gvk, "", tc.name, nil)
			if tc.gvk == widget {
				manifest.SetNamespace(w.ns)
			}
			out := w.apply(w.intentOf(manifest, "d1"), failed(hubv1.ReasonAlreadyExists, member.RetrySlowly))
			if strings.Contains(out.Message, "delete") != tc.deletes || !strings.Contains(out.Message, "set spec.apply.adoption to IfNoDiff or Always") {
				t.Error(out.Message)
			}
		})
	}
}

// The copy is deleted after the Applier has read it, so that the write creates a new one.
func TestACopyThatIsMadeInTheMomentOfAWriteIsNotMarkedAdopted(t *testing.T) {
	w := newWorld(t)
	first := w.adopted()
	once := false
	w.intercept = func(r *http.Request) *answer {
		if r.Method == http.MethodPatch && !once {
			once = true
			w.delete()
		}
		return nil
	}
	out := w.applier.Apply(t.Context(), w.confirmed(first, map[string]any{"size": int64(4)}, "d2"))
	live, err := w.objects(widget, w.ns).Get(t.Context(), "web", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		t.Fatalf("%+v", out)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out.Adopted || live.GetAnnotations()[hubv1.AdoptedAnnotation] != "" {
		t.Errorf("%+v, annotations %v", out, live.GetAnnotations())
	}
}
