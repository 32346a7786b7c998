package pods

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/fleet"
)

const (
	certManager = "cert-manager" // the name of the operator, of its namespace and of its Deployment
	certified   = "certified"    // the namespace of the Certificate
)

// certificateIsIssued installs cert-manager on the member with a real node. The hub places an Issuer, its Secret and a
// Certificate on this member.
func certificateIsIssued(t *testing.T) {
	onlyLong(t)
	ctx := t.Context()
	member := suite.Members[frankfurt]
	operatorIsInstalled(t, certManager, certManager, "-f", "testdata/cert-manager-values.yaml")
	authority := newAuthority(t)
	_, err := suite.Kubectl(ctx, suite.Hub, "apply", "-f", "testdata/certificate.yaml")
	must(t, err)

	eventually(t, func() error { return operatorReady(ctx, certManager) })
	issuer, certificate := ofCertManager("Issuer", "ca"), ofCertManager("Certificate", "web")
	eventually(t, func() error { return readyOnHub(ctx, issuer, 1) })
	eventually(t, func() error { return readyOnHub(ctx, certificate, 1) })
	// With its default values, the controller elects its leader in kube-system.
	must(t, member.Get(ctx, types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: "cert-manager-controller"}, &coordinationv1.Lease{}))
	if _, found, _ := unstructured.NestedString(certificate.Object, "status", "renewalTime"); !found {
		t.Errorf("the status on the hub is %v, want it with renewalTime", certificate.Object["status"])
	}
	eventually(t, func() error { return authority.issued(ctx, member, "web.example.com") })
	if err := suite.Hub.Get(ctx, types.NamespacedName{Namespace: certified, Name: "web-tls"}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Secret of the certificate is on the hub: %v", err)
	}
	wrongIssuerIsRefused(t)
	webhookIsAway(t, certificate)
	eventually(t, func() error { return authority.issued(ctx, member, "shop.example.com") })
	operatorIsRemoved(t, certManager, []*unstructured.Unstructured{certificate, issuer},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: certManager, Name: certManager}},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "cert-manager:leaderelection"}},
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "cert-manager-webhook"}})
}

func ofCertManager(kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("cert-manager.io/v1")
	o.SetKind(kind)
	o.SetNamespace(certified)
	o.SetName(name)
	return o
}

// readyOnHub reads an object on the hub. It returns nil if the object's condition Ready is True for this generation.
func readyOnHub(ctx context.Context, o *unstructured.Unstructured, generation int64) error {
	if err := suite.Hub.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return err
	}
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		c, _ := c.(map[string]any)
		if c["type"] == "Ready" && c["status"] == "True" && c["observedGeneration"] == generation {
			return nil
		}
	}
	return fmt.Errorf("%s %s has the conditions %v, want Ready at generation %d", o.GetKind(), o.GetName(), conditions, generation)
}

// wrongIssuerIsRefused creates an invalid Issuer. The hub accepts it, because cert-manager's webhook runs only on the
// member, which refuses it.
func wrongIssuerIsRefused(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	wrong := ofCertManager("Issuer", "wrong")
	wrong.Object["spec"] = map[string]any{}
	must(t, suite.Hub.Create(ctx, wrong))
	eventually(t, func() error {
		return statusSays(ctx, wrong, "AdmissionDenied", "at least one issuer must be configured")
	})
	must(t, suite.Hub.Delete(ctx, wrong))
}

// webhookIsAway removes the pods of cert-manager's webhook, changes the Certificate, and restores the pods.
func webhookIsAway(t *testing.T, certificate *unstructured.Unstructured) {
	t.Helper()
	ctx := t.Context()
	before := injected(t)
	webhookHas(t, 0, 9)
	patch := []byte(`{"spec":{"dnsNames":["web.example.com","shop.example.com"]}}`)
	must(t, suite.Hub.Patch(ctx, certificate, client.RawPatch(types.MergePatchType, patch)))
	eventually(t, func() error { return statusSays(ctx, certificate, "failed calling webhook", "Healthy") })
	webhookHas(t, 1, 8)
	eventually(t, func() error { return readyOnHub(ctx, certificate, 2) })
	if after := injected(t); !bytes.Equal(after, before) {
		t.Error("the hub has changed the CA that cert-manager set in its webhook configuration")
	}
}

// webhookHas sets the replicas and the timeout of the webhook in the chart's values. It waits until the pods and the
// webhook configuration have these values.
func webhookHas(t *testing.T, replicas, seconds int32) {
	t.Helper()
	ctx := t.Context()
	o := &hubv1.FederatedOperator{ObjectMeta: metav1.ObjectMeta{Name: certManager}}
	patch := fmt.Appendf(nil, `{"spec":{"chart":{"values":{"webhook":{"replicaCount":%d,"timeoutSeconds":%d}}}}}`, replicas, seconds)
	must(t, suite.Hub.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch)))
	eventually(t, func() error {
		var d appsv1.Deployment
		if err := suite.Members[frankfurt].Get(ctx, types.NamespacedName{Namespace: certManager, Name: "cert-manager-webhook"}, &d); err != nil {
			return err
		}
		var pods corev1.PodList // a terminating pod is not in the Deployment's status, and still answers
		of := client.MatchingLabels(d.Spec.Selector.MatchLabels)
		if err := suite.Members[frankfurt].List(ctx, &pods, client.InNamespace(certManager), of); err != nil {
			return err
		}
		is := *webhook(t).TimeoutSeconds
		if int32(len(pods.Items)) != replicas || d.Status.ReadyReplicas != replicas || is != seconds {
			return fmt.Errorf("the webhook has %d pods and a timeout of %d s, want %d and %d", len(pods.Items), is, replicas, seconds)
		}
		return nil
	})
}

func webhook(t *testing.T) admissionregistrationv1.ValidatingWebhook {
	t.Helper()
	var c admissionregistrationv1.ValidatingWebhookConfiguration
	must(t, suite.Members[frankfurt].Get(t.Context(), types.NamespacedName{Name: "cert-manager-webhook"}, &c))
	return c.Webhooks[0]
}

// injected returns the CA that cainjector has written into the webhook configuration.
func injected(t *testing.T) []byte {
	t.Helper()
	ca := webhook(t).ClientConfig.CABundle
	if len(ca) == 0 {
		t.Error("the webhook configuration has no CA")
	}
	return ca
}

// authority is the CA that signs the certificates of the Issuer.
type authority struct{ roots *x509.CertPool }

// newAuthority creates a CA, and a Secret with it on the hub.
func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	must(t, suite.Hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: certified}}))
	must(t, suite.Hub.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: certified, Name: "ca"}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})},
	}))
	a := authority{x509.NewCertPool()}
	a.roots.AppendCertsFromPEM(certificate)
	return a
}

// issued returns nil if the member has a certificate for a host name that this CA signed.
func (a authority) issued(ctx context.Context, member *fleet.Cluster, host string) error {
	var secret corev1.Secret
	if err := member.Get(ctx, types.NamespacedName{Namespace: certified, Name: "web-tls"}, &secret); err != nil {
		return err
	}
	return verified(secret.Data[corev1.TLSCertKey], a.roots, host)
}
