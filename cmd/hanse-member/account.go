package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/oauth2"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/utils/ptr"

	"github.com/hanse-dev/hanse/member/handshake"
)

const (
	// namespace has the objects of the chart hanse-member.
	namespace = "hanse-system"
	// account is the ServiceAccount whose rights the hub has on this cluster.
	account       = "hanse"
	tokenLifetime = time.Hour
	askTimeout    = 15 * time.Second
	// keyOfSecret is the key of the Secret's data that has the private key.
	keyOfSecret = "key.pem"
)

// fromSecret returns the certificate with the key in a Secret, and the credentials for the requests of the hub: tokens
// of the account. config has the credentials of the agent itself, which may do less. A token is bound to the Secret:
// who deletes the Secret also ends the tokens.
func fromSecret(ctx context.Context, config *rest.Config, name string) (tls.Certificate, *rest.Config, error) {
	config = rest.CopyConfig(config)
	config.Timeout = askTimeout
	config.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil } // the API server is near
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("making the client for the key of the agent: %w", err)
	}
	secret, err := keySecret(ctx, core.Secrets(namespace), name)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("reading the key of the agent from Secret %s/%s: %w", namespace, name, err)
	}
	certificate, err := handshake.Certificate(secret.Data[keyOfSecret])
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("the key %s of Secret %s/%s is not usable; if you delete the Secret, the next start of the agent makes a new key, "+
			"which the hub's administrator approves again: %w", keyOfSecret, namespace, name, err)
	}
	tokens := transport.NewCachedTokenSource(&accountTokens{accounts: core.ServiceAccounts(namespace), bound: secret})
	ofAccount := rest.AnonymousClientConfig(config)
	ofAccount.Timeout = 0 // watches last
	ofAccount.Wrap(transport.ResettableTokenSourceWrapTransport(tokens))
	return certificate, ofAccount, nil
}

// keySecret returns the Secret with the agent's key. If there is none, it creates the Secret with a new key.
func keySecret(ctx context.Context, secrets corev1client.SecretInterface, name string) (*corev1.Secret, error) {
	found, err := secrets.Get(ctx, name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return found, err
	}
	pem, err := handshake.NewKey()
	if err != nil {
		return nil, err
	}
	wanted := applycorev1.Secret(name, namespace).WithType("hanse.dev/agent-key").WithImmutable(true).WithData(map[string][]byte{keyOfSecret: pem})
	// The field manager is new, so that a Secret that another process has created meanwhile is not changed.
	made, err := secrets.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: "hanse-member-" + rand.Text()})
	if apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
		return secrets.Get(ctx, name, metav1.GetOptions{})
	}
	return made, err
}

// accountTokens requests tokens of the account. It implements oauth2.TokenSource.
type accountTokens struct {
	accounts corev1client.ServiceAccountInterface
	bound    *corev1.Secret
}

// Token implements oauth2.TokenSource. No clock of another machine counts: a token is used for two thirds of its
// lifetime from now.
func (a *accountTokens) Token() (*oauth2.Token, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(tokenLifetime.Seconds())),
		BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Secret", APIVersion: "v1", Name: a.bound.Name, UID: a.bound.UID},
	}}
	begin := time.Now()
	made, err := a.accounts.CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("requesting a token of ServiceAccount %s/%s: %w", namespace, account, err)
	}
	lifetime := tokenLifetime
	if s := made.Spec.ExpirationSeconds; s != nil && *s > 0 {
		lifetime = time.Duration(*s) * time.Second
	}
	return &oauth2.Token{AccessToken: made.Status.Token, TokenType: "Bearer", Expiry: begin.Add(lifetime * 2 / 3)}, nil
}
