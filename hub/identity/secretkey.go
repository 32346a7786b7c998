package identity

import (
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/hanse-dev/hanse/canonical"
)

const (
	// secretName is the name of the Secret with the key for the digests and hashes of Secrets. The chart's role contains
	// the same name.
	secretName = "hanse-secret-key"
	// secretKey is the data key of the Secret with the key for the digests of Secrets. secretKeyBytes is the size of the
	// value in bytes.
	secretKey      = "key"
	secretKeyBytes = 32
)

// readSecretKey returns the key for digests and hashes of Secrets. The first replica creates it. The Secret is
// immutable. If a user deletes it, the next process creates another key, and every copy of a Secret is written again.
func readSecretKey(ctx context.Context, hub kubernetes.Interface, namespace string) (canonical.Key, error) {
	secrets := hub.CoreV1().Secrets(namespace)
	found, err := secrets.Get(ctx, secretName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		// Server-side apply is used because a role can restrict it to an object of this name. If another replica has created
		// the Secret meanwhile, this apply gets a conflict: the other replica has another field manager, and has set another
		// value.
		fresh := make([]byte, secretKeyBytes)
		_, _ = rand.Read(fresh) // rand.Read never returns an error
		apply := applycorev1.Secret(secretName, namespace).WithType("hanse.dev/secret-key").WithImmutable(true).WithData(map[string][]byte{secretKey: fresh})
		found, err = secrets.Apply(ctx, apply, metav1.ApplyOptions{FieldManager: "hanse-hub-" + rand.Text()})
		if apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
			found, err = secrets.Get(ctx, secretName, metav1.GetOptions{})
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the key of the digests of Secrets from Secret %s/%s: %w", namespace, secretName, err)
	}
	return keyOf(found)
}

func keyOf(s *corev1.Secret) (canonical.Key, error) {
	key := s.Data[secretKey]
	if len(key) != secretKeyBytes {
		return nil, fmt.Errorf("reading the key of the digests of Secrets: Secret %s/%s has %d bytes in %q instead of %d: delete it and start the hub again, "+
			"which makes a new key and writes every copy of a Secret once more", s.Namespace, s.Name, len(key), secretKey, secretKeyBytes)
	}
	return key, nil
}
