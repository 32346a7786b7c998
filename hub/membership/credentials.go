package membership

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/credential"
)

// revokeTries is the maximum number of attempts to revoke the hub's token on a leaving cluster, whose MemberCluster is
// being deleted.
const revokeTries = 3

// Tokens issues and revokes tokens of the hub's ServiceAccount on one cluster.
type Tokens interface {
	// Issue returns a token that is bound to a new Secret.
	Issue(ctx context.Context, life time.Duration) (string, error)
	// Revoke deletes the Secret to which a token is bound. A non-empty uid must be the Secret's UID; otherwise the Secret
	// stays.
	Revoke(ctx context.Context, secret, uid string) error
}

// KeepTokens sets the function that returns the Tokens of a cluster, and the recorder of events about tokens. Without
// KeepTokens, no credentials are renewed or revoked. Call KeepTokens before SetupWithManager.
func (r *Reconciler) KeepTokens(of func(cluster string) (Tokens, error), recorder events.EventRecorder) {
	r.tokens, r.events = of, recorder
}

// credentials does three things. It records the expiry of the credentials in use, revokes the token that these
// credentials have replaced, and renews the credentials before they expire. It does nothing until the link has used
// credentials.
func (r *Reconciler) credentials(ctx context.Context, run *run) (ctrl.Result, error) {
	if run.settled || run.state == nil || run.state.InUse.ID == "" {
		return ctrl.Result{}, nil
	}
	inUse, status := run.state.InUse, &run.cluster.Status
	measureExpiry(run.cluster.Name, inUse)
	if old := replaced(status.Credentials, inUse); old != nil && r.tokens != nil {
		state := r.tokenRequests.do(ctx, run.cluster.Name, "revoke "+status.Credentials.ID, r.revoke(run.cluster.Name, old))
		if !state.done && !apierrors.IsForbidden(state.err) {
			return ctrl.Result{RequeueAfter: state.wait}, nil // wait: the status still has the token to revoke
		}
		if !state.done {
			r.recordEvent(run.cluster, corev1.EventTypeWarning, "CredentialsNotRevoked", "RotateCredentials", fmt.Sprintf(
				"the cluster does not allow the hub to revoke its old token: delete Secret %s/%s on the cluster", hubv1.SystemNamespace, old.Name))
		}
	}
	if before := status.Credentials; before == nil || before.ID != inUse.ID {
		status.Credentials = credentialsStatus(inUse)
	}
	return r.renew(ctx, run)
}

func measureExpiry(cluster string, c credential.Credential) {
	if c.Expires.IsZero() {
		credentialsExpiry.DeleteLabelValues(cluster)
		return
	}
	credentialsExpiry.WithLabelValues(cluster).Set(float64(c.Expires.Unix()))
}

func (r *Reconciler) revoke(cluster string, secret *hubv1.TokenSecret) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		tokens, err := r.tokens(cluster)
		if err != nil {
			return "", err
		}
		return "", tokens.Revoke(ctx, secret.Name, secret.UID)
	}
}

// renew requests a new token from the cluster if the token is due for renewal, or if a user has requested it. It writes
// the new token into the Secret with the cluster's kubeconfig. The hub's connection to the cluster then uses this
// token.
func (r *Reconciler) renew(ctx context.Context, run *run) (ctrl.Result, error) {
	inUse := run.state.InUse
	d := renewal{
		cluster: run.cluster.Name, inUse: inUse, stored: run.stored, refused: run.state.Credentials == metav1.ConditionFalse,
		ours:  run.secret.Labels[hubv1.ManagedByLabel] == hubv1.ManagedByHansectl,
		asked: run.cluster.Annotations[hubv1.RotateCredentialsAnnotation] == inUse.ID, now: r.now(),
	}.decide()
	if !d.renew && d.cannot == "" {
		if run.stored.ID == inUse.ID && !d.soon {
			meta.RemoveStatusCondition(&run.cluster.Status.Conditions, hubv1.ConditionCredentialsExpireSoon)
		}
		return ctrl.Result{RequeueAfter: d.wait}, nil
	}
	if !d.renew || r.tokens == nil {
		setExpireSoon(run.cluster, inUse, d, nil)
		return ctrl.Result{RequeueAfter: d.wait}, nil
	}
	state := r.tokenRequests.do(ctx, run.cluster.Name, "renew "+inUse.ID, func(ctx context.Context) (string, error) {
		tokens, err := r.tokens(run.cluster.Name)
		if err != nil {
			return "", err
		}
		token, err := tokens.Issue(ctx, inUse.Life())
		if err != nil {
			return "", err
		}
		if made := credential.Of(token, ""); !made.Usable(r.now()) || made.ID == inUse.ID {
			return "", errUnusable
		}
		return token, nil
	})
	if state.done {
		if err := r.store(ctx, run, state.token); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{RequeueAfter: d.wait}, nil
	}
	setExpireSoon(run.cluster, inUse, d, state.err)
	if state.wait > 0 {
		d.wait = min(d.wait, state.wait)
	}
	return ctrl.Result{RequeueAfter: d.wait}, nil
}

// store replaces the token in the Secret's kubeconfig. The rest of the Secret does not change.
func (r *Reconciler) store(ctx context.Context, run *run, token string) error {
	config, err := clientcmd.Load(run.route.Kubeconfig)
	if err != nil {
		// The parser's error is left out, because it may quote the kubeconfig.
		return fmt.Errorf("the kubeconfig of MemberCluster %s is invalid: correct it in the Secret", run.cluster.Name)
	}
	user := config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo]
	user.Token, user.ClientCertificateData, user.ClientKeyData = token, nil, nil
	kubeconfig, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("writing the kubeconfig of MemberCluster %s: %w", run.cluster.Name, err)
	}
	after := run.secret.DeepCopy()
	after.Data[run.cluster.Spec.Connection.Direct.KubeconfigSecretRef.Key] = kubeconfig
	err = r.client.Patch(ctx, after, client.MergeFromWithOptions(run.secret, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
		r.tokenRequests.fail(run.cluster.Name, errReadOnly)
		return nil
	case err != nil:
		return fmt.Errorf("writing Secret %s with the new token of MemberCluster %s: %w", client.ObjectKeyFromObject(after), run.cluster.Name, err)
	}
	r.tokenRequests.forget(run.cluster.Name)
	ctrl.LoggerFrom(ctx).Info("Renewed the token of a member cluster", "cluster", run.cluster.Name, "expires", credential.Of(token, "").Expires)
	return nil
}

// revokeLast revokes the hub's token on a leaving cluster, whose MemberCluster is being deleted. This is the hub's last
// request to the cluster. over is false while the request is running. If the cluster does not answer or refuses, the
// deletion of the MemberCluster goes on. An event and the Secret on the hub then say that the token is still valid.
func (r *Reconciler) revokeLast(ctx context.Context, run *run) (over bool, result ctrl.Result, err error) {
	if run.cluster.Spec.Leave.Credentials != hubv1.CredentialsRevoke || r.tokens == nil || run.secret == nil ||
		run.secret.Annotations[hubv1.CredentialsRevokedAnnotation] != "" {
		return true, ctrl.Result{}, nil
	}
	switch {
	case run.state != nil && run.state.Ready == metav1.ConditionUnknown:
		return false, ctrl.Result{RequeueAfter: lookAgain}, nil
	case run.state == nil || run.state.Ready != metav1.ConditionTrue:
		return true, ctrl.Result{}, r.noteRevoked(ctx, run, "the cluster does not answer")
	}
	inUse := run.state.InUse
	if inUse.Secret == "" {
		return true, ctrl.Result{}, r.noteRevoked(ctx, run, "the credentials are not bound to a Secret of hansectl")
	}
	state := r.tokenRequests.do(ctx, run.cluster.Name, "leave "+inUse.ID, r.revoke(run.cluster.Name, &hubv1.TokenSecret{Name: inUse.Secret, UID: inUse.UID}))
	switch {
	case state.done:
		return true, ctrl.Result{}, r.noteRevoked(ctx, run, "")
	case apierrors.IsForbidden(state.err):
		return true, ctrl.Result{}, r.noteRevoked(ctx, run, "the cluster does not allow the hub to revoke the token")
	case state.failures >= revokeTries:
		return true, ctrl.Result{}, r.noteRevoked(ctx, run, "the cluster did not revoke the token")
	}
	return false, ctrl.Result{RequeueAfter: max(state.wait, lookAgain)}, nil
}

// noteRevoked records in an event and in the Secret whether the token was revoked. fault says why the token was not
// revoked. It is empty if the token was revoked.
func (r *Reconciler) noteRevoked(ctx context.Context, run *run, fault string) error {
	note := "true"
	if fault == "" {
		r.recordEvent(run.cluster, corev1.EventTypeNormal, "CredentialsRevoked", "RotateCredentials", "the hub's token on the cluster was revoked")
	} else {
		note = fault
		r.recordEvent(run.cluster, corev1.EventTypeWarning, "CredentialsNotRevoked", "RotateCredentials", fmt.Sprintf(
			"the hub's credentials on the cluster stay valid: %s; delete ServiceAccount %s/%s there", fault, hubv1.SystemNamespace, credential.Account))
	}
	if run.secret.Labels[hubv1.ManagedByLabel] != hubv1.ManagedByHansectl {
		return nil
	}
	after := run.secret.DeepCopy()
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, hubv1.CredentialsRevokedAnnotation, note)
	if err := r.client.Patch(ctx, after, client.MergeFrom(run.secret)); client.IgnoreNotFound(err) != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("noting on Secret %s whether the token of MemberCluster %s was revoked: %w", client.ObjectKeyFromObject(after), run.cluster.Name, err)
	}
	run.secret = after
	return nil
}

func (r *Reconciler) recordEvent(c *hubv1.MemberCluster, kind, reason, action, note string) {
	if r.events != nil {
		r.events.Eventf(c, nil, kind, reason, action, "%s", note)
	}
}
