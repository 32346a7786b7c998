package command

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestOnlyAnObjectThatNoPlacementSelectsIsWithdrawn(t *testing.T) {
	fresh(t)
	object, binding := settings(t)
	binding.Spec.Clusters = []hubv1.BindingTarget{{Name: "eu-fra-1", State: hubv1.TargetPresent}}
	apply(t, onHub, binding)
	withdraw := func(args ...string) (string, error) {
		return hansectl(t, append([]string{"withdraw", "configmap", object.GetName(), "-n", object.GetNamespace()}, args...)...)
	}
	decide := func(reason string) {
		t.Helper()
		must(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(binding), binding))
		meta.SetStatusCondition(&binding.Status.Conditions, metav1.Condition{Type: hubv1.ConditionScheduled, Status: metav1.ConditionTrue, Reason: reason})
		must(t, onHub.Status().Update(t.Context(), binding))
	}
	decide(hubv1.ReasonScheduled)
	_, err := withdraw("--yes")
	refused(t, err, "a placement selects ConfigMap")
	decide(hubv1.ReasonPlacementGone)
	_, err = withdraw()
	refused(t, err, "pass --yes to confirm")
	out, err := withdraw("--yes")
	must(t, err)
	wants(t, out, "is being withdrawn from 1 cluster")
	must(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	if got := object.GetAnnotations()[hubv1.WithdrawAnnotation]; got != string(binding.UID) {
		t.Errorf("the annotation is %q, want the UID of the binding, %q", got, binding.UID)
	}
	_, err = hansectl(t, "withdraw", "configmap", "none", "-n", object.GetNamespace(), "--yes")
	refused(t, err, "the hub has no")
}
