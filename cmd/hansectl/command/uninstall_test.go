package command

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/charts"
)

// asHook has the flags with which a command runs as the ServiceAccount of the chart's hook.
var asHook = []string{"--as", "system:serviceaccount:hanse-system:hanse-uninstall", "--as-group", "system:serviceaccounts", "--as-group", "system:authenticated"}

func TestUninstallStopsTheHubThenTakesItsFinalizersOff(t *testing.T) {
	fresh(t)
	ctx := t.Context()
	for _, o := range charts.Render(t, "hanse-hub/templates/uninstall-hook.yaml", map[string]any{
		"uninstallHook": map[string]any{"enabled": true, "image": map[string]any{"repository": "hansectl", "tag": "", "pullPolicy": "Always"}},
	}) {
		if o.GetKind() == "Job" {
			continue
		}
		o.SetAnnotations(nil)
		apply(t, onHub, o)
	}
	labels := map[string]string{"app.kubernetes.io/name": "hanse-hub"}
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "hub", Image: "hub"}}}
	apply(t, onHub, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: hubName, Annotations: map[string]string{"meta.helm.sh/release-name": "league"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](2), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
		},
	})
	running := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: "hanse-hub-1", Labels: labels}, Spec: pod}
	apply(t, onHub, running)
	whenever(t, func(ctx context.Context) error { // does the work of the Deployment's controller and the kubelet
		var d appsv1.Deployment
		if err := onHub.Get(ctx, client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: hubName}, &d); err != nil || *d.Spec.Replicas > 0 {
			return fmt.Errorf("not yet: %w", err)
		}
		return onHub.Delete(ctx, running, client.GracePeriodSeconds(0))
	})
	apply(t, onHub, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: hubName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("hanse-hub-1_x"), LeaseDurationSeconds: ptr.To[int32](1), RenewTime: &metav1.MicroTime{Time: time.Now()}},
	})

	_, binding := settings(t)
	binding.Finalizers = []string{"example.com/other", hubv1.WithdrawFinalizer}
	apply(t, onHub, binding)
	leaving := &hubv1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "eu-fra-1", Finalizers: []string{hubv1.WithdrawFinalizer}},
		Spec: hubv1.MemberClusterSpec{
			Connection:        hubv1.Connection{Type: hubv1.ConnectionDirect, Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: "eu-fra-1"}}},
			AllowedNamespaces: hubv1.AllowedNamespaces{From: hubv1.NamespacesFromAll},
		},
	}
	apply(t, onHub, leaving)
	must(t, onHub.Delete(ctx, leaving))

	many := pageSize + 50
	for i := range many {
		b := binding.DeepCopy()
		b.ResourceVersion, b.UID, b.Name, b.Spec.ObjectRef.Name = "", "", fmt.Sprintf("settings-%d", i), fmt.Sprintf("settings-%d", i)
		must(t, onHub.Create(ctx, b))
	}
	t.Cleanup(func() {
		_ = wait.PollUntilContextTimeout(context.WithoutCancel(t.Context()), time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			var left hubv1.ResourceBindingList
			if err := onHub.List(ctx, &left); err != nil || len(left.Items) == 0 {
				return err == nil, err
			}
			for i := range left.Items {
				remove(t, onHub, &left.Items[i])
			}
			return false, nil
		})
	})

	t.Run("without a terminal it wants to be told", func(t *testing.T) {
		_, err := hansectl(t, "uninstall")
		refused(t, err, "pass --yes")
	})
	t.Run("with the rights of the chart's hook it does it", func(t *testing.T) {
		out, err := hansectl(t, append([]string{"uninstall", "--yes"}, asHook...)...)
		must(t, err)
		wants(t, out, "deployment/hanse-hub               scaled to 0", "no pod of the hub is left", "no hub leads any more",
			"memberclusters                     finalizer removed from 1", fmt.Sprintf("resourcebindings                   finalizer removed from %d", many+1),
			fmt.Sprintf("Objects that stay on the hub, without its finalizer: 0 MemberClusters, %d ResourceBindings", many+1), " 0 ClusterResourceBindings", "Next: helm uninstall league --namespace hanse-system")
		must(t, onHub.Get(ctx, client.ObjectKeyFromObject(binding), binding))
		if diff := cmp.Diff([]string{"example.com/other"}, binding.Finalizers); diff != "" {
			t.Errorf("finalizers (-want +got):\n%s", diff)
		}
		if err := onHub.Get(ctx, client.ObjectKeyFromObject(leaving), leaving); !apierrors.IsNotFound(err) {
			t.Errorf("what was being deleted hangs: %v", err)
		}
	})
	t.Run("again it finds nothing to do", func(t *testing.T) {
		out, err := hansectl(t, "uninstall", "--yes")
		must(t, err)
		wants(t, out, "is scaled to 0 already", "Objects that stay on the hub, without its finalizer: 0 MemberClusters, ")
	})
}

func TestUninstallRefusesWhileAHubRunsThatItCannotStop(t *testing.T) {
	fresh(t)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: hubName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("somewhere_else"), LeaseDurationSeconds: ptr.To[int32](15)},
	}
	apply(t, onHub, lease)
	_, binding := settings(t)
	apply(t, onHub, binding)
	whenever(t, func(ctx context.Context) error {
		lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
		_ = onHub.Update(ctx, lease)
		return fmt.Errorf("again")
	})
	_, err := hansectl(t, "uninstall", "--yes")
	refused(t, err, "the Lease hanse-hub is renewed by somewhere_else", "end it, then run the command again")
	must(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(binding), binding))
	if !controllerutil.ContainsFinalizer(binding, hubv1.WithdrawFinalizer) {
		t.Error("a finalizer was taken off while a hub runs")
	}
}

func TestUninstallWorksWithoutHansesDefinitions(t *testing.T) {
	needServers(t)
	out, err := run(t, "uninstall", "--yes", "--kubeconfig", onMember.kubeconfig)
	must(t, err)
	wants(t, out, "deployment/hanse-hub               there is none", "memberclusters                     the hub does not serve the kind any more")
}
