package console

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// The binding of the ConfigMap says that its rollout has ended, but its bundle waits for an approval.
func TestThePageOfAnObjectShowsAndUndoesTheRolloutOfItsBundle(t *testing.T) {
	r := newRolling(t)
	at := metav1.NewTime(began)
	bundle := &hubv1.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: r.ns, Name: "web"}}
	bundle.Spec.Manifests = []runtime.RawExtension{{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings"}}`)}}
	must(t, r.hub.Create(t.Context(), bundle))
	of := hubv1.ReferenceTo(bundle)
	must(t, r.hub.Get(t.Context(), client.ObjectKeyFromObject(r.binding), r.binding))
	r.binding.Spec.ObjectRef.Bundle = &of
	r.binding.Spec.Rollout = &hubv1.BindingRollout{Revision: 7, Newest: 7, Passed: 7, Phase: hubv1.RolloutComplete, Since: at, Began: at}
	must(t, r.hub.Update(t.Context(), r.binding))
	key := of.SetRolloutKey(hubv1.SystemNamespace)
	must(t, client.IgnoreAlreadyExists(r.hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: key.Namespace}})))
	record := &hubv1.SetRollout{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Spec: hubv1.SetRolloutSpec{
		Bundle: of, BundleUID: bundle.UID, Newest: hubv1.SetList{List: "b", Time: at}, PlacementRef: r.binding.Spec.PlacementRef,
		Revisions: []hubv1.SetRevision{{Number: 2, List: "a", Time: at, Passed: true}, {Number: 3, List: "b", Time: at}},
		Rollout: &hubv1.BindingRollout{
			Revision: 3, Newest: 3, Passed: 2, Wave: "rest", Phase: hubv1.RolloutWaitingForApproval, Since: at, Began: at, Message: "wave rest waits for approval",
		},
		Clusters: []hubv1.SetCluster{{Name: r.members[0], Revision: 3, Since: &at}, {Name: r.members[1], Revision: 2}},
	}}
	must(t, r.hub.Create(t.Context(), record))

	bundles := rbacv1.PolicyRule{APIGroups: []string{hubv1.GroupVersion.Group}, Resources: []string{"bundles"}, Verbs: []string{"get", "list", "patch"}}
	tenant := r.signedIn(r.token(append(append(steers(), bundles), reads()...), nil))
	if text := tenant.get(r.history()).text; strings.Contains(text, "/rollouts/undo") {
		t.Errorf("a user who may not read the SetRollout can undo:\n%s", text)
	}
	b := r.signedIn(r.token(append(steers(), bundles), reads()))
	text := b.get(r.history()).text
	for _, want := range []string{"Rollout of Bundle " + r.ns + "/web", "waiting for approval", "Waiting for wave rest", "Return to revision 2", "changes with its bundle"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	form := b.form(r.history(), "/rollouts/undo")
	form.Set("revision", "2")
	if answer := b.post("/rollouts/undo", form); answer.StatusCode != http.StatusSeeOther {
		t.Fatalf("%s: %s", answer.Status, answer.text)
	}
	if got := r.annotation(bundle, hubv1.RolloutUndoAnnotation); !strings.HasPrefix(got, "2@") {
		t.Errorf("the annotation of the bundle is %q", got)
	}
	if got := r.annotation(r.binding, hubv1.RolloutUndoAnnotation); got != "" {
		t.Errorf("the annotation of the binding is %q", got)
	}
}
