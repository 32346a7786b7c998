package membership

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// rivals returns reconcile requests for the other MemberClusters with the same cluster as a changed MemberCluster. The
// change may decide which of them represents the cluster.
func (r *Reconciler) rivals(ctx context.Context, o client.Object) []reconcile.Request {
	cluster, ok := o.(*hubv1.MemberCluster)
	if !ok || cluster.Status.ClusterID == "" {
		return nil
	}
	id := cluster.Status.ClusterID
	names := sets.New(r.records.refusedFor(id)...)
	var same hubv1.MemberClusterList
	if err := r.client.List(ctx, &same, sameCluster(id), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the MemberClusters that may be of the same cluster, to reconcile them again", "clusterID", id)
		return nil
	}
	for i := range same.Items {
		names.Insert(same.Items[i].Name)
	}
	var requests []reconcile.Request
	for name := range names.Delete(cluster.Name) {
		requests = append(requests, request(name))
	}
	return requests
}

// clusterIDIndex is the name of the field index of MemberClusters by status.clusterID. Every event of a MemberCluster
// asks for the others with its clusterID, so that a list of all of them would cost the square of their number.
const clusterIDIndex = "status.clusterID"

func sameCluster(id string) client.MatchingFields { return client.MatchingFields{clusterIDIndex: id} }

func clusterIDOf(o client.Object) []string {
	if id := o.(*hubv1.MemberCluster).Status.ClusterID; id != "" {
		return []string{id}
	}
	return nil
}

func (r *Reconciler) setRefused(cluster string, f refused) {
	r.records.change(cluster, func(known *record) { known.refused = f })
}

// refuseKnownRival sets Ready to False and does not connect, if this replica already knows that another MemberCluster
// represents (and uses) the same cluster.
func (r *Reconciler) refuseKnownRival(ctx context.Context, run *run) (ctrl.Result, error) {
	if run.settled {
		return ctrl.Result{}, nil
	}
	id := run.cluster.Status.ClusterID
	if f := r.records.of(run.cluster.Name).refused; id == "" && f.route == routeHash(run.route) {
		id = f.clusterID
	}
	if id == "" {
		return ctrl.Result{}, nil
	}
	holder, err := r.holderOf(ctx, run.cluster, id)
	if err != nil {
		return ctrl.Result{}, err
	}
	if holder != "" {
		r.refuse(run, holder)
	}
	return ctrl.Result{}, nil
}

// claim sets clusterID in the status, unless another MemberCluster has this ID. In that case, refusedNow is true. It is
// called only while the status has no clusterID.
//
// The candidates come from the index, and from the claims of this replica, because the cache may be behind its writes.
// An uncached read of each must confirm that it has the ID. Two replicas may claim one cluster at the same moment, for
// two MemberClusters. Then both have the ID until each sees the other one, and the younger is refused (holderOf).
func (r *Reconciler) claim(ctx context.Context, run *run, id string) (refusedNow bool, err error) {
	holder, err := r.confirmedHolder(ctx, run.cluster, id)
	if err != nil {
		return false, err
	}
	if holder != "" {
		r.setRefused(run.cluster.Name, refused{clusterID: id, route: routeHash(run.route)})
		r.refuse(run, holder)
		return true, nil
	}
	r.records.change(run.cluster.Name, func(known *record) { known.refused, known.claimed = refused{}, id })
	run.cluster.Status.ClusterID = id
	return false, nil
}

// confirmedHolder returns the same as holderOf, from the API server. It makes one request for each MemberCluster that
// may have the ID, and none if there is no such MemberCluster.
func (r *Reconciler) confirmedHolder(ctx context.Context, self *hubv1.MemberCluster, id string) (string, error) {
	candidates := sets.New(r.records.claimantsOf(id)...)
	var same hubv1.MemberClusterList
	if err := r.client.List(ctx, &same, sameCluster(id), client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("looking for another MemberCluster of the same cluster as %s: %w", self.Name, err)
	}
	for i := range same.Items {
		candidates.Insert(same.Items[i].Name)
	}
	var confirmed []hubv1.MemberCluster
	for _, name := range sets.List(candidates.Delete(self.Name)) {
		var c hubv1.MemberCluster
		if err := r.apiReader.Get(ctx, client.ObjectKey{Name: name}, &c); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("confirming that MemberCluster %s has the same cluster as %s: %w", name, self.Name, err)
		} else if err == nil {
			confirmed = append(confirmed, c)
		}
	}
	return oldest(confirmed, self, id), nil
}

// routeHash tells the routes of a MemberCluster apart.
func routeHash(route member.Route) [sha256.Size]byte {
	if route.Tunnel {
		return sha256.Sum256([]byte(strings.Join(route.Keys, ",")))
	}
	return sha256.Sum256(route.Kubeconfig)
}

func (r *Reconciler) refuse(run *run, holder string) {
	r.withoutLink(run, hubv1.ReasonDuplicateCluster,
		fmt.Sprintf("MemberCluster %s already represents this cluster, and a cluster can join only once: delete one of the two MemberClusters, or give this one the kubeconfig of another cluster", holder))
}

// holderOf returns the name of another MemberCluster that represents the cluster instead of self. It is empty if there
// is none. A MemberCluster with the ID in its status has precedence, because it may have objects on the cluster. Among
// several MemberClusters with the ID, the oldest one has precedence. If several are equally old, the first by name has
// precedence.
func (r *Reconciler) holderOf(ctx context.Context, self *hubv1.MemberCluster, id string) (string, error) {
	var same hubv1.MemberClusterList
	if err := r.client.List(ctx, &same, sameCluster(id), client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("looking for another MemberCluster of the same cluster as %s: %w", self.Name, err)
	}
	return oldest(same.Items, self, id), nil
}

// oldest returns the name of the MemberCluster that represents the cluster instead of self, as holderOf says.
func oldest(others []hubv1.MemberCluster, self *hubv1.MemberCluster, id string) string {
	var holder *hubv1.MemberCluster
	for i := range others {
		other := &others[i]
		if other.Name == self.Name || other.Status.ClusterID != id {
			continue
		}
		if self.Status.ClusterID == id && isOlder(self, other) {
			continue
		}
		if holder == nil || isOlder(other, holder) {
			holder = other
		}
	}
	if holder == nil {
		return ""
	}
	return holder.Name
}

func isOlder(a, b *hubv1.MemberCluster) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}
