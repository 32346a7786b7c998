package apply_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/informer"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/content"
)

func clientOf(t *testing.T, way http.RoundTripper) rest.Interface {
	t.Helper()
	c, err := informer.NewRESTClient(&rest.Config{Host: "https://member.invalid", Transport: way, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var (
	withdrawn = result{metav1.ConditionTrue, hubv1.ReasonWithdrawn, true, member.RetryNever}
	wasGone   = result{metav1.ConditionTrue, hubv1.ReasonWithdrawn, false, member.RetryNever}
)

func (w *world) gone() bool {
	w.Helper()
	_, err := w.objects(widget, w.ns).Get(w.Context(), "web", metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

func TestWithdrawDeletes(t *testing.T) {
	w := newWorld(t)
	w.apply(w.intent(map[string]any{"size": int64(3)}, "d1"), written)
	w.withdraw(w.withdrawal(), withdrawn)
	if !w.gone() {
		t.Error("it is still there")
	}
	w.withdraw(w.withdrawal(), wasGone)
}

func TestWithdrawWaitsForFinalizers(t *testing.T) {
	w := newWorld(t)
	w.apply(w.intent(map[string]any{"size": int64(3)}, "d1"), written)
	w.edit(`{"metadata":{"finalizers":["example.com/slow"]}}`)
	waiting := result{metav1.ConditionFalse, hubv1.ReasonFinalizersRemain, true, member.RetrySlowly}
	if out := w.withdraw(w.withdrawal(), waiting); !strings.Contains(out.Message, "example.com/slow") || out.UID == "" {
		t.Errorf("%+v", out)
	}
	w.intercept = func(r *http.Request) *answer {
		if r.Method != http.MethodGet {
			t.Errorf("%s of an object that is being deleted", r.Method)
		}
		return nil
	}
	w.withdraw(w.withdrawal(), failed(hubv1.ReasonFinalizersRemain, member.RetrySlowly))
	w.edit(`{"metadata":{"finalizers":null}}`)
	w.withdraw(w.withdrawal(), wasGone)
}

func TestWithdrawInTheForegroundWaits(t *testing.T) {
	w := newWorld(t)
	w.apply(w.intent(map[string]any{"size": int64(3)}, "d1"), written)
	in := w.withdrawal()
	in.Propagation = metav1.DeletePropagationForeground
	w.withdraw(in, result{metav1.ConditionFalse, hubv1.ReasonFinalizersRemain, true, member.RetrySlowly})
	if f := w.get().GetFinalizers(); len(f) != 1 || f[0] != "foregroundDeletion" {
		t.Errorf("finalizers %v", f)
	}
}

func TestWithdrawLeavesAloneWhatIsNotTheCopy(t *testing.T) {
	tests := map[string]func(*world){
		"an object of nobody": func(w *world) { w.create(object(widget, w.ns, "web", nil)) },
		"a child with copies of our marks": func(w *world) {
			u := object(widget, w.ns, "web", nil)
			u.SetLabels(map[string]string{"hanse.dev/hub": "hub-1"})
			u.SetAnnotations(map[string]string{"hanse.dev/owner": w.withdrawal().Owner.Owner(ownerUID)})
			w.create(u)
		},
		"a copy of a later hub object of that name": func(w *world) {
			in := w.intent(nil, "d1")
			in.OwnerUID = "template-2"
			w.apply(in, written)
		},
		"a copy that a tool restored without our field ownership": func(w *world) {
			w.apply(w.intent(nil, "d1"), written)
			w.edit(`{"metadata":{"managedFields":[{}]}}`)
		},
		"a copy that another hub has marked since": func(w *world) {
			w.apply(w.intent(nil, "d1"), written)
			w.edit(`{"metadata":{"labels":{"hanse.dev/hub":"hub-2"}}}`)
		},
	}
	for name, prepare := range tests {
		for _, policy := range []hubv1.RemovalPolicy{hubv1.RemovalDelete, hubv1.RemovalOrphan} {
			t.Run(name+", "+string(policy), func(t *testing.T) {
				w := newWorld(t)
				prepare(w)
				before := w.get()
				in := w.withdrawal()
				in.Policy = policy
				if out := w.withdraw(in, wasGone); !strings.Contains(out.Message, "left alone") || out.UID != before.GetUID() {
					t.Errorf("%+v", out)
				}
				if diff := cmp.Diff(before, w.get()); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestWithdrawDecidesAgainIfTheObjectChanges(t *testing.T) {
	w := newWorld(t)
	w.apply(w.intent(nil, "d1"), written)
	once := false
	w.intercept = func(r *http.Request) *answer {
		if r.Method == http.MethodDelete && !once {
			once = true
			w.edit(`{"metadata":{"labels":{"hanse.dev/hub":"hub-2"}}}`)
		}
		return nil
	}
	w.withdraw(w.withdrawal(), wasGone)
	if w.gone() {
		t.Error("an object that changed hands was deleted")
	}
}

func TestOrphan(t *testing.T) {
	tests := map[string]string{
		"alone": "", "with another manager": `{"spec":{"note":"theirs"}}`,
	}
	for name, edit := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.apply(w.intent(map[string]any{"size": int64(3)}, "d1"), written)
			if edit != "" {
				w.edit(edit)
			}
			before := w.get()
			in := w.withdrawal()
			in.Policy = hubv1.RemovalOrphan
			w.withdraw(in, withdrawn)
			after := w.get()
			if _, ours := content.Hash(nil, after); ours || len(after.GetLabels())+len(after.GetAnnotations()) > 0 {
				t.Errorf("labels %v, annotations %v, managers %v", after.GetLabels(), after.GetAnnotations(), after.GetManagedFields())
			}
			if diff := cmp.Diff(before.Object["spec"], after.Object["spec"]); diff != "" || after.GetUID() != before.GetUID() {
				t.Error(diff)
			}
			for _, m := range after.GetManagedFields() {
				if m.Manager == hubv1.FieldManager {
					t.Errorf("manager %+v", m)
				}
			}
			if n := len(after.GetManagedFields()); edit != "" && n != 1 {
				t.Errorf("%d managers are left", n)
			}
			// If an object has no field manager left, the server assigns its fields to the manager
			// "before-first-apply", so that an apply must be forced.
			theirs := object(widget, w.ns, "web", spec(map[string]any{"size": int64(4)}))
			if _, err := w.objects(widget, w.ns).Apply(t.Context(), "web", theirs, metav1.ApplyOptions{FieldManager: "argo", Force: edit == ""}); err != nil {
				t.Errorf("somebody else cannot take over: %v", err)
			}
			w.withdraw(in, wasGone)
		})
	}
}

func TestWithdrawOfAKindThatIsNotServed(t *testing.T) {
	tests := map[string]struct {
		gvk  schema.GroupVersionKind
		want result
		says string
	}{
		"the definition has other versions": {widgetV2, failed(hubv1.ReasonKindNotServed, member.RetrySlowly), "does not serve Widget"},
		"the definition is gone":            {ghost, wasGone, "gone from the cluster"},
		"the mapper knows neither kind nor plural, and there is no definition": {
			schema.GroupVersionKind{Group: "shop.example.com", Version: "v1", Kind: "Nothing"}, wasGone, "gone from the cluster",
		},
		"the mapper does not know the kind, but there is a definition": {
			schema.GroupVersionKind{Group: "hidden.example.com", Version: "v1", Kind: "Hidden"},
			failed(hubv1.ReasonKindNotServed, member.RetrySlowly), "does not serve Hidden",
		},
		"a built-in kind has no definition": {
			schema.GroupVersionKind{Group: "apps", Version: "v9", Kind: "StatefulSet"}, failed(hubv1.ReasonKindNotServed, member.RetrySlowly), "",
		},
	}
	w := newWorld(t)
	hidden := definition("Hidden", "hiddens")
	hidden.Name, hidden.Spec.Group = "hiddens.hidden.example.com", "hidden.example.com"
	w.installDefinition(hidden)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			in := w.withdrawal()
			in.GVK, in.Owner.Group, in.Owner.Kind = tc.gvk, tc.gvk.Group, tc.gvk.Kind
			w := &world{T: t, applier: w.applier}
			if out := w.withdraw(in, tc.want); !strings.Contains(out.Message, tc.says) {
				t.Error(out.Message)
			}
		})
	}
}

func TestWithdrawDoesNotTakeAFailedQuestionForAnAnswer(t *testing.T) {
	w := newWorld(t)
	w.intercept = func(r *http.Request) *answer {
		if strings.Contains(r.URL.Path, "customresourcedefinitions") {
			return status(403, metav1.Status{
				Reason:  metav1.StatusReasonForbidden,
				Message: `customresourcedefinitions.apiextensions.k8s.io "x" is forbidden: User "u" cannot get resource "customresourcedefinitions" in API group "apiextensions.k8s.io" at the cluster scope`,
			})
		}
		return nil
	}
	in := w.withdrawal()
	in.GVK = ghost
	w.withdraw(in, failed(hubv1.ReasonForbidden, member.RetrySlowly))
}
