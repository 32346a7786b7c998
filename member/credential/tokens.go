package credential

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

var (
	secrets  = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	accounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
)

// Issuer issues and revokes tokens on one member.
type Issuer struct {
	client dynamic.Interface
	hubUID types.UID
}

// New returns an Issuer with a client of the member. hubUID is written to each Secret, so that an administrator of the
// member sees to which hub it belongs.
func New(client dynamic.Interface, hubUID types.UID) *Issuer { return &Issuer{client, hubUID} }

// Issue returns a token that is bound to a new Secret. The member may grant a shorter or longer lifetime than
// requested. Existing Secrets are neither used nor deleted, because another hub may own them.
func (i *Issuer) Issue(ctx context.Context, life time.Duration) (string, error) {
	secret, err := i.makeSecret(ctx)
	if err != nil {
		return "", err
	}
	token, err := i.request(ctx, secret, life)
	if err != nil { // delete the Secret, so that its name is free for the next attempt
		return "", errors.Join(err, i.Revoke(context.WithoutCancel(ctx), secret.GetName(), string(secret.GetUID())))
	}
	return token, nil
}

func (i *Issuer) makeSecret(ctx context.Context) (*unstructured.Unstructured, error) {
	for _, name := range TokenSecrets {
		made, err := i.client.Resource(secrets).Namespace(hubv1.SystemNamespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Secret", "type": SecretType, "immutable": true,
			"metadata": map[string]any{
				"namespace": hubv1.SystemNamespace, "name": name,
				"labels":      map[string]any{hubv1.ManagedByLabel: "hanse-hub", "app.kubernetes.io/part-of": "hanse"},
				"annotations": map[string]any{hubv1.TokenOfAnnotation: string(i.hubUID)},
			},
		}}, metav1.CreateOptions{})
		if err == nil {
			return made, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("creating Secret %s/%s of the member: %w", hubv1.SystemNamespace, name, err)
		}
	}
	return nil, ErrNoRoom
}

func (i *Issuer) request(ctx context.Context, bound *unstructured.Unstructured, life time.Duration) (string, error) {
	answer, err := i.client.Resource(accounts).Namespace(hubv1.SystemNamespace).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
		"metadata": map[string]any{"namespace": hubv1.SystemNamespace, "name": Account},
		"spec": map[string]any{
			"audiences":         []any{},
			"expirationSeconds": int64(life.Seconds()),
			"boundObjectRef":    map[string]any{"apiVersion": "v1", "kind": "Secret", "name": bound.GetName(), "uid": string(bound.GetUID())},
		},
	}}, metav1.CreateOptions{}, "token")
	if err != nil {
		return "", fmt.Errorf("requesting a token of ServiceAccount %s/%s of the member: %w", hubv1.SystemNamespace, Account, err)
	}
	token, _, _ := unstructured.NestedString(answer.Object, "status", "token")
	return token, nil
}

// Revoke deletes a Secret, which invalidates every token that is bound to it. If uid is set, Revoke deletes the Secret
// only if it has this UID.
func (i *Issuer) Revoke(ctx context.Context, secret, uid string) error {
	options := metav1.DeleteOptions{}
	if uid != "" {
		options.Preconditions = &metav1.Preconditions{UID: ptr.To(types.UID(uid))}
	}
	err := i.client.Resource(secrets).Namespace(hubv1.SystemNamespace).Delete(ctx, secret, options)
	if apierrors.IsNotFound(err) || uid != "" && apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("deleting Secret %s/%s of the member: %w", hubv1.SystemNamespace, secret, err)
	}
	return nil
}
