package command

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/cmd/hansectl/view"
)

// settings is a ConfigMap of the hub with a binding for two clusters.
func settings(t *testing.T) (*corev1.ConfigMap, *hubv1.ResourceBinding) {
	t.Helper()
	must(t, client.IgnoreAlreadyExists(onHub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})))
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings"}}
	apply(t, onHub, object)
	key := hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: "shop", Name: "settings"}.BindingKey()
	binding := &hubv1.ResourceBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Finalizers: []string{hubv1.WithdrawFinalizer}},
		Spec: hubv1.BindingSpec{
			ObjectRef:    hubv1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: "settings", UID: object.UID},
			PlacementRef: &hubv1.PlacementReference{Kind: "Placement", Namespace: "shop", Name: "all", UID: "p", Generation: 1},
			Clusters:     []hubv1.BindingTarget{{Name: "ap-se-1", State: hubv1.TargetPresent}, {Name: "cn-sha-1", State: hubv1.TargetPresent}},
		},
	}
	return object, binding
}

func TestStatusFindsAnObjectAsKubectlDoes(t *testing.T) {
	fresh(t)
	object, binding := settings(t)

	t.Run("without a binding it says why", func(t *testing.T) {
		out, err := hansectl(t, "status", "configmap", "settings", "-n", "shop")
		must(t, err)
		wants(t, out, "ConfigMap shop/settings   not federated", "NotSelected: no placement selects it", "create a Placement in namespace shop")
	})

	apply(t, onHub, binding)
	binding.Status = hubv1.BindingStatus{
		Summary: hubv1.BindingSummary{Desired: 2, Applied: 1, Healthy: 1},
		Clusters: []hubv1.ClusterRow{
			{Name: "ap-se-1", Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy},
			{Name: "cn-sha-1", Applied: metav1.ConditionFalse, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonForbidden, Message: "grant it"},
		},
	}
	must(t, onHub.Status().Update(t.Context(), binding))
	for _, args := range [][]string{{"configmap", "settings"}, {"configmaps", "settings"}, {"cm", "settings"}, {"ConfigMap", "settings"}, {"configmaps.v1.", "settings"}, {"cm/settings"}} {
		t.Run("as "+strings.Join(args, " "), func(t *testing.T) {
			out, err := hansectl(t, append(append([]string{"status"}, args...), "-n", "shop")...)
			must(t, err)
			wants(t, out, "ConfigMap shop/settings   Placement/all", "APPLIED 1/2   HEALTHY 1/2", "cn-sha-1   -        -     False     -       Unknown   live    Forbidden: grant it")
		})
	}
	t.Run("as JSON", func(t *testing.T) {
		out, err := hansectl(t, "status", "cm", "settings", "-n", "shop", "-o", "json")
		must(t, err)
		var s view.Status
		must(t, json.Unmarshal([]byte(out), &s))
		if s.Object.Name != "settings" || len(s.Clusters) != 2 || s.Clusters[1].Reason != hubv1.ReasonForbidden {
			t.Errorf("got %+v", s)
		}
	})
	t.Run("as YAML", func(t *testing.T) {
		out, err := hansectl(t, "status", "cm", "settings", "-n", "shop", "-o", "yaml")
		must(t, err)
		wants(t, out, "clusters:\n- applied: \"True\"\n  cluster: ap-se-1\n")
	})
	t.Run("a deleted object is still shown", func(t *testing.T) {
		must(t, onHub.Delete(t.Context(), object))
		out, err := hansectl(t, "status", "cm", "settings", "-n", "shop")
		must(t, err)
		wants(t, out, "ConfigMap shop/settings   deleted")
	})
	t.Run("what is not there is an error", func(t *testing.T) {
		_, err := hansectl(t, "status", "cm", "other", "-n", "shop")
		refused(t, err, "the hub has no ConfigMap shop/other")
		_, err = hansectl(t, "status", "prometheus", "web")
		refused(t, err, `the hub does not serve a kind "prometheus"`)
	})
}
