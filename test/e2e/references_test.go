package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// deploymentWith returns a Deployment without replicas. Its pod template references a ConfigMap and a Secret.
func deploymentWith(namespace, name, config, secret string) *unstructured.Unstructured {
	labels := map[string]any{"app": name}
	d := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"replicas": int64(0),
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec": map[string]any{
				"containers": []any{map[string]any{"name": "app", "image": "app:1", "envFrom": []any{
					map[string]any{"configMapRef": map[string]any{"name": config}},
				}}},
				"volumes": []any{map[string]any{"name": "tls", "secret": map[string]any{"secretName": secret}}},
			},
		},
	}}}
	d.SetAPIVersion("apps/v1")
	d.SetKind("Deployment")
	d.SetNamespace(namespace)
	d.SetName(name)
	return d
}

func opaque(namespace, name string) *unstructured.Unstructured {
	s := &unstructured.Unstructured{Object: map[string]any{"type": "Opaque", "stringData": map[string]any{"key": "value"}}}
	s.SetAPIVersion("v1")
	s.SetKind("Secret")
	s.SetNamespace(namespace)
	s.SetName(name)
	return s
}

// scheduledSays returns nil if the message of the binding's condition Scheduled contains the text.
func scheduledSays(ctx context.Context, object *unstructured.Unstructured, text string) error {
	b := hubv1.NewBinding(hubv1.IdentityOf(object).BindingKey())
	if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(b), b); err != nil {
		return err
	}
	for _, c := range b.BindingStatus().Conditions {
		if c.Type == hubv1.ConditionScheduled && strings.Contains(c.Message, text) {
			return nil
		}
	}
	return fmt.Errorf("the conditions are %+v", b.BindingStatus().Conditions)
}

// TestWhatAPodTemplateNamesGoesAheadOfIt places only Deployments. Before the Deployments, the hub must send the
// ConfigMaps and Secrets that their pod templates reference.
func TestWhatAPodTemplateNamesGoesAheadOfIt(t *testing.T) {
	ctx := t.Context()
	ns := namespace(t)
	config, secret, later := configMap(ns, "ref-settings"), opaque(ns, "ref-tls"), opaque(ns, "ref-tls-later")
	web, api := deploymentWith(ns, "ref-web", config.GetName(), secret.GetName()), deploymentWith(ns, "ref-api", config.GetName(), later.GetName())
	p := place(t, ns, "deployments", hubv1.ResourceSelector{APIGroup: "apps", Kind: "Deployment"}, hubv1.PlacementSpec{
		Clusters:   hubv1.ClusterSelection{Names: []string{shanghai, singapore}},
		References: []hubv1.ReferenceRule{{Path: "/spec/template"}},
	})
	must(t, suite.Hub.Create(ctx, config.DeepCopy()))
	must(t, suite.Hub.Create(ctx, secret.DeepCopy()))
	must(t, suite.Hub.Create(ctx, web.DeepCopy()))
	for _, m := range []string{shanghai, singapore} {
		eventually(t, normal, func() error { return rowIs(ctx, web, m, metav1.ConditionTrue, "") })
		writes := writesOf(t, suite.Members[m].AuditLog, config.GetName(), secret.GetName(), web.GetName())
		last, seen := "", strings.Join(writes, ", ")
		for _, w := range writes {
			if strings.HasSuffix(w, " 201") {
				last = w
			}
		}
		if last != "deployments 201" || !strings.Contains(seen, "configmaps 201") || !strings.Contains(seen, "secrets 201") {
			t.Errorf("the writes on %s were %s: the Deployment is not the last to be created", m, seen)
		}
	}
	must(t, goneFrom(ctx, frankfurt, config))

	must(t, suite.Hub.Create(ctx, api.DeepCopy()))
	eventually(t, normal, func() error {
		return scheduledSays(ctx, api, "needed objects are not sent: Secret "+ns+"/ref-tls-later does not exist on the hub")
	})
	eventually(t, normal, func() error { return rowIs(ctx, api, shanghai, metav1.ConditionTrue, "") })
	must(t, suite.Hub.Create(ctx, later.DeepCopy()))
	for _, m := range []string{shanghai, singapore} {
		eventually(t, normal, func() error { return rowIs(ctx, later, m, metav1.ConditionTrue, "") })
	}

	t.Run("another name brings the new object, and the old one leaves", func(t *testing.T) {
		patch := `[{"op":"replace","path":"/spec/template/spec/volumes/0/secret/secretName","value":"ref-tls-later"}]`
		must(t, suite.Hub.Patch(ctx, web.DeepCopy(), client.RawPatch(types.JSONPatchType, []byte(patch))))
		for _, m := range []string{shanghai, singapore} {
			eventually(t, normal, func() error { return goneFrom(ctx, m, secret) })
			must(t, rowIs(ctx, later, m, metav1.ConditionTrue, ""))
		}
	})
	t.Run("an object that two Deployments name leaves with the second one", func(t *testing.T) {
		must(t, suite.Hub.Delete(ctx, api.DeepCopy()))
		for _, m := range []string{shanghai, singapore} {
			eventually(t, normal, func() error { return goneFrom(ctx, m, api) })
			must(t, rowIs(ctx, config, m, metav1.ConditionTrue, ""))
		}
		must(t, suite.Hub.Delete(ctx, web.DeepCopy()))
		for _, m := range []string{shanghai, singapore} {
			for _, o := range []*unstructured.Unstructured{web, config, later} {
				eventually(t, normal, func() error { return goneFrom(ctx, m, o) })
			}
		}
		must(t, suite.Hub.Get(ctx, client.ObjectKeyFromObject(config), config.DeepCopy()))
	})
	must(t, suite.Hub.Delete(ctx, p))
}

// TestPodsRestartInTheWavesOfTheConfigMapsThatTheyRead changes a ConfigMap that is rolled out in waves. On each
// cluster, the pods that read the ConfigMap must restart after the new content has arrived.
func TestPodsRestartInTheWavesOfTheConfigMapsThatTheyRead(t *testing.T) {
	ctx, ns := t.Context(), namespace(t)
	config, secret := configMap(ns, "reload-settings"), opaque(ns, "reload-tls")
	web := deploymentWith(ns, "reload-web", config.GetName(), secret.GetName())
	must(t, unstructured.SetNestedField(web.Object, int64(1), "spec", "replicas"))
	var spec hubv1.PlacementSpec
	must(t, yaml.UnmarshalStrict([]byte(europeFirst), &spec))
	spec.References = []hubv1.ReferenceRule{{Path: "/spec/template", Restart: hubv1.RestartOnChange}}
	p := place(t, ns, "reloaded", deployments, spec)
	for _, o := range []*unstructured.Unstructured{config, secret, web} {
		must(t, suite.Hub.Create(ctx, o.DeepCopy()))
	}
	first := reloaded(t, frankfurt, web, "")
	for _, m := range []string{singapore, shanghai} {
		if got := reloaded(t, m, web, ""); got != first {
			t.Errorf("the digest on %s is %q, on %s %q", m, got, frankfurt, first)
		}
	}
	for _, o := range []*unstructured.Unstructured{config, secret, web} {
		eventually(t, time.Minute, func() error { return rolloutIs(ctx, o, hubv1.RolloutComplete, "") })
	}

	must(t, suite.Hub.Patch(ctx, config.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"data":{"key":"second"}}`))))
	second := reloaded(t, frankfurt, web, first)
	eventually(t, time.Minute, func() error { return rolloutIs(ctx, config, hubv1.RolloutWaitingForApproval, "singapore") })
	if got := reloaded(t, singapore, web, ""); got != first {
		t.Errorf("the digest on %s changed from %q to %q before the approval", singapore, first, got)
	}
	approve(t, p)
	for _, m := range []string{singapore, shanghai} {
		if got := reloaded(t, m, web, first); got != second {
			t.Errorf("the digest on %s is %q, on %s %q", m, got, frankfurt, second)
		}
	}
	for _, m := range members {
		writes := writesOf(t, suite.Members[m].AuditLog, config.GetName(), web.GetName())
		if len(writes) < 4 || !slices.Equal(writes[len(writes)-2:], []string{"configmaps 200", "deployments 200"}) {
			t.Errorf("the writes on %s were %q, want the Deployment after the ConfigMap at the end", m, writes)
		}
	}
	must(t, suite.Hub.Delete(ctx, web.DeepCopy()))
	eventually(t, normal, func() error { return noBinding(ctx, web) })
	must(t, suite.Hub.Delete(ctx, p))
}

// reloaded waits until the pod template of a Deployment on a member has another digest annotation than before, and
// returns the new digest.
func reloaded(t *testing.T, member string, d *unstructured.Unstructured, before string) (digest string) {
	t.Helper()
	eventually(t, time.Minute, func() error {
		copied, err := on(t.Context(), member, d)
		if err != nil {
			return err
		}
		digest, _, err = unstructured.NestedString(copied.Object, "spec", "template", "metadata", "annotations", hubv1.ReloadAnnotation)
		if err == nil && (digest == before || digest == "") {
			return fmt.Errorf("the digest on %s is %q", member, digest)
		}
		return err
	})
	return digest
}
