package e2e

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/fleet"
)

// huge returns a rule that sets spec.size of a Widget to "huge", a value that no schema of Widget allows.
func huge(clusters ...string) hubv1.OverrideRule {
	return hubv1.OverrideRule{
		Name: "huge", Clusters: &hubv1.RuleClusters{Names: clusters},
		MergePatch: &apiextensionsv1.JSON{Raw: []byte(`{"spec":{"size":"huge"}}`)},
	}
}

// TestAWrongOverrideIsRefusedAtAdmissionAndAtRender tests an invalid override without the webhook, with the webhook,
// and while the hub that serves the webhook is stopped.
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

	// Without the webhook: the policy is stored, but the hub does not apply the invalid copy to Shanghai.
	wrong := override(t, ns, "wrong", huge(shanghai))
	eventually(t, normal, func() error { return rowIs(ctx, w, shanghai, metav1.ConditionFalse, hubv1.ReasonOverrideInvalid) })
	for _, words := range []string{"OverridePolicy " + ns + "/wrong", `rule "huge"`, "/spec/size", `not "huge"`, "by the hub's schema"} {
		eventually(t, normal, func() error { return rowSays(ctx, w, shanghai, words) })
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

	// With the webhook: the policy is refused, and the message names the object, the cluster, the path and the value.
	webhookOn(t)
	// A hub that has just started does not review a policy for objects that it has not read yet.
	eventually(t, normal, func() error {
		if err := suite.Hub.Create(ctx, overrideOf(ns, "wrong", huge(shanghai)), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "/spec/size") {
			return fmt.Errorf("the review says: %w", err)
		}
		return nil
	})
	err = suite.Hub.Create(ctx, overrideOf(ns, "wrong", huge(shanghai)))
	saysAll(t, err, "Widget.test.hanse.dev "+ns+"/sized in cluster "+shanghai, "/spec/size must be one of", `not "huge"`)
	valid := override(t, ns, "fine", replicasRule("five", 5, hubv1.RuleClusters{Names: []string{shanghai}}))
	eventually(t, normal, func() error { return replicasOn(ctx, shanghai, w, 5) })
	wrongPrometheus(t, ns)
	lacksRights(t, ns)
	recordsAuthors(t, ns)
	keepsOperators(t, w)

	// With the hub stopped: new policies are refused, but a stored policy and hub objects can still be changed and
	// deleted.
	must(t, suite.hub.Stop())
	err = suite.Hub.Create(ctx, overrideOf(ns, "unreviewed", replicasRule("six", 6, hubv1.RuleClusters{})))
	saysAll(t, err, "policies.hanse.dev")
	must(t, suite.Hub.Patch(ctx, valid, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))))
	must(t, suite.Hub.Patch(ctx, widget(ns, "sized"), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"note":"later"}}`))))
	must(t, suite.Hub.Delete(ctx, valid))
	startReviewing(t)
	eventually(t, normal, func() error { return specOn(ctx, shanghai, w, "note", "later") })
	eventually(t, normal, func() error { return replicasOn(ctx, shanghai, w, 3) })

	// The hub used every permission that its role grants for the webhook, and needed no other permission.
	eventually(t, normal, func() error {
		used, refused, err := readAudit(suite.Hub.AuditLog, math.MaxInt64, "system:serviceaccount:"+hubv1.SystemNamespace+":hanse-hub")
		if err != nil {
			return err
		}
		refused = slices.DeleteFunc(refused, func(what string) bool { return slices.Contains(provoked, what) })
		if len(refused) > 0 {
			return fmt.Errorf("refused: %q", refused)
		}
		for _, what := range []string{
			"get admissionregistration.k8s.io/validatingwebhookconfigurations", "patch admissionregistration.k8s.io/validatingwebhookconfigurations",
			"get admissionregistration.k8s.io/mutatingwebhookconfigurations", "patch admissionregistration.k8s.io/mutatingwebhookconfigurations",
			"update /secrets", "create authorization.k8s.io/subjectaccessreviews",
		} {
			if !used[what] {
				return fmt.Errorf("%s was not used", what)
			}
		}
		return nil
	})
}

// recordsAuthors checks that the webhook records the user who creates a policy, whatever the policy says.
func recordsAuthors(t *testing.T, ns string) {
	t.Helper()
	eventually(t, normal, func() error {
		policy := overrideOf(ns, "authored", replicasRule("seven", 7, hubv1.RuleClusters{}))
		policy.Annotations = map[string]string{hubv1.ChangedByAnnotation: "another-user"}
		if err := suite.Hub.Create(t.Context(), policy, client.DryRunAll); err != nil {
			return err
		}
		if author := policy.Annotations[hubv1.ChangedByAnnotation]; author == "" || author == "another-user" {
			return fmt.Errorf("the author is %q", author)
		}
		return nil
	})
}

// keepsOperators checks that the webhook refuses to delete a FederatedOperator while the kind of this object is in use.
func keepsOperators(t *testing.T, used *unstructured.Unstructured) {
	t.Helper()
	ctx := t.Context()
	o := &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: used.GetNamespace()}}
	definition, err := os.ReadFile("testdata/widget-crd.yaml")
	must(t, err)
	definition, err = yaml.YAMLToJSON(definition)
	must(t, err)
	o.Spec.Manifests = []runtime.RawExtension{{Raw: definition}}
	o.Spec.ServiceAccountName = "operators"
	serviceAccount(t, hubv1.SystemNamespace, "operators", "")
	must(t, suite.Hub.Create(ctx, o))
	eventually(t, normal, func() error {
		return bundleIs(ctx, o, hubv1.ConditionStored, metav1.ConditionTrue, hubv1.ReasonStored, "")
	})
	saysAll(t, suite.Hub.Delete(ctx, o.DeepCopy()), "delete these objects first, or set spec.removal to Allow: Widget.test.hanse.dev "+used.GetNamespace()+"/"+used.GetName())
	must(t, suite.Hub.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"removal":"Allow"}}`))))
	must(t, suite.Hub.Delete(ctx, o))
	eventually(t, normal, func() error { return storedSecrets(ctx, 0) })
}

// TestAnOverrideThatAMemberDoesNotTakeIsNotSent reduces the sizes that one member's Widget CRD allows. The hub must not
// apply an override that is valid by the hub's CRD but invalid by the member's CRD.
func TestAnOverrideThatAMemberDoesNotTakeIsNotSent(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	w := widget(ns, "narrow")
	placeWidgets(t, ns, shanghai, singapore)
	must(t, suite.Hub.Create(ctx, w))
	for _, member := range []string{shanghai, singapore} {
		eventually(t, normal, func() error { return rowIs(ctx, w, member, metav1.ConditionTrue, "") })
	}
	narrow(t, singapore)
	override(t, ns, "large", hubv1.OverrideRule{Name: "large", MergePatch: &apiextensionsv1.JSON{Raw: []byte(`{"spec":{"size":"large"}}`)}})
	eventually(t, normal, func() error { return specOn(ctx, shanghai, w, "size", "large") })
	eventually(t, normal, func() error { return rowIs(ctx, w, singapore, metav1.ConditionFalse, hubv1.ReasonOverrideInvalid) })
	for _, words := range []string{"OverridePolicy " + ns + "/large", "/spec/size must be one of \"small\", \"medium\", not \"large\"", "by the cluster's schema"} {
		must(t, rowSays(ctx, w, singapore, words))
	}
	must(t, specOn(ctx, singapore, w, "size", ""))

	restoreCRD(t, singapore)
	eventually(t, prompt, func() error { return specOn(ctx, singapore, w, "size", "large") })
	eventually(t, normal, func() error { return rowIs(ctx, w, singapore, metav1.ConditionTrue, "") })
}

// narrow removes the size "large" from the Widget CRD of a member until the test ends.
func narrow(t *testing.T, member string) {
	t.Helper()
	t.Cleanup(func() { restoreCRD(t, member) })
	var crd apiextensionsv1.CustomResourceDefinition
	must(t, suite.Members[member].Get(t.Context(), types.NamespacedName{Name: "widgets.test.hanse.dev"}, &crd))
	crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["size"] = apiextensionsv1.JSONSchemaProps{
		Type: "string", Enum: []apiextensionsv1.JSON{{Raw: []byte(`"small"`)}, {Raw: []byte(`"medium"`)}},
	}
	must(t, suite.Members[member].Update(t.Context(), &crd))
	eventually(t, normal, func() error {
		document, err := rawGet(t.Context(), member, "/openapi/v3/apis/test.hanse.dev/v1")
		if err == nil && contains(document, `"large"`) {
			err = fmt.Errorf("%s still publishes the size large", member)
		}
		return err
	})
}

// wrongPrometheus checks that the webhook validates an override of a Prometheus against the CRD of prometheus-operator.
func wrongPrometheus(t *testing.T, ns string) {
	t.Helper()
	ctx := t.Context()
	crds, err := suite.LabCommand(ctx, "crds", "prometheus-operator", "prometheuses")
	must(t, err)
	for _, crd := range documents(t, crds) {
		crd.SetLabels(map[string]string{"app.kubernetes.io/part-of": "prometheus-operator"})
		must(t, suite.Hub.Apply(ctx, client.ApplyConfigurationFromUnstructured(crd), client.FieldOwner("e2e"), client.ForceOwnership))
	}
	web := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(2)}}}
	web.SetAPIVersion("monitoring.coreos.com/v1")
	web.SetKind("Prometheus")
	web.SetNamespace(ns)
	web.SetName("web")
	eventually(t, normal, func() error { return client.IgnoreAlreadyExists(suite.Hub.Create(ctx, web.DeepCopy())) })
	t.Cleanup(func() { _ = suite.Hub.Delete(context.WithoutCancel(ctx), web.DeepCopy()) })
	selector := hubv1.ResourceSelector{APIGroup: "monitoring.coreos.com", Kind: "Prometheus"}
	place(t, ns, "prometheuses", selector, hubv1.PlacementSpec{Clusters: everyCluster()})
	policy := overrideOf(ns, "prometheuses", hubv1.OverrideRule{
		Name: "p", Clusters: &hubv1.RuleClusters{Names: []string{frankfurt}},
		MergePatch: &apiextensionsv1.JSON{Raw: []byte(`{"spec":{"replicas":"two","logLevel":"loud","resources":{"limits":{"memory":true}}}}`)},
	})
	policy.Spec.ResourceSelectors = []hubv1.ResourceSelector{selector}
	eventually(t, normal, func() error {
		err := suite.Hub.Create(ctx, policy.DeepCopy(), client.DryRunAll)
		if err == nil {
			return errors.New("the policy is taken")
		}
		for _, words := range []string{
			"Prometheus.monitoring.coreos.com " + ns + "/web in cluster " + frankfurt + ": ", "/spec/replicas must be an integer, not \"two\"",
			"/spec/logLevel must be one of ", "not \"loud\"", "/spec/resources/limits/memory must ",
		} {
			if !strings.Contains(err.Error(), words) {
				return fmt.Errorf("%w: does not say %q", err, words)
			}
		}
		return nil
	})
}

// lacksRights checks that a user with the right to write policies cannot place objects that the user has no rights on.
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

	// A user who may only read Deployments places none, although a field of the user's own object names one.
	grant(t, ns, "deployments", []string{"apps"}, []string{"deployments"}, "get")
	referring := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "tenant"}, Spec: hubv1.PlacementSpec{
		ResourceSelectors: []hubv1.ResourceSelector{everyWidget}, Clusters: everyCluster(),
		References: []hubv1.ReferenceRule{{APIGroup: "apps", Kind: "Deployment", Path: "/spec/note"}},
	}}
	saysAll(t, tenant.Create(ctx, referring), "create, update, delete deployments.apps in namespace "+ns+": spec.references also sends the objects")
}

// grant gives the tenant users of this suite the given permissions in a namespace.
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

// reviewAddress is the address at which the hub serves the webhook after webhookOn.
var reviewAddress string

// webhookOn installs the chart with a webhook URL and restarts the hub with the webhook. It undoes both after the test.
func webhookOn(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	var err error
	reviewAddress, err = fleet.FreeAddress()
	must(t, err)
	_, port, err := net.SplitHostPort(reviewAddress)
	must(t, err)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		must(t, suite.hub.Stop()) // before the roles of the hub are deleted
		must(t, suite.InstallHub(ctx, kinds))
		var err error
		suite.hub, err = suite.StartHub(ctx, "hub-a")
		must(t, err)
	})
	must(t, suite.InstallHub(ctx, kinds, fleet.WithWebhook("https://localhost:"+port)))
	must(t, suite.hub.Stop())
	startReviewing(t)
	var config, kept admissionregistrationv1.ValidatingWebhookConfiguration
	eventually(t, normal, func() error {
		if err := suite.Hub.Get(ctx, types.NamespacedName{Name: "hanse-hub"}, &config); err != nil {
			return err
		}
		if len(config.Webhooks[0].ClientConfig.CABundle) == 0 {
			return fmt.Errorf("the webhook has no CA yet")
		}
		return nil
	})
	// A second installation of the chart must not change the CA, the path and the certificate of the webhook.
	var secret, same corev1.Secret
	key := types.NamespacedName{Namespace: hubv1.SystemNamespace, Name: "hanse-hub-webhook"}
	must(t, suite.Hub.Get(ctx, key, &secret))
	must(t, suite.InstallHub(ctx, kinds, fleet.WithWebhook("https://localhost:"+port)))
	must(t, suite.Hub.Get(ctx, key, &same))
	if string(same.Data[corev1.TLSCertKey]) != string(secret.Data[corev1.TLSCertKey]) || len(same.Data) == 0 {
		t.Error("an upgrade of the chart took the certificate away")
	}
	must(t, suite.Hub.Get(ctx, types.NamespacedName{Name: "hanse-hub"}, &kept))
	if diff := cmp.Diff(config.Webhooks, kept.Webhooks); diff != "" {
		t.Errorf("an upgrade of the chart changed what the hub wrote (-before +after):\n%s", diff)
	}
}

// startReviewing starts the hub with the webhook, and waits until all members are ready.
func startReviewing(t *testing.T) {
	t.Helper()
	var err error
	suite.hub, err = suite.StartHub(t.Context(), "hub-a", "--webhook-bind-address", reviewAddress, "--webhook-dns-names", "localhost")
	must(t, err)
	for _, name := range members {
		eventually(t, 30*time.Second, func() error { return memberReady(t.Context(), name) })
	}
}

// saysAll fails the test unless err is an error whose text contains all these words.
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
