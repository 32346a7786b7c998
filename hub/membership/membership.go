// Package membership makes a link (a connection to a member) from each MemberCluster and its Secret, and writes the
// state of the link into the status.
//
// If several MemberClusters refer to the same cluster, the package decides which one represents it. It also decides in
// which region and zones the cluster is, and when the finalizer of a deleted MemberCluster is removed. Package
// member/connect makes the connections. The packages hub/schedule and hub/dispatch withdraw the objects of a cluster
// whose MemberCluster is being deleted, and membership waits for them.
//
//   - Each replica connects to the clusters of its shard, which package shard assigns to it.
//   - Only one MemberCluster represents a cluster: the one that has the cluster's ID in its status. If two have the ID,
//     it is the older one.
//   - A region and zones that were derived from nodes do not change until a label overrides them. Placements select
//     clusters by region and zone, so that a changed value would move objects.
//   - A cluster that does not answer gets a taint at once that keeps new objects away. After a grace period it gets a
//     NoExecute taint. Placements decide whether the cluster's objects move.
//   - A token that hansectl created is renewed before it expires, and the old token is revoked once the link uses the
//     new one. The token of a cluster that leaves is revoked if its MemberCluster requests it.
//   - A change that concerns an administrator causes an event after the status was written (news.go).
//   - While nothing changes, only the time of the last observation is written, at most every 30 s for each cluster.
//     While a link is being made after a restart, the status does not change.
package membership

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/hub/store/clusters"
	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/credential"
)

// Links are the connections to the clusters in this replica's shard.
type Links interface {
	member.Links
	// Holds reports whether the cluster is in this replica's shard. For any other cluster, Ensure does nothing.
	Holds(cluster string) bool
}

// Reconciler keeps the connections and the status of the MemberClusters in this replica's shard.
type Reconciler struct {
	client    client.Client
	apiReader client.Reader
	clusters  *clusters.Store
	links     Links
	hubID     string
	grace     time.Duration

	// unclaimed returns the number of copies on a cluster that no binding names. It returns false before the first count.
	unclaimed func(cluster string) (int, bool)

	// tokens returns the Tokens that issue and revoke the hub's tokens on a cluster. It is nil if no tokens are renewed.
	tokens        func(cluster string) (Tokens, error)
	events        events.EventRecorder // nil: no events are sent
	tokenRequests *tokenRequests
	records       records
	now           func() time.Time

	queue atomic.Pointer[workqueue.TypedRateLimitingInterface[reconcile.Request]] // nil until the controller runs
}

// New returns a Reconciler. all has all MemberClusters. hubID is the UID of the hub's own kube-system namespace. A
// cluster that has been unreachable for the time grace gets a NoExecute taint.
func New(c client.Client, apiReader client.Reader, all *clusters.Store, links Links, hubID string, grace time.Duration) *Reconciler {
	r := &Reconciler{
		client: c, apiReader: apiReader, clusters: all, links: links, hubID: hubID, grace: grace, now: time.Now,
		unclaimed: func(string) (int, bool) { return 0, false },
	}
	r.tokenRequests = newTokenRequests(func() time.Time { return r.now() }, r.Wake)
	return r
}

// SetupWithManager adds the controller and its indexes. The controller has one worker, because two workers could accept
// two MemberClusters for the same cluster. One worker is enough, because a reconcile never waits for a member.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := scopes.IndexTargets(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	// The index lives as long as the process. Therefore its context has no deadline.
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &hubv1.MemberCluster{}, clusterIDIndex, clusterIDOf); err != nil {
		return fmt.Errorf("adding the cache index %s for MemberClusters: %w", clusterIDIndex, err)
	}
	inSystemNamespace := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetNamespace() == hubv1.SystemNamespace })
	return ctrl.NewControllerManagedBy(mgr).
		Named("membership").
		WithOptions(controller.Options{NeedLeaderElection: ptr.To(false)}). // every replica has the clusters of its shard
		For(&hubv1.MemberCluster{}).
		Watches(&hubv1.MemberCluster{}, handler.EnqueueRequestsFromMapFunc(r.rivals)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.usersOf), builder.WithPredicates(inSystemNamespace)).
		WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			r.queue.Store(&queue)
			return nil
		})).
		Complete(r)
}

// Wake queues a cluster, because its link has changed, or because this replica has begun to serve the cluster. Before
// the controller runs, Wake does nothing: the controller queues every cluster when it starts.
func (r *Reconciler) Wake(cluster string) {
	if queue := r.queue.Load(); queue != nil {
		(*queue).Add(request(cluster))
	}
}

// IsHub reports whether a MemberCluster is the hub's own cluster. Another replica may serve this cluster.
func (r *Reconciler) IsHub(cluster string) bool {
	var c hubv1.MemberCluster
	return r.client.Get(context.Background(), types.NamespacedName{Name: cluster}, &c) == nil && c.Spec.Hub && c.Status.ClusterID == r.hubID
}

func request(cluster string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: cluster}}
}

// usersOf returns reconcile requests for the MemberClusters whose kubeconfig, or token for an agent, is in the Secret.
func (r *Reconciler) usersOf(ctx context.Context, secret client.Object) []reconcile.Request {
	now, err := r.clusters.Current(ctx)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing MemberClusters to wake them")
		return nil
	}
	var requests []reconcile.Request
	if name, ok := strings.CutPrefix(secret.GetName(), hubv1.JoinSecretPrefix); ok {
		requests = append(requests, request(name))
	}
	for _, c := range now.Clusters {
		direct := c.Spec.Connection.Direct
		if direct != nil && direct.KubeconfigSecretRef.Name == secret.GetName() {
			requests = append(requests, request(c.Name))
		}
	}
	return requests
}

// run is one reconcile of one MemberCluster.
type run struct {
	cluster, before *hubv1.MemberCluster // before is the object as last read or written

	// route and stored are set by the step readRoute. route is empty if the Secret has no kubeconfig; the hub then has no
	// connection to the cluster. stored describes the credentials in the kubeconfig.
	route  member.Route
	stored credential.Credential
	secret *corev1.Secret // nil if there is no Secret
	// settled is true if an earlier step has set the condition Ready, or if the cluster has left this replica's shard (the
	// set of clusters that the replica serves). Later steps then do not read the state of the connection to the cluster.
	settled bool
	// state is the state of the link. The step observe sets it. It is nil if there is no link.
	state *member.LinkState
	// released is true if the finalizer has been removed. The MemberCluster may then be deleted already.
	released bool
}

type step func(context.Context, *run) (ctrl.Result, error)

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var cluster hubv1.MemberCluster
	if err := r.client.Get(ctx, req.NamespacedName, &cluster); apierrors.IsNotFound(err) {
		r.links.Remove(req.Name)
		r.forget(req.Name)
		return ctrl.Result{}, nil
	} else if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading MemberCluster %s: %w", req.Name, err)
	}
	if !r.links.Holds(req.Name) {
		r.forget(req.Name)
		return ctrl.Result{}, nil // not in this replica's shard; a change of the shard wakes the cluster
	}
	run := &run{cluster: cluster.DeepCopy(), before: &cluster}
	steps := []step{r.hold, r.readRoute, r.refuseKnownRival, r.connect, r.observe, r.approval, r.taint, r.credentials, r.setLastObserved}
	if !cluster.DeletionTimestamp.IsZero() {
		steps = []step{r.readRoute, r.refuseKnownRival, r.connect, r.observe, r.taint, r.release, r.setLastObserved}
	}
	result, err := walk(ctx, run, steps)
	if err == nil && !run.released && r.links.Holds(req.Name) {
		err = r.writeStatus(ctx, run)
	}
	if apierrors.IsConflict(err) { // another client has written: the next reconcile decides on its version
		return ctrl.Result{RequeueAfter: pace.FirstRetry}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return result, nil
}

// walk runs the steps of a reconcile in order. The result has the shortest time after which one of the steps must run
// again.
func walk(ctx context.Context, run *run, steps []step) (ctrl.Result, error) {
	var result ctrl.Result
	for _, s := range steps {
		next, err := s(ctx, run)
		if err != nil {
			return ctrl.Result{}, err
		}
		if next.RequeueAfter > 0 && (result.RequeueAfter == 0 || next.RequeueAfter < result.RequeueAfter) {
			result.RequeueAfter = next.RequeueAfter
		}
	}
	return result, nil
}

// hold adds the finalizer before the hub connects to the cluster for the first time. Therefore a deletion of the
// MemberCluster always withdraws the copies before the MemberCluster is gone.
func (r *Reconciler) hold(ctx context.Context, run *run) (ctrl.Result, error) {
	if !controllerutil.AddFinalizer(run.cluster, hubv1.WithdrawFinalizer) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.patchFinalizers(ctx, run)
}

func (r *Reconciler) patchFinalizers(ctx context.Context, run *run) error {
	wanted := run.before.DeepCopy() // copied from before, so that the patch has no status changes
	wanted.Finalizers = run.cluster.Finalizers
	if err := r.client.Patch(ctx, wanted, client.MergeFromWithOptions(run.before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the finalizers of MemberCluster %s: %w", run.cluster.Name, err)
	}
	run.cluster.ResourceVersion = wanted.ResourceVersion
	run.before = wanted
	return nil
}

// writeStatus writes the status if it has changed.
func (r *Reconciler) writeStatus(ctx context.Context, run *run) error {
	if equality.Semantic.DeepEqual(run.before.Status, run.cluster.Status) {
		return nil
	}
	if err := r.client.Status().Patch(ctx, run.cluster, client.MergeFromWithOptions(run.before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the status of MemberCluster %s: %w", run.cluster.Name, err)
	}
	for _, n := range changes(run.before.Status.Conditions, run.cluster.Status.Conditions, r.now()) {
		r.recordEvent(run.cluster, n.kind, n.reason, "Connect", n.note)
	}
	r.records.change(run.cluster.Name, func(written *record) {
		if !sameCapacity(run.before.Status, run.cluster.Status) {
			written.capacityWritten = time.Now()
		}
		if !run.before.Status.LastObservedTime.Equal(run.cluster.Status.LastObservedTime) {
			written.observedWritten = time.Now()
		}
	})
	return nil
}

func (r *Reconciler) forget(cluster string) {
	r.records.forget(cluster)
	r.tokenRequests.forget(cluster)
	credentialsExpiry.DeleteLabelValues(cluster)
}
