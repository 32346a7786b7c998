package membership

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/credential"
)

// readRoute reads how the hub reaches the cluster: the kubeconfig in its Secret, or the keys of its agent. If there is
// no kubeconfig, readRoute ends the link and sets Ready to False, because the hub must not use deleted credentials. If
// the read fails, nothing changes.
func (r *Reconciler) readRoute(ctx context.Context, run *run) (ctrl.Result, error) {
	connection := run.cluster.Spec.Connection
	if connection.Tunnel != nil {
		run.route = member.Route{Tunnel: true, Keys: connection.Tunnel.Keys}
		return ctrl.Result{}, nil
	}
	direct := connection.Direct
	if direct == nil {
		return ctrl.Result{}, fmt.Errorf("connecting MemberCluster %s: spec.connection has neither direct nor tunnel", run.cluster.Name)
	}
	ref := direct.KubeconfigSecretRef
	key := types.NamespacedName{Namespace: hubv1.SystemNamespace, Name: ref.Name}
	var secret corev1.Secret
	err := r.client.Get(ctx, key, &secret)
	if apierrors.IsNotFound(err) { // read again without the cache, which may be outdated
		err = r.apiReader.Get(ctx, key, &secret)
	}
	switch {
	case apierrors.IsNotFound(err):
		r.withoutLink(run, hubv1.ReasonSecretMissing,
			fmt.Sprintf("Secret %s in spec.connection.direct.kubeconfigSecretRef does not exist: create the Secret with the member's kubeconfig under the key %s", key, ref.Key))
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("reading Secret %s of MemberCluster %s: %w", key, run.cluster.Name, err)
	case len(secret.Data[ref.Key]) == 0:
		r.withoutLink(run, hubv1.ReasonSecretMissing,
			fmt.Sprintf("Secret %s has no key %s, which spec.connection.direct.kubeconfigSecretRef names: put the member's kubeconfig there", key, ref.Key))
	default:
		run.route, run.secret = member.Route{Kubeconfig: secret.Data[ref.Key]}, &secret
		run.stored = credentialOf(run.route.Kubeconfig)
	}
	return ctrl.Result{}, nil
}

// credentialOf describes the credentials in a kubeconfig. The result is zero for an invalid kubeconfig. The error is
// then reported by the link.
func credentialOf(kubeconfig []byte) credential.Credential {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil || config.Contexts[config.CurrentContext] == nil {
		return credential.Credential{}
	}
	user := config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo]
	if user == nil {
		return credential.Credential{}
	}
	return credential.Of(user.Token, string(user.ClientCertificateData))
}

// withoutLink ends the hub's connection to the cluster and sets the condition Ready to False, with this reason and
// message.
func (r *Reconciler) withoutLink(run *run, reason, message string) {
	r.links.Remove(run.cluster.Name)
	run.settled = true
	setCondition(run.cluster, hubv1.ConditionReady, metav1.ConditionFalse, reason, message)
	if reason == hubv1.ReasonSecretMissing {
		setCondition(run.cluster, hubv1.ConditionCredentialsValid, metav1.ConditionFalse, reason, message)
	}
	run.cluster.Status.ObservedGeneration = run.cluster.Generation
}

// connect requests the link. It does not wait until the link is up.
func (r *Reconciler) connect(_ context.Context, run *run) (ctrl.Result, error) {
	if run.settled {
		return ctrl.Result{}, nil
	}
	expectedID := run.cluster.Status.ClusterID
	switch {
	case run.cluster.Spec.Hub:
		expectedID = r.hubID
	case expectedID == r.hubID:
		r.withoutLink(run, hubv1.ReasonClusterIDClaimed,
			"status.clusterID is the ID of the hub's own cluster, but spec.hub is not set: nothing is read or written. If this is the hub itself, set spec.hub: true; else delete this MemberCluster and join the cluster again")
		return ctrl.Result{}, nil
	}
	r.links.Ensure(run.cluster.Name, run.route, expectedID)
	return ctrl.Result{}, nil
}

// observe copies the state of the link into the status.
func (r *Reconciler) observe(ctx context.Context, run *run) (ctrl.Result, error) {
	if run.settled {
		return ctrl.Result{}, nil
	}
	state, ok := r.links.State(run.cluster.Name)
	if !ok && !r.links.Holds(run.cluster.Name) { // the cluster is now in another replica's shard
		run.settled = true
		return ctrl.Result{}, nil
	}
	if !ok {
		return ctrl.Result{}, fmt.Errorf("reading the link of MemberCluster %s: there is none", run.cluster.Name)
	}
	if run.cluster.Status.ClusterID == "" && state.Facts.ClusterID != "" {
		setCredentials(run.cluster, state)
		refused, err := r.claim(ctx, run, state.Facts.ClusterID)
		if err != nil || refused {
			return ctrl.Result{}, err
		}
	}
	run.state = &state
	observed(run.cluster, state, r.hubID, r.now())
	if n, counted := r.unclaimed(run.cluster.Name); counted {
		setUnclaimed(run.cluster, n)
	}
	if wait := r.holdBackCapacity(run); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	return ctrl.Result{}, nil
}

// holdBackCapacity keeps the old capacity in the status, if this replica wrote a capacity a short time ago. It returns
// the time until the new capacity may be written, or 0 if nothing is held back.
func (r *Reconciler) holdBackCapacity(run *run) time.Duration {
	before := run.before.Status
	if before.Capacity == nil || sameCapacity(before, run.cluster.Status) {
		return 0
	}
	wait := pace.RepeatAfter - time.Since(r.records.of(run.cluster.Name).capacityWritten)
	if wait <= 0 {
		return 0
	}
	status := &run.cluster.Status
	status.Capacity, status.Allocatable, status.CapacityGrowth, status.Nodes = before.Capacity, before.Allocatable, before.CapacityGrowth, before.Nodes
	return wait
}
