// Package membership turns MemberClusters and their Secrets into links, and the state of the links into status.
//
// It decides which MemberCluster may represent a cluster, what the cluster's topology is, and when the finalizer of a
// deleted MemberCluster is removed. member/connect makes the connections. hub/schedule and hub/dispatch withdraw
// objects, and membership waits for them.
//
//   - A cluster has one MemberCluster: the one whose status has its ID; of two, the older one.
//   - A region and zones derived from nodes stay until a label overrides them. Placements select clusters by them, so
//     that a change would move objects.
//   - A cluster that does not answer is tainted at once against new objects. After a grace period it gets a NoExecute
//     taint. Placements decide whether its objects move.
//   - A token made by hansectl is renewed in time, and the old one is revoked when the link uses the new one. The token
//     of a leaving cluster is revoked on request.
//   - Changes that concern an operator cause an event after their status was written (news.go).
//   - While nothing changes, only the time of the last observation is written, at most every 30 s for a cluster. A link
//     that is being made after a restart does not change the status.
package membership

import (
	"context"
	"fmt"
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
	"github.com/hanse-dev/hanse/credential"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/member"
)

// Links are the links of the clusters in this replica's shard.
type Links interface {
	member.Links
	// Holds reports whether the cluster is in this replica's shard. Ensure ignores other clusters.
	Holds(cluster string) bool
}

// Reconciler keeps the links and the status of the MemberClusters that this replica works on.
type Reconciler struct {
	client    client.Client
	apiReader client.Reader
	links     Links
	hubID     string
	grace     time.Duration

	// unclaimed returns how many copies on a cluster no binding claims; false if they were not counted.
	unclaimed func(cluster string) (int, bool)

	// tokens makes and revokes tokens on a cluster; nil if none are.
	tokens  func(cluster string) (Tokens, error)
	events  events.EventRecorder // nil: no events
	errands *errands
	records records
	now     func() time.Time

	queue atomic.Pointer[workqueue.TypedRateLimitingInterface[reconcile.Request]] // nil until the controller runs
}

// New returns a Reconciler. hubID is the UID of the hub's own kube-system namespace. grace is the time after which an
// unreachable cluster gets the NoExecute taint.
func New(c client.Client, apiReader client.Reader, links Links, hubID string, grace time.Duration) *Reconciler {
	r := &Reconciler{
		client: c, apiReader: apiReader, links: links, hubID: hubID, grace: grace, now: time.Now,
		unclaimed: func(string) (int, bool) { return 0, false },
	}
	r.errands = newErrands(func() time.Time { return r.now() }, r.Wake)
	return r
}

// SetupWithManager adds the controller and its index. It uses one worker. A reconcile waits only for the hub's API
// server, and one worker ensures that a replica never claims two clusters at once.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := indexTargets(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	inSystemNamespace := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetNamespace() == hubv1.SystemNamespace })
	return ctrl.NewControllerManagedBy(mgr).
		Named("membership").
		WithOptions(controller.Options{NeedLeaderElection: ptr.To(false)}). // every replica has its own clusters
		For(&hubv1.MemberCluster{}).
		Watches(&hubv1.MemberCluster{}, handler.EnqueueRequestsFromMapFunc(r.rivals)).
		Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.usersOf), builder.WithPredicates(inSystemNamespace)).
		WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			r.queue.Store(&queue)
			return nil
		})).
		Complete(r)
}

// Wake queues a cluster because its link or its replica has changed. It does nothing before the controller runs,
// because the start queues every cluster.
func (r *Reconciler) Wake(cluster string) {
	if queue := r.queue.Load(); queue != nil {
		(*queue).Add(request(cluster))
	}
}

// IsHub reports whether a MemberCluster is the hub's own cluster, also if another replica works on it.
func (r *Reconciler) IsHub(cluster string) bool {
	var c hubv1.MemberCluster
	return r.client.Get(context.Background(), types.NamespacedName{Name: cluster}, &c) == nil && c.Spec.Hub && c.Status.ClusterID == r.hubID
}

func request(cluster string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: cluster}}
}

// usersOf returns the MemberClusters that use the kubeconfig in the Secret.
func (r *Reconciler) usersOf(ctx context.Context, secret client.Object) []reconcile.Request {
	return r.requestsFor(ctx, func(c *hubv1.MemberCluster) bool {
		return c.Spec.Connection.Direct != nil && c.Spec.Connection.Direct.KubeconfigSecretRef.Name == secret.GetName()
	})
}

func (r *Reconciler) requestsFor(ctx context.Context, concerned func(*hubv1.MemberCluster) bool) []reconcile.Request {
	var list hubv1.MemberClusterList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing MemberClusters to wake them")
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if concerned(&list.Items[i]) {
			requests = append(requests, request(list.Items[i].Name))
		}
	}
	return requests
}

// run is one reconcile of one MemberCluster.
type run struct {
	cluster, before *hubv1.MemberCluster // before as it was last read or written

	// Set by readKubeconfig. kubeconfig is nil if there is none, and then there is no link; stored are its credentials.
	kubeconfig []byte
	stored     credential.Credential
	secret     *corev1.Secret // nil if there is none
	// settled is true if a step has set Ready, so that the link is not asked.
	settled bool
	// state is set by observe, if there is a link.
	state *member.LinkState
	// released is true if the finalizer is off: there may be no object any more.
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
		return ctrl.Result{}, nil // another replica has it; the change of replica will wake it
	}
	run := &run{cluster: cluster.DeepCopy(), before: &cluster}
	steps := []step{r.hold, r.readKubeconfig, r.refuseKnownRival, r.connect, r.observe, r.taint, r.credentials, r.setLastObserved}
	if !cluster.DeletionTimestamp.IsZero() {
		steps = []step{r.readKubeconfig, r.refuseKnownRival, r.connect, r.observe, r.taint, r.release, r.setLastObserved}
	}
	result, err := walk(ctx, run, steps)
	if err == nil && !run.released && r.links.Holds(req.Name) {
		err = r.writeStatus(ctx, run)
	}
	if apierrors.IsConflict(err) { // another client has written: decide again on its version
		return ctrl.Result{RequeueAfter: pace.FirstRetry}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return result, nil
}

// walk runs the steps in order and returns the earliest requested time.
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

// hold sets the finalizer before there can be a link, so that no copies are left behind unnoticed.
func (r *Reconciler) hold(ctx context.Context, run *run) (ctrl.Result, error) {
	if !controllerutil.AddFinalizer(run.cluster, hubv1.WithdrawFinalizer) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.patchFinalizers(ctx, run)
}

func (r *Reconciler) patchFinalizers(ctx context.Context, run *run) error {
	wanted := run.before.DeepCopy() // without an unwritten status
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
		r.tell(run.cluster, n.kind, n.reason, "Connect", n.note)
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
	r.errands.forget(cluster)
	credentialsExpiry.DeleteLabelValues(cluster)
}
