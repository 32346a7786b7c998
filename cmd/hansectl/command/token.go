package command

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/credential"
)

// minTokenLifetime is the shortest lifetime that API servers accept for a token.
const minTokenLifetime = 10 * time.Minute

// issued is a token that a member has issued.
type issued struct {
	token string
	credential.Credential
}

// token creates a Secret on the member, and requests a token of the hub's ServiceAccount that is bound to this Secret.
// inUse is the Secret of the hub's current token. It is empty if this is not known. The server may grant another
// lifetime.
func (m *memberCluster) token(ctx context.Context, w io.Writer, lifetime time.Duration, hubUID types.UID, inUse string) (issued, error) {
	secret, err := m.tokenSecret(ctx, w, hubUID, inUse)
	if err != nil {
		return issued{}, err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: accountName}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: ptr.To(int64(lifetime.Seconds())),
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: secret.Name, UID: secret.UID},
	}}
	if err := m.SubResource("token").Create(ctx, account, request); err != nil {
		return issued{}, fmt.Errorf("requesting a token of ServiceAccount %s on the member: %w", client.ObjectKeyFromObject(account), err)
	}
	printLine(w, "secret/"+secret.Name, "created; its token expires at %s; the hub renews it before that time", request.Status.ExpirationTimestamp.UTC().Format(time.RFC3339))
	return issued{request.Status.Token, credential.Of(request.Status.Token, "")}, nil
}

// tokenSecret creates an empty Secret on the member to which a token can be bound. If all names in
// credential.TokenSecrets are taken, it first deletes Secrets of this hub, except inUse.
func (m *memberCluster) tokenSecret(ctx context.Context, w io.Writer, hubUID types.UID, inUse string) (*corev1.Secret, error) {
	for range 2 {
		for _, name := range credential.TokenSecrets {
			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: hubv1.SystemNamespace, Name: name, Labels: ourLabels(), Annotations: map[string]string{hubv1.TokenOfAnnotation: string(hubUID)},
				},
				Type: credential.SecretType, Immutable: ptr.To(true),
			}
			err := m.Create(ctx, secret)
			if err == nil {
				return secret, nil
			}
			if !apierrors.IsAlreadyExists(err) {
				return nil, fmt.Errorf("creating Secret %s on the member: %w", client.ObjectKeyFromObject(secret), err)
			}
		}
		if err := m.revokeOthers(ctx, w, hubUID, inUse); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("making a token for the hub: %w: the Secrets %v in namespace %s of the member belong to other hubs", credential.ErrNoRoom, credential.TokenSecrets, hubv1.SystemNamespace)
}

// revokeOthers deletes the Secrets on the member to which tokens of this hub are bound. The argument "keep" names a
// Secret that is not deleted. revokeOthers also deletes the Secret with a token that does not expire, if hansectl
// created this Secret.
func (m *memberCluster) revokeOthers(ctx context.Context, w io.Writer, hubUID types.UID, keep string) error {
	for _, name := range append(slices.Clone(credential.TokenSecrets), credential.LastingSecret) {
		secret := secretMetadata(client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: name})
		err := m.Get(ctx, client.ObjectKeyFromObject(secret), secret)
		lasting := name == credential.LastingSecret
		switch {
		case name == keep || apierrors.IsNotFound(err):
			continue
		case err != nil:
			return fmt.Errorf("reading Secret %s/%s of the member: %w", hubv1.SystemNamespace, name, err)
		case lasting && !ours(secret):
			printLine(w, "secret/"+name, "kept on the member: hansectl did not create this Secret; its token does not expire")
			continue
		case !lasting && secret.Annotations[hubv1.TokenOfAnnotation] != string(hubUID):
			continue // the Secret of another hub
		}
		if err := client.IgnoreNotFound(m.Delete(ctx, secret, client.Preconditions{UID: ptr.To(secret.GetUID())})); err != nil {
			return fmt.Errorf("deleting Secret %s/%s of the member: %w", hubv1.SystemNamespace, name, err)
		}
		printLine(w, "secret/"+name, "deleted on the member: its token is revoked")
	}
	return nil
}

// hubUID returns the UID of the hub's namespace kube-system. By this UID, a member distinguishes the hubs that use it.
func hubUID(ctx context.Context, hub client.Client) (types.UID, error) {
	var system corev1.Namespace
	if err := hub.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &system); err != nil {
		return "", fmt.Errorf("reading namespace kube-system of the hub, whose uid identifies the hub: %w", err)
	}
	return system.UID, nil
}

// tokenInUse returns the name of the Secret to which the hub's current token is bound. It returns an empty text if this
// is not known.
func tokenInUse(m *hubv1.MemberCluster) string {
	if m == nil || m.Status.Credentials == nil || m.Status.Credentials.TokenSecret == nil {
		return ""
	}
	return m.Status.Credentials.TokenSecret.Name
}
