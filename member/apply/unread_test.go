package apply_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/content"
	"github.com/hanse-dev/hanse/member/epoch"
)

var serviceAccount = schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}

// seen returns the intent to withdraw an object, with the state that a watch of the cluster delivers for it now.
func (w *world) seen(gvk schema.GroupVersionKind, ns, name string) member.WithdrawIntent {
	w.Helper()
	live, err := w.objects(gvk, ns).Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	annotations := live.GetAnnotations()
	o := member.Observation{
		CopyState: member.CopyState{UID: live.GetUID(), ResourceVersion: live.GetResourceVersion(), Adopted: annotations[hubv1.AdoptedAnnotation] == "true"},
		Deleting:  live.GetDeletionTimestamp() != nil,
		Source:    epoch.ParseMark(annotations[hubv1.SourceAnnotation]),
	}
	if owner, uid, err := hubv1.ParseOwner(annotations[hubv1.OwnerAnnotation]); err == nil {
		o.Owner, o.OwnerUID = owner, uid
	}
	o.Hash, _ = content.Hash(key, live)
	in := w.withdrawal()
	in.GVK, in.Owner, in.PolicyIfAdopted, in.Seen = gvk, identity(object(gvk, ns, name, nil)), hubv1.RemovalOrphan, &o
	return in
}

// asks returns the HTTP methods of the requests that the Applier sends to the cluster during do.
func (w *world) asks(do func()) (methods []string) {
	w.Helper()
	before := w.intercept
	defer func() { w.intercept = before }()
	w.intercept = func(r *http.Request) *answer {
		methods = append(methods, r.Method)
		if before != nil {
			return before(r)
		}
		return nil
	}
	do()
	return methods
}

func (w *world) applied() {
	w.Helper()
	w.apply(w.intent(map[string]any{"size": int64(3)}, "d1"), written)
}

func (w *world) withdrawAsking(in member.WithdrawIntent, want result, methods ...string) member.Outcome {
	w.Helper()
	var out member.Outcome
	if diff := cmp.Diff(methods, w.asks(func() { out = w.withdraw(in, want) })); diff != "" {
		w.Errorf("requests (-want +got):\n%s", diff)
	}
	return out
}

func TestACopyThatTheWatchHasShownIsDeletedUnread(t *testing.T) {
	w := newWorld(t)
	w.applied()
	w.edit(`{"spec":{"note":"theirs"}}`)
	in := w.seen(widget, w.ns, "web")
	w.withdrawAsking(in, withdrawn, http.MethodDelete)
	if !w.gone() {
		t.Error("it is still there")
	}
	w.withdrawAsking(in, wasGone, http.MethodDelete)
}

func TestACopyIsReadFirst(t *testing.T) {
	deleted := []string{http.MethodGet, http.MethodDelete}
	tests := map[string]struct {
		copy    func(*world)
		intent  func(*member.WithdrawIntent)
		want    result
		methods []string
	}{
		"that no watch has shown": {
			intent: func(in *member.WithdrawIntent) { in.Seen = nil }, want: withdrawn, methods: deleted,
		},
		"that is to be orphaned": {
			intent: func(in *member.WithdrawIntent) { in.Policy = hubv1.RemovalOrphan },
			want:   withdrawn, methods: []string{http.MethodGet, http.MethodPatch},
		},
		"that was adopted, by its mark": {
			copy: func(w *world) { w.adopted() }, want: withdrawn, methods: []string{http.MethodGet, http.MethodPatch},
		},
		"that was adopted, by its row": {
			intent: func(in *member.WithdrawIntent) { in.Adopted = true }, want: withdrawn, methods: deleted,
		},
		"that a backup tool restored with our marks": {
			copy: func(w *world) {
				w.applied()
				w.edit(`{"metadata":{"managedFields":[{}]}}`)
			},
			want: wasGone, methods: []string{http.MethodGet},
		},
		"that names another hub object": {
			copy: func(w *world) {
				in := w.intent(nil, "d1")
				in.Owner.Name = "other"
				w.apply(in, written)
			},
			want: wasGone, methods: []string{http.MethodGet},
		},
		"that names no hub object": {
			copy: func(w *world) {
				w.applied()
				w.edit(`{"metadata":{"annotations":{"hanse.dev/owner":null}}}`)
			},
			want: wasGone, methods: []string{http.MethodGet},
		},
		"of a later hub object of that name": {
			intent: func(in *member.WithdrawIntent) { in.OwnerUID = "template-0" },
			want:   wasGone, methods: []string{http.MethodGet},
		},
		"that is being deleted": {
			copy: func(w *world) {
				w.applied()
				w.edit(`{"metadata":{"finalizers":["example.com/slow"]}}`)
				w.delete()
			},
			want: failed(hubv1.ReasonFinalizersRemain, member.RetrySlowly), methods: []string{http.MethodGet},
		},
		"that a later state of the hub wrote": {
			copy:   func(w *world) { w.apply(w.sized(3, hubAt(w.T, 5, "10-a 11-lost")), written) },
			intent: func(in *member.WithdrawIntent) { in.Source = hubAt(t, 5, "10-a 11-new") },
			want:   older, methods: []string{http.MethodGet},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if tc.copy == nil {
				tc.copy = (*world).applied
			}
			tc.copy(w)
			in := w.seen(widget, w.ns, "web")
			if tc.intent != nil {
				tc.intent(&in)
			}
			w.withdrawAsking(in, tc.want, tc.methods...)
			if want := slices.Contains(tc.methods, http.MethodDelete); w.gone() != want {
				t.Errorf("it is gone: %v, want %v", !want, want)
			}
		})
	}
}

func TestANamespaceIsReadFirst(t *testing.T) {
	w := newWorld(t)
	name := w.ns + "-wanted"
	w.apply(w.intentOf(object(namespace, "", name, nil), "d1"), written)
	in := w.seen(namespace, "", name)
	w.withdrawAsking(in, result{metav1.ConditionFalse, hubv1.ReasonDeleting, true, member.RetrySlowly}, http.MethodGet, http.MethodDelete)
}

func TestACopyThatChangedSinceTheWatchShowedItIsReadAndJudged(t *testing.T) {
	tests := map[string]struct {
		change  func(*world)
		want    result
		methods []string
		stays   bool
	}{
		"by somebody who edited it": {
			change: func(w *world) { w.edit(`{"spec":{"note":"theirs"}}`) },
			want:   withdrawn, methods: []string{http.MethodDelete, http.MethodGet, http.MethodDelete},
		},
		"by another hub that took it over": {
			change: func(w *world) { w.edit(`{"metadata":{"labels":{"hanse.dev/hub":"hub-2"}}}`) },
			want:   wasGone, methods: []string{http.MethodDelete, http.MethodGet}, stays: true,
		},
		"by somebody who made another object of that name": {
			change: func(w *world) {
				w.delete()
				w.create(object(widget, w.ns, "web", nil))
			},
			want: wasGone, methods: []string{http.MethodDelete, http.MethodGet}, stays: true,
		},
		"by a backup tool that restored it": {
			change: func(w *world) {
				restored := w.get()
				w.delete()
				for _, field := range []string{"uid", "resourceVersion", "managedFields", "creationTimestamp", "generation"} {
					unstructured.RemoveNestedField(restored.Object, "metadata", field)
				}
				w.create(restored)
			},
			want: wasGone, methods: []string{http.MethodDelete, http.MethodGet}, stays: true,
		},
		"by somebody who deleted it": {
			change: (*world).delete, want: wasGone, methods: []string{http.MethodDelete},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.applied()
			in := w.seen(widget, w.ns, "web")
			tc.change(w)
			w.withdrawAsking(in, tc.want, tc.methods...)
			if w.gone() == tc.stays {
				t.Errorf("it is gone: %v, want %v", !tc.stays, !tc.stays)
			}
		})
	}
}

func TestTheAnswerToADeletionSaysWhetherTheCopyWaits(t *testing.T) {
	w := newWorld(t)
	w.applied()
	w.edit(`{"metadata":{"finalizers":["example.com/slow"]}}`)
	waiting := result{metav1.ConditionFalse, hubv1.ReasonFinalizersRemain, true, member.RetrySlowly}
	out := w.withdrawAsking(w.seen(widget, w.ns, "web"), waiting, http.MethodDelete)
	if live := w.get(); !strings.Contains(out.Message, "example.com/slow") || out.UID != live.GetUID() || live.GetDeletionTimestamp() == nil {
		t.Errorf("%+v of %v", out, live.Object["metadata"])
	}

	for _, propagation := range []metav1.DeletionPropagation{metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		w := newWorld(t)
		w.applied()
		in := w.seen(widget, w.ns, "web")
		in.Propagation = propagation
		w.withdrawAsking(in, waiting, http.MethodDelete)
		if w.gone() {
			t.Errorf("%s: it is gone", propagation)
		}
	}
}

// For a ServiceAccount, the server's response to a delete is the deleted object, as for an object that waits for
// finalizers.
func TestADeletedObjectAsTheAnswerIsNotTakenForOneThatWaits(t *testing.T) {
	w := newWorld(t)
	w.apply(w.intentOf(object(serviceAccount, w.ns, "web", nil), "d1"), written)
	w.withdrawAsking(w.seen(serviceAccount, w.ns, "web"), withdrawn, http.MethodDelete, http.MethodGet)
}

func TestAFailedDeletionIsNoWithdrawal(t *testing.T) {
	w := newWorld(t)
	w.applied()
	in := w.seen(widget, w.ns, "web")
	w.intercept = func(*http.Request) *answer {
		return status(http.StatusInternalServerError, metav1.Status{Reason: metav1.StatusReasonInternalError, Message: "etcdserver: leader changed"})
	}
	w.withdrawAsking(in, failed(hubv1.ReasonServerError, member.RetrySoon), http.MethodDelete)
	w.intercept = nil
	w.withdrawAsking(in, withdrawn, http.MethodDelete)
}
