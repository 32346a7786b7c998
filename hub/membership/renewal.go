package membership

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member/credential"
)

// maxCheckInterval is the maximum time between two checks of a cluster's credentials.
const maxCheckInterval = time.Hour

var (
	errUnusable = errors.New("the cluster answered with a token that the hub cannot use")
	errReadOnly = errors.New("the hub may not write the Secret with the kubeconfig")
)

// renewal has the inputs of the decision whether to renew a cluster's credentials.
type renewal struct {
	cluster string
	inUse   credential.Credential
	// stored are the credentials in the Secret. They differ from the credentials in use until the cluster has accepted
	// them. refused is true if the cluster has refused the hub's credentials.
	stored  credential.Credential
	refused bool
	// ours is true if hansectl created the Secret with the kubeconfig. Only then does the hub renew the credentials in
	// this Secret.
	ours bool
	// asked is true if a user has requested new credentials for the cluster.
	asked bool
	now   time.Time
}

// due says whether to renew a cluster's credentials now, and when to check them again.
type due struct {
	renew bool
	// soon is true if less than a third of the credentials' lifetime is left.
	soon bool
	// cannot says why the hub cannot renew credentials that are due for renewal. It is empty if the hub can renew them, or
	// if they are not due.
	cannot string
	// wait is the time until the next check of the credentials. It is zero if no check is needed until something changes.
	wait time.Duration
}

func (r renewal) decide() due {
	if r.inUse.Expires.IsZero() && !r.asked {
		return due{}
	}
	d := due{soon: !r.inUse.Expires.IsZero() && !r.now.Before(r.inUse.SoonAt()), wait: maxCheckInterval}
	begin := r.inUse.RenewAt(r.cluster)
	if !r.asked && !begin.IsZero() && r.now.Before(begin) {
		d.wait = min(d.wait, begin.Sub(r.now))
		return d
	}
	switch {
	case r.stored.ID != r.inUse.ID && r.refused:
		d.cannot = "the Secret has other credentials, and the cluster refuses them"
	case r.stored.ID != r.inUse.ID: // the link is trying the stored credentials
	case !r.inUse.Own:
		d.cannot = "the hub renews tokens of ServiceAccount hanse-system/hanse only"
	case !r.ours:
		d.cannot = "the Secret was not created by hansectl, and the hub does not change it"
	default:
		d.renew = true
	}
	if !d.soon && !r.inUse.Expires.IsZero() {
		d.wait = min(d.wait, max(r.inUse.SoonAt().Sub(r.now), time.Second))
	}
	return d
}

// setExpireSoon sets the condition CredentialsExpireSoon for credentials that could not be renewed. The message says
// when they expire and what a user must do. failure is the error of the last attempt, or nil.
func setExpireSoon(c *hubv1.MemberCluster, inUse credential.Credential, d due, failure error) {
	reason, why := hubv1.ReasonNotRenewable, d.cannot
	if failure != nil {
		reason, why = failed(failure)
	}
	if why == "" {
		return // wait, because the renewal is still running
	}
	status, until := metav1.ConditionFalse, "do not expire"
	if !inUse.Expires.IsZero() {
		until = "expire at " + inUse.Expires.Format(time.RFC3339)
	}
	if d.soon {
		status = metav1.ConditionTrue
	}
	setCondition(c, hubv1.ConditionCredentialsExpireSoon, status, reason, fmt.Sprintf(
		"the credentials %s and were not renewed: %s; give the hub new ones: hansectl rotate %s --member-kubeconfig FILE", until, why, c.Name))
}

// failed returns why a renewal failed. It leaves out the text of the member's error, because a member may send any
// text.
func failed(err error) (reason, why string) {
	switch {
	case errors.Is(err, errUnusable), errors.Is(err, errReadOnly):
		return hubv1.ReasonRenewalFailed, err.Error()
	case errors.Is(err, credential.ErrNoRoom):
		return hubv1.ReasonRenewalFailed, "all Secrets hanse-token-a to hanse-token-d exist in hanse-system of the cluster"
	case apierrors.IsForbidden(err):
		return hubv1.ReasonRenewalRefused, "the hub may not create a token on the cluster; upgrade the chart hanse-member there, or run hansectl rotate, which grants the right"
	case apierrors.IsNotFound(err):
		return hubv1.ReasonRenewalFailed, "the cluster has no namespace hanse-system, or no ServiceAccount hanse in it"
	}
	return hubv1.ReasonRenewalFailed, "the cluster did not make a token; the hub tries again"
}

// credentialsStatus returns the value of MemberCluster.status.credentials for the given credentials.
func credentialsStatus(c credential.Credential) *hubv1.CredentialsStatus {
	s := &hubv1.CredentialsStatus{ID: c.ID, IssueTime: statusTime(c.Issued), ExpireTime: statusTime(c.Expires)}
	if c.Secret != "" {
		s.TokenSecret = &hubv1.TokenSecret{Name: c.Secret, UID: c.UID}
	}
	return s
}

func statusTime(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	at := metav1.NewTime(t)
	return &at
}

// replaced returns the Secret of the hub's previous token, after the hub has begun to use another token. It is nil if
// there is no such Secret, or if the credentials in use are no token that is bound to a Secret.
func replaced(before *hubv1.CredentialsStatus, inUse credential.Credential) *hubv1.TokenSecret {
	if before == nil || before.TokenSecret == nil || before.ID == inUse.ID || inUse.UID == "" || before.TokenSecret.UID == inUse.UID {
		return nil
	}
	return before.TokenSecret
}
