package membership

import (
	"context"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/member"
)

// WatchedCopies has the objects on a member that the hub watches because they have the hub's label.
type WatchedCopies interface {
	Each(visit func(member.Observation))
}

// Unclaimed counts the copies on each member that no binding names. Such copies are left, for example, if the hub was
// restored from a backup without their objects. Every replica counts on the members that it serves. Unclaimed never
// removes a copy.
type Unclaimed struct {
	// bindings reads bindings from the cache. members returns the members that this replica serves. changed is called for
	// a member whose number of unclaimed copies has changed.
	bindings client.Reader
	members  func() map[string]WatchedCopies
	changed  func(cluster string)

	mu     sync.Mutex
	counts map[string]int
}

// CountUnclaimed returns a counter, whose numbers the Reconciler writes to the status of MemberClusters. The caller
// must start the counter. members returns the members that this replica serves. Call CountUnclaimed before
// SetupWithManager.
func (r *Reconciler) CountUnclaimed(members func() map[string]WatchedCopies) *Unclaimed {
	u := &Unclaimed{bindings: r.client, members: members, changed: r.Wake}
	r.unclaimed = u.of
	return u
}

// of returns the number of unclaimed copies on a member, which are the copies that no binding names. It returns false
// if they have not been counted yet.
func (u *Unclaimed) of(cluster string) (int, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	n, ok := u.counts[cluster]
	return n, ok
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*Unclaimed) NeedLeaderElection() bool { return false }

// Start counts at intervals until ctx ends.
func (u *Unclaimed) Start(ctx context.Context) error {
	tick := time.NewTicker(pace.RepeatAfter)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := u.count(ctx); err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "Counting copies that no binding claims")
		}
	}
}

// count counts the unclaimed copies on every member once. If the bindings cannot be read, the numbers do not change.
func (u *Unclaimed) count(ctx context.Context) error {
	now := map[string]int{}
	for cluster, held := range u.members() {
		var failed error
		n := 0
		held.Each(func(o member.Observation) {
			if failed != nil || !isCopy(o) {
				return
			}
			key := o.Owner.BindingKey()
			b := hubv1.NewBinding(key)
			err := u.bindings.Get(ctx, key, b, client.UnsafeDisableDeepCopy)
			if client.IgnoreNotFound(err) != nil {
				failed = err
			} else if err != nil || b.BindingSpec().Target(cluster) == nil {
				n++
			}
		})
		if failed != nil {
			return failed
		}
		now[cluster] = n
	}
	u.mu.Lock()
	before := u.counts
	u.counts = now
	u.mu.Unlock()
	for cluster := range before {
		if _, still := now[cluster]; !still {
			unclaimedCopies.DeleteLabelValues(cluster)
		}
	}
	for cluster, n := range now {
		unclaimedCopies.WithLabelValues(cluster).Set(float64(n))
		if was, counted := before[cluster]; !counted || was != n {
			u.changed(cluster)
		}
	}
	return nil
}

// isCopy reports whether the object is a copy that the hub has applied and that is not being deleted. The hub's label
// is not enough, because some operators pass the labels and annotations of a copy on to other objects. The hub's
// annotation on such an object names the copy, and not the object itself.
func isCopy(o member.Observation) bool {
	own := hubv1.ObjectIdentity{Group: o.GVK.Group, Kind: o.GVK.Kind, Namespace: o.Namespace, Name: o.Name}
	return o.Owner == own && o.Hash != "" && !o.Deleting
}
