package command

import (
	"context"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestChecksFindWhatIsWrong(t *testing.T) {
	fresh(t)
	t.Run("a cluster without a hub", func(t *testing.T) {
		out, err := run(t, "problems", "--checks", "--kubeconfig", onMember.kubeconfig, "--cache-dir", t.TempDir())
		refused(t, err, "1 check failed")
		exits(t, err, 1)
		wants(t, out, "hub API   Failed", "does not serve hanse.dev/v1alpha1; do: install the chart hanse-hub")
	})
	t.Run("no hub runs", func(t *testing.T) {
		out, err := hansectl(t, "problems", "--checks")
		refused(t, err, "1 check failed")
		wants(t, out, "hub API      OK", "hub          Failed", "webhook      Warning", "members      Warning", "placements   OK", "grants       OK")
	})
	aHubRan(t, time.Now())
	t.Run("all is well", func(t *testing.T) {
		lease := &coordinationv1.Lease{}
		must(t, onHub.Get(t.Context(), client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: hubName}, lease))
		lease.Labels = map[string]string{hubv1.VersionLabel: "test"}
		must(t, onHub.Update(t.Context(), lease))
		out, err := hansectl(t, "problems", "--checks")
		must(t, err)
		wants(t, out, "hub-1_x leads", "version      OK        test", "clock        OK")
	})
	t.Run("the hub that led has released the Lease", func(t *testing.T) {
		lease := &coordinationv1.Lease{}
		must(t, onHub.Get(t.Context(), client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: hubName}, lease))
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = ptr.To(""), &metav1.MicroTime{Time: time.Now()}
		must(t, onHub.Update(t.Context(), lease))
		out, err := hansectl(t, "problems", "--checks")
		must(t, err)
		wants(t, out, "hub          Warning   no hub leads now", "kubectl get pods -n hanse-system")
	})
	t.Run("a webhook that does not answer, and members", func(t *testing.T) {
		apply(t, onHub, &admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: hubName},
			Webhooks: []admissionv1.ValidatingWebhook{{
				Name: "policies.hanse.dev", SideEffects: ptr.To(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: ptr.To[int32](1),
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: metav1.NamespaceDefault}},
				ClientConfig:      admissionv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/none")},
				Rules: []admissionv1.RuleWithOperations{{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{"hanse.dev"}, APIVersions: []string{"*"}, Resources: []string{"placements"}},
				}},
			}},
		})
		apply(t, onHub, &admissionv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: hubName},
			Webhooks: []admissionv1.MutatingWebhook{{
				Name: "authors.hanse.dev", SideEffects: ptr.To(admissionv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
				ClientConfig: admissionv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/none")},
			}},
		})
		member(t, "new-1")
		member(t, "lost-1")
		must(t, report(t.Context(), "lost-1", metav1.ConditionFalse, hubv1.ReasonUnreachable, ""))
		_, binding := settings(t)
		apply(t, onHub, binding)
		binding.Status.Clusters = []hubv1.ClusterRow{{Name: "cn-sha-1", Applied: metav1.ConditionFalse, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonForbidden}}
		binding.Status.Clusters = append(binding.Status.Clusters, hubv1.ClusterRow{Name: "eu-fra-1", Applied: metav1.ConditionFalse, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonRevisionMissing})
		must(t, onHub.Status().Update(t.Context(), binding))
		var out string
		// The API server reads the webhook's configuration by a watch, so the webhook takes effect late.
		must(t, wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
			var err error
			out, err = hansectl(t, "problems", "--checks")
			return err != nil && err.Error() == "6 checks failed", nil
		}))
		wants(t, out, "webhook certificate          Failed", "author webhook certificate   Failed", "there is no certificate", "failed calling webhook", "member lost-1                Failed",
			"ClusterUnreachable: as told by the test", "member new-1                 Warning", "grants of cn-sha-1           Failed",
			"the member does not let the hub write objects of ConfigMap (1)", "hansectl join cn-sha-1 --member-kubeconfig FILE --grant",
			"revisions                    Failed    1 copies are not updated", " on eu-fra-1: a Secret with their revision was deleted")
	})
}
