package e2e

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/fleet"
)

// huge is a rule that sets spec.size to what no schema of a Widget has.
func huge(clusters ...string) hubv1.OverrideRule {
	return hubv1.OverrideRule{
		Name: "huge", Clusters: &hubv1.RuleClusters{Names: clusters},
		MergePatch: &apiextensionsv1.JSON{Raw: []byte(`{"spec":{"size":"huge"}}`)},
	}
}

// TestAWrongOverrideIsRefusedAtAdmissionAndAtRender has the webhook off first, then on, then without a hub that answers.
func TestAWrongOverrideIsRefusedAtAdmissionAndAtRender(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	w := widget(ns, "sized")
	placeWidgets(t, ns, shanghai, singapore)
	must(t, suite.Hub.Create(ctx, w))
	for _, member := range []string{shanghai, singapore} {
		eventually(t, normal, func() error { return rowIs(ctx, w, member, metav1.ConditionTrue, "") })
	}
	before, err := on(ctx, shanghai, w)
	must(t, err)

	// Off: what it would break is not sent.
	wrong := override(t, ns, "wrong", huge(shanghai))
	eventually(t, normal, func() error { return rowIs(ctx, w, shanghai, metav1.ConditionFalse, hubv1.ReasonOverrideInvalid) })
	for _, words := range []string{"OverridePolicy " + ns + "/wrong", `rule "huge"`, "/spec/size", `not "huge"`, "by the hub's schema"} {
		must(t, rowSays(ctx, w, shanghai, words))
	}
	must(t, suite.Hub.Patch(ctx, widget(ns, "sized"), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"note":"news"}}`))))
	eventually(t, normal, func() error { return specOn(ctx, singapore, w, "note", "news") })
	now, err := on(ctx, shanghai, w)
	must(t, err)
	if now.GetResourceVersion() != before.GetResourceVersion() {
		t.Error("what runs was touched")
	}
	must(t, suite.Hub.Delete(ctx, wrong))
	eventually(t, normal, func() error { return specOn(ctx, shanghai, w, "note", "news") })

	// On: it is refused with object, cluster, path and value.
	webhookOn(t)
	err = suite.Hub.Create(ctx, overrideOf(ns, "wrong", huge(shanghai)))
	saysAll(t, err, "Widget.test.hanse.dev "+ns+"/sized in cluster "+shanghai, "/spec/size must be one of", `not "huge"`)
	fine := override(t, ns, "fine", replicasRule("five", 5, hubv1.RuleClusters{Names: []string{shanghai}}))
	eventually(t, normal, func() error { return replicasOn(ctx, shanghai, w, 5) })
	lacksRights(t, ns)

	// Away: what is placed goes on, and no policy is taken.
	must(t, suite.hub.Stop())
	err = suite.Hub.Create(ctx, overrideOf(ns, "unreviewed", replicasRule("six", 6, hubv1.RuleClusters{})))
	saysAll(t, err, "policies.hanse.dev")
	must(t, suite.Hub.Patch(ctx, fine, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))))
	must(t, suite.Hub.Patch(ctx, widget(ns, "sized"), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"note":"later"}}`))))
	must(t, suite.Hub.Delete(ctx, fine))
	startReviewing(t)
	eventually(t, normal, func() error { return specOn(ctx, shanghai, w, "note", "later") })
	eventually(t, normal, func() error { return replicasOn(ctx, shanghai, w, 3) })
}

// lacksRights shows that who may write policies may not place what they have no rights on.
func lacksRights(t *testing.T, ns string) {
	t.Helper()
	ctx := t.Context()
	config := rest.CopyConfig(suite.Hub.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + ns + ":tenant", Groups: []string{"system:serviceaccounts", "hanse-e2e-tenants"}}
	tenant, err := client.New(config, client.Options{Scheme: fleet.Scheme()})
	must(t, err)
	grant(t, ns, "policies", []string{"hanse.dev"}, []string{"placements", "overridepolicies"}, "create")
	policy := overrideOf(ns, "tenant", replicasRule("nine", 9, hubv1.RuleClusters{}))
	eventually(t, normal, func() error {
		err := tenant.Create(ctx, policy.DeepCopy())
		if err == nil || !strings.Contains(err.Error(), "needs the right to get, create, update, delete widgets.test.hanse.dev in namespace "+ns) {
			return fmt.Errorf("an override of a tenant without rights: %w", err)
		}
		return nil
	})
	grant(t, ns, "widgets", []string{"test.hanse.dev"}, []string{"widgets"}, "get", "create", "update", "delete")
	grant(t, ns, "override", []string{"hanse.dev"}, []string{"placements"}, "override")
	eventually(t, normal, func() error { return tenant.Create(ctx, policy.DeepCopy()) })
	must(t, suite.Hub.Delete(ctx, policy))
}

// grant lets the tenants of this suite do something in a namespace.
func grant(t *testing.T, ns, name string, groups, resources []string, verbs ...string) {
	t.Helper()
	for _, o := range []client.Object{
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Rules: []rbacv1.PolicyRule{{APIGroups: groups, Resources: resources, Verbs: verbs}}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "hanse-e2e-tenants"}},
		},
	} {
		must(t, suite.Hub.Create(t.Context(), o))
	}
}

// reviewAddress is where the hub reviews policies while webhookOn.
var reviewAddress string

// webhookOn installs the webhook by its URL, starts the hub with it, and takes both back after the test.
func webhookOn(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	reviewAddress = l.Addr().String()
	must(t, l.Close())
	_, port, err := net.SplitHostPort(reviewAddress)
	must(t, err)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		must(t, suite.InstallHub(ctx, kinds))
		must(t, suite.hub.Stop())
		var err error
		suite.hub, err = suite.StartHub(ctx, "hub-a")
		must(t, err)
	})
	must(t, suite.InstallHub(ctx, kinds, fleet.WithWebhook("https://localhost:"+port)))
	must(t, suite.hub.Stop())
	startReviewing(t)
	eventually(t, normal, func() error {
		var config admissionregistrationv1.ValidatingWebhookConfiguration
		if err := suite.Hub.Get(ctx, types.NamespacedName{Name: "hanse-hub"}, &config); err != nil {
			return err
		}
		if len(config.Webhooks[0].ClientConfig.CABundle) == 0 {
			return fmt.Errorf("the webhook has no CA yet")
		}
		return nil
	})
	// A second installation leaves the CA and the certificate as they are.
	var secret, same corev1.Secret
	key := types.NamespacedName{Namespace: hubv1.SystemNamespace, Name: "hanse-hub-webhook"}
	must(t, suite.Hub.Get(ctx, key, &secret))
	must(t, suite.InstallHub(ctx, kinds, fleet.WithWebhook("https://localhost:"+port)))
	must(t, suite.Hub.Get(ctx, key, &same))
	if string(same.Data[corev1.TLSCertKey]) != string(secret.Data[corev1.TLSCertKey]) || len(same.Data) == 0 {
		t.Error("an upgrade of the chart took the certificate away")
	}
}

// startReviewing starts the hub with its webhook, and waits until it follows placements.
func startReviewing(t *testing.T) {
	t.Helper()
	var err error
	suite.hub, err = suite.StartHub(t.Context(), "hub-a", "--webhook-bind-address", reviewAddress, "--webhook-dns-names", "localhost")
	must(t, err)
	for _, name := range members {
		eventually(t, 30*time.Second, func() error { return memberReady(t.Context(), name) })
	}
}

// saysAll fails unless there is an error with all these words.
func saysAll(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("it was taken, want a refusal with %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}
