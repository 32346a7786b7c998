package hub

import (
	"context"
	"crypto/tls"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/handshake"
)

// readTunnelCertificate returns a certificate for the key by which agents of members know the hub. The key is in an
// immutable Secret. The first replica creates it.
func readTunnelCertificate(ctx context.Context, config *rest.Config, namespace string) (tls.Certificate, error) {
	hub, err := kubernetes.NewForConfig(config)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("making the client for the key of the tunnel: %w", err)
	}
	secrets := hub.CoreV1().Secrets(namespace)
	found, err := secrets.Get(ctx, hubv1.TunnelSecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		wanted, fault := tunnelSecret(namespace)
		if fault != nil {
			return tls.Certificate{}, fault
		}
		found, err = secrets.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: newKeyManager()})
		if apierrors.IsConflict(err) || apierrors.IsInvalid(err) { // another replica has created it
			found, err = secrets.Get(ctx, hubv1.TunnelSecret, metav1.GetOptions{})
		}
	}
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("reading the key of the tunnel from Secret %s/%s: %w", namespace, hubv1.TunnelSecret, err)
	}
	certificate, err := handshake.Certificate(found.Data[secretKey])
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("reading the key of the tunnel: Secret %s/%s has no usable key under %q; if you delete the Secret, the next start of the hub makes a new key, "+
			"whose fingerprint every agent needs: %w", namespace, hubv1.TunnelSecret, secretKey, err)
	}
	return certificate, nil
}

// tunnelSecret returns the Secret with a new key, for server-side apply. The annotation has its fingerprint, which
// hansectl reads without the key.
func tunnelSecret(namespace string) (*applycorev1.SecretApplyConfiguration, error) {
	key, err := handshake.NewKey()
	if err != nil {
		return nil, err
	}
	certificate, err := handshake.Certificate(key)
	if err != nil {
		return nil, err
	}
	return applycorev1.Secret(hubv1.TunnelSecret, namespace).WithType("hanse.dev/tunnel-key").WithImmutable(true).
		WithAnnotations(map[string]string{hubv1.FingerprintAnnotation: handshake.Fingerprint(certificate.Leaf)}).
		WithData(map[string][]byte{secretKey: key}), nil
}
