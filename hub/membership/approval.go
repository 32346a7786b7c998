package membership

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// Errors of RecordAgent.
var (
	ErrTokenUnknown = errors.New("the join token is not the newest one of this MemberCluster")
	ErrTokenExpired = errors.New("the token has expired")
	ErrTokenUsed    = errors.New("another key has used the token")
)

// maxReported is the maximum length of each text that an agent reports.
const maxReported = 64

// RecordAgent records the request of an agent whose token a Secret allows. The request is in the status until the
// Secret is deleted or has another token. A cluster has at most one request: the first key that uses a token owns it.
func (r *Reconciler) RecordAgent(ctx context.Context, cluster, token string, request hubv1.AgentRequest) error {
	var secret corev1.Secret
	err := r.client.Get(ctx, types.NamespacedName{Namespace: hubv1.SystemNamespace, Name: hubv1.JoinSecretPrefix + cluster}, &secret)
	if apierrors.IsNotFound(err) {
		return ErrTokenUnknown
	}
	if err != nil {
		return fmt.Errorf("reading the token of MemberCluster %s: %w", cluster, err)
	}
	digest := sha256.Sum256([]byte(token))
	given := hex.EncodeToString(digest[:])
	if secret.Type != hubv1.JoinSecretType || subtle.ConstantTimeCompare([]byte(given), secret.Data[hubv1.JoinDigestKey]) != 1 {
		return ErrTokenUnknown
	}
	var known hubv1.MemberCluster
	if err := r.client.Get(ctx, types.NamespacedName{Name: cluster}, &known); err != nil {
		return fmt.Errorf("reading MemberCluster %s: %w", cluster, err)
	}
	until, err := time.Parse(time.RFC3339, string(secret.Data[hubv1.JoinExpiryKey]))
	expired := err != nil || r.now().After(until)
	request.Token, request.Time = given[:16], metav1.NewTime(r.now())
	for _, text := range []*string{&request.ClusterID, &request.Kubernetes, &request.Version, &request.Address} {
		*text = member.Line(*text, maxReported)
	}
	return r.record(&known, request, expired)
}

// record keeps a request in memory until the status has it. Two requests for one cluster are compared one after
// another.
func (r *Reconciler) record(cluster *hubv1.MemberCluster, request hubv1.AgentRequest, expired bool) error {
	var err error
	var first hubv1.AgentRequest
	r.records.change(cluster.Name, func(of *record) {
		if of.request.Token != request.Token {
			of.request = hubv1.AgentRequest{}
		}
		if of.request.Key == "" && cluster.Status.Agent != nil && cluster.Status.Agent.Request != nil && cluster.Status.Agent.Request.Token == request.Token {
			of.request = *cluster.Status.Agent.Request
		}
		switch first = of.request; {
		case first.Key == request.Key:
		case first.Key != "":
			err = ErrTokenUsed
		case expired:
			err = ErrTokenExpired
		default:
			of.request = request
		}
	})
	switch {
	case errors.Is(err, ErrTokenUsed):
		r.recordEvent(cluster, corev1.EventTypeWarning, "TokenReused", "Approve", member.Line(fmt.Sprintf(
			"an agent with the key %s at %s uses the token that the key %s at %s has used first: if both are not yours, the token was stolen",
			request.Key, request.Address, first.Key, first.Address), maxNoteLength))
	case err == nil && first.Key == "":
		r.recordEvent(cluster, corev1.EventTypeNormal, "AgentRequested", "Approve", member.Line(askText(cluster.Name, &request), maxNoteLength))
		r.Wake(cluster.Name)
	}
	return err
}

// askText describes a request for the user who may approve it.
func askText(cluster string, request *hubv1.AgentRequest) string {
	return fmt.Sprintf("an agent with the key %s at %s asks to join: compare the fingerprint with the one in the agent's log, then run hansectl approve %s",
		request.Key, request.Address, cluster)
}

// approval writes the request of an agent into the status, and into the message of Ready while no key is approved. It
// removes a request whose token is gone.
func (r *Reconciler) approval(ctx context.Context, run *run) (ctrl.Result, error) {
	tunnel := run.cluster.Spec.Connection.Tunnel
	if tunnel == nil {
		run.cluster.Status.Agent = nil
		return ctrl.Result{}, nil
	}
	request, err := r.requestOf(ctx, run.cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	if request == nil {
		run.cluster.Status.Agent = nil
		return ctrl.Result{}, nil
	}
	run.cluster.Status.Agent = &hubv1.AgentStatus{Request: request}
	ready := meta.FindStatusCondition(run.cluster.Status.Conditions, hubv1.ConditionReady)
	if ready != nil && ready.Status != metav1.ConditionTrue && !slices.Contains(tunnel.Keys, request.Key) {
		ready.Message = askText(run.cluster.Name, request)
	}
	return ctrl.Result{}, nil
}

// requestOf returns the request with the present token of a cluster. It returns nil if there is none.
func (r *Reconciler) requestOf(ctx context.Context, cluster *hubv1.MemberCluster) (*hubv1.AgentRequest, error) {
	request := r.records.of(cluster.Name).request
	if cluster.Status.Agent != nil && cluster.Status.Agent.Request != nil && request.Key == "" {
		request = *cluster.Status.Agent.Request
	}
	if request.Key == "" {
		return nil, nil
	}
	var secret corev1.Secret
	key := types.NamespacedName{Namespace: hubv1.SystemNamespace, Name: hubv1.JoinSecretPrefix + cluster.Name}
	switch err := r.client.Get(ctx, key, &secret); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return nil, fmt.Errorf("reading the token of MemberCluster %s: %w", cluster.Name, err)
	case strings.HasPrefix(string(secret.Data[hubv1.JoinDigestKey]), request.Token):
		return &request, nil
	}
	r.records.change(cluster.Name, func(of *record) { of.request = hubv1.AgentRequest{} })
	return nil, nil
}
