package pods

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const (
	jobSet          = "jobset" // the name of the operator
	jobSetNamespace = "jobset-system"
	trained         = "trained" // the namespace of the JobSets
)

// jobSetRuns installs JobSet on the member with a real node. Its chart has a Secret without values, in which JobSet
// stores the certificates of its webhooks.
func jobSetRuns(t *testing.T) {
	onlyLong(t)
	ctx := t.Context()
	operatorIsInstalled(t, jobSet, jobSetNamespace)
	_, err := suite.Kubectl(ctx, suite.Hub, "apply", "-f", "testdata/training.yaml")
	must(t, err)
	eventually(t, func() error { return operatorReady(ctx, jobSet) })
	eventually(t, func() error { return completed(ctx) })
	eventually(t, func() error { return certificatesAreOfJobSet(ctx) })
	wrongJobSetIsRefused(t)
	keysStay(t)
	operatorIsRemoved(t, jobSet, []*unstructured.Unstructured{aJobSet("training")},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: jobSetNamespace, Name: "jobset-controller"}},
		certificates(), &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "jobset-validating-webhook-configuration"}})
}

func aJobSet(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("jobset.x-k8s.io/v1alpha2")
	o.SetKind("JobSet")
	o.SetNamespace(trained)
	o.SetName(name)
	return o
}

// completed returns nil if the JobSet is healthy on the member, and the hub shows the status that it has there.
func completed(ctx context.Context) error {
	var bindings hubv1.ResourceBindingList
	if err := suite.Hub.List(ctx, &bindings, client.InNamespace(trained)); err != nil {
		return err
	}
	if len(bindings.Items) != 1 || bindings.Items[0].Status.Summary.Healthy != 1 {
		return fmt.Errorf("the bindings are %+v, want one that is healthy on one cluster", bindings.Items)
	}
	o := aJobSet("training")
	if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return err
	}
	if state, _, _ := unstructured.NestedString(o.Object, "status", "terminalState"); state != "Completed" {
		return fmt.Errorf("the status on the hub is %v, want Completed", o.Object["status"])
	}
	return nil
}

// certificates is the Secret into which JobSet writes the certificates of its webhooks.
func certificates() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: jobSetNamespace, Name: "jobset-webhook-server-cert"}}
}

// certificatesAreOfJobSet returns nil if the Secret on the member has a certificate for the webhooks' Service, and all
// webhooks have the CA that signed it.
func certificatesAreOfJobSet(ctx context.Context) error {
	member := suite.Members[frankfurt]
	secret := certificates()
	if err := member.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(secret.Data["ca.crt"]) {
		return errors.New("the Secret has no CA")
	}
	if err := verified(secret.Data["tls.crt"], roots, "jobset-webhook-service."+jobSetNamespace+".svc"); err != nil {
		return err
	}
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	if err := member.Get(ctx, types.NamespacedName{Name: "jobset-mutating-webhook-configuration"}, &mutating); err != nil {
		return err
	}
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	if err := member.Get(ctx, types.NamespacedName{Name: "jobset-validating-webhook-configuration"}, &validating); err != nil {
		return err
	}
	bundles := map[string][]byte{}
	for _, w := range mutating.Webhooks {
		bundles[w.Name] = w.ClientConfig.CABundle
	}
	for _, w := range validating.Webhooks {
		bundles[w.Name] = w.ClientConfig.CABundle
	}
	for name, bundle := range bundles {
		if !bytes.Equal(bundle, secret.Data["ca.crt"]) {
			return fmt.Errorf("the webhook %s has another CA than the Secret", name)
		}
	}
	return nil
}

// wrongJobSetIsRefused creates a JobSet that only the webhook on the member refuses.
func wrongJobSetIsRefused(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	wrong := aJobSet("wrong")
	job := map[string]any{"containers": []any{map[string]any{"name": "worker", "image": "worker"}}}
	wrong.Object["spec"] = map[string]any{"replicatedJobs": []any{map[string]any{
		"name": "first", "dependsOn": []any{map[string]any{"name": "none", "status": "Ready"}},
		"template": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": job}}},
	}}}
	must(t, suite.Hub.Create(ctx, wrong))
	eventually(t, func() error {
		return statusSays(ctx, wrong, "AdmissionDenied", "DependsOn can't be set for the first ReplicatedJob")
	})
	must(t, suite.Hub.Delete(ctx, wrong))
}

// keysStay restarts the hub, and removes a label from the Secret of the certificates. The hub must restore the label by
// one write, and leave the keys to JobSet.
func keysStay(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	member := suite.Members[frankfurt]
	before := certificates()
	must(t, member.Get(ctx, client.ObjectKeyFromObject(before), before))
	// The hub created the Secret and the two configurations. Each further write would be one against JobSet.
	written := func(when string, secrets int) {
		t.Helper()
		for resource, want := range map[string]int{"mutatingwebhookconfigurations": 1, "validatingwebhookconfigurations": 1} {
			if got := writesOn(t, member, resource, ""); got != want {
				t.Errorf("%s, the hub has sent %d writes of %s, want %d", when, got, resource, want)
			}
		}
		if got := writesOn(t, member, "secrets", jobSetNamespace); got != secrets {
			t.Errorf("%s, the hub has sent %d writes of the Secret, want %d", when, got, secrets)
		}
	}
	written("before a restart", 1)
	restart(t)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"app.kubernetes.io/name":null}}}`))
	must(t, member.Patch(ctx, certificates(), patch))
	after := certificates()
	eventually(t, func() error {
		if err := member.Get(ctx, client.ObjectKeyFromObject(after), after); err != nil {
			return err
		}
		if !maps.Equal(after.Labels, before.Labels) {
			return fmt.Errorf("the Secret has the labels %v, want %v", after.Labels, before.Labels)
		}
		return nil
	})
	if !maps.EqualFunc(after.Data, before.Data, bytes.Equal) {
		t.Error("the keys that JobSet made have changed")
	}
	must(t, certificatesAreOfJobSet(ctx))
	written("after a restart", 2)
}
