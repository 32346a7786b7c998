package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const (
	tokenSecret = "hanse-token" // the chart hanse-member calls it so, too
	// longestToken is asked for where no controller fills a Secret; the server grants less if it is set to.
	longestToken = 10 * 365 * 24 * time.Hour
	// shortestToken is the least that a server grants.
	shortestToken = 10 * time.Minute
)

// token returns credentials of the account: those of a Secret, which do not expire, or, with a lifetime or where no controller
// fills such a Secret, requested ones.
func (m *memberCluster) token(ctx context.Context, w io.Writer, lifetime, patience time.Duration) (string, error) {
	if lifetime > 0 {
		return m.request(ctx, w, lifetime)
	}
	token, err := m.lasting(ctx, w, patience)
	if errors.Is(err, errTimeout) {
		says(w, "secret/"+tokenSecret, "not filled after %s: the member runs no token controller", patience)
		return m.request(ctx, w, longestToken)
	}
	return token, err
}

// lasting waits for the member's controller to fill the Secret.
func (m *memberCluster) lasting(ctx context.Context, w io.Writer, patience time.Duration) (string, error) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: hubv1.SystemNamespace, Name: tokenSecret, Labels: ourLabels(),
			Annotations: map[string]string{corev1.ServiceAccountNameKey: accountName},
		},
		Type: corev1.SecretTypeServiceAccountToken,
	}
	key, did := client.ObjectKeyFromObject(secret), "created"
	if err := m.Create(ctx, secret); apierrors.IsAlreadyExists(err) {
		did = "unchanged"
	} else if err != nil {
		return "", fmt.Errorf("creating Secret %s on the member: %w", key, err)
	}
	deadline, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(pollEvery / 2)
	defer tick.Stop()
	for waits := false; ; waits = true {
		if err := m.Get(ctx, key, secret); err != nil {
			return "", fmt.Errorf("reading Secret %s of the member: %w", key, err)
		}
		if secret.Type != corev1.SecretTypeServiceAccountToken || secret.Annotations[corev1.ServiceAccountNameKey] != accountName {
			return "", fmt.Errorf("the member has a Secret %s that is no token of ServiceAccount %s: remove it, or set --token-lifetime", key, accountName)
		}
		if token := secret.Data[corev1.ServiceAccountTokenKey]; len(token) > 0 {
			says(w, "secret/"+tokenSecret, "%s; its token does not expire", did)
			return string(token), nil
		}
		if !waits {
			says(w, "secret/"+tokenSecret, "waiting up to %s for the member's controller to fill it", patience)
		}
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-deadline.Done():
			return "", errTimeout
		case <-tick.C:
		}
	}
}

// request asks for a token of a lifetime; the server may grant another one.
func (m *memberCluster) request(ctx context.Context, w io.Writer, lifetime time.Duration) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: accountName}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(lifetime.Seconds()))}}
	if err := m.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("requesting a token of ServiceAccount %s on the member: %w", client.ObjectKeyFromObject(account), err)
	}
	expires := request.Status.ExpirationTimestamp.UTC().Format(time.RFC3339)
	says(w, "token", "requested; it expires at %s: run join again before, to refresh it", expires)
	return request.Status.Token, nil
}
