package hub

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/internal/canonical"
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
// immutable. If a user deletes it while no hub runs, the next process creates another key, and every copy of a Secret
// is written again.
func readSecretKey(ctx context.Context, hub kubernetes.Interface, namespace string) (canonical.Key, error) {
	secrets := hub.CoreV1().Secrets(namespace)
	found, err := secrets.Get(ctx, secretName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		fresh := make([]byte, secretKeyBytes)
		_, _ = rand.Read(fresh) // rand.Read never returns an error
		ctrl.LoggerFrom(ctx).Info("Creating the key of the digests of Secrets: copies of Secrets that were written with another key are written once more", "secret", secretName)
		found, err = secrets.Apply(ctx, withKey(namespace, fresh), metav1.ApplyOptions{FieldManager: newKeyManager()})
		if apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
			found, err = secrets.Get(ctx, secretName, metav1.GetOptions{})
		}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the key of the digests of Secrets from Secret %s/%s: %w", namespace, secretName, err)
	}
	return secretKeyOf(found)
}

// withKey returns the Secret with the key, for server-side apply: a role can restrict it to an object of this name. If
// another replica has created the Secret meanwhile, the apply gets a conflict, because the other replica has another
// field manager (newKeyManager) and has set another value.
func withKey(namespace string, key canonical.Key) *applycorev1.SecretApplyConfiguration {
	return applycorev1.Secret(secretName, namespace).WithType("hanse.dev/secret-key").WithImmutable(true).WithData(map[string][]byte{secretKey: key})
}

func newKeyManager() string { return "hanse-hub-" + rand.Text() }

// KeepKey looks at the Secret with the key every 30 s, until ctx ends. If a user has deleted the Secret, it creates the
// Secret again with the key of this process, so that no digest changes. c reads Secrets from a cache.
func (h identity) KeepKey(ctx context.Context, c client.Client, namespace string) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := h.keepKey(ctx, c, namespace); err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "Keeping the key of the digests of Secrets")
		}
	}, pace.LookEvery)
	return nil
}

func (h identity) keepKey(ctx context.Context, c client.Client, namespace string) error {
	var found corev1.Secret
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: secretName}, &found)
	switch {
	case apierrors.IsNotFound(err):
		if err := c.Apply(ctx, withKey(namespace, h.Key), client.FieldOwner(newKeyManager())); err != nil {
			return fmt.Errorf("creating Secret %s/%s: %w", namespace, secretName, err)
		}
		ctrl.LoggerFrom(ctx).Info("Created the lost Secret with the key of the digests of Secrets again", "secret", secretName)
		return nil
	case err != nil:
		return fmt.Errorf("reading Secret %s/%s: %w", namespace, secretName, err)
	case !bytes.Equal(found.Data[secretKey], h.Key):
		return fmt.Errorf("reading Secret %s/%s: %w", namespace, secretName, errOtherKey)
	}
	return nil
}

var errOtherKey = errors.New("the key differs from the key of this replica: stop all replicas of the hub at once, and start them again")

func secretKeyOf(s *corev1.Secret) (canonical.Key, error) {
	key := s.Data[secretKey]
	if len(key) != secretKeyBytes {
		return nil, fmt.Errorf("reading the key of the digests of Secrets: Secret %s/%s has %d bytes in %q instead of %d: delete the Secret and restart the hub, "+
			"which then creates a new key and writes every copy of a Secret again", s.Namespace, s.Name, len(key), secretKey, secretKeyBytes)
	}
	return key, nil
}
