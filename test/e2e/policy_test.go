package e2e

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// TestAMembersPolicyBoundsAStolenAccountAndNotTheHub sends requests with the token of the hub's account to a member. By
// RBAC, the account may write ConfigMaps there. The admission policy of the chart limits it.
func TestAMembersPolicyBoundsAStolenAccountAndNotTheHub(t *testing.T) {
	ctx := t.Context()
	member := suite.Members[singapore]
	token, err := member.Token(ctx, "hanse")
	must(t, err)
	kubeconfig, err := member.KubeconfigFor(token, false)
	must(t, err)
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	must(t, err)
	stolen, err := client.New(config, client.Options{})
	must(t, err)

	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "policy-", Namespace: "default"}}
	must(t, member.Create(ctx, theirs))
	t.Cleanup(func() { _ = member.Delete(t.Context(), theirs) })
	refused := func(what string, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %v, want a refusal", what, err)
		}
	}
	marked := map[string]string{hubv1.HubLabel: "hub"}
	refused("a new object without the label", stolen.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "policy-", Namespace: "default"}}))
	refused("an object in kube-system", stolen.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "policy-", Namespace: "kube-system", Labels: marked}}))
	refused("the deletion of an object without the label", stolen.Delete(ctx, theirs))

	ns := namespace(t)
	placeWidgets(t, ns, singapore)
	w := widget(ns, "web")
	must(t, suite.Hub.Create(ctx, w))
	eventually(t, normal, func() error { return replicasOn(ctx, singapore, w, 3) })
	must(t, suite.Hub.Delete(ctx, w))
	eventually(t, normal, func() error {
		_, err := on(ctx, singapore, w)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("reading the copy: %w", err)
		}
		return errors.New("the copy is still there")
	})
}
