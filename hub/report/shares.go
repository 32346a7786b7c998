package report

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
)

// Several replicas write the status of the same binding. Each replica writes the rows of the clusters in its shard. A
// write replaces the whole status, and names the resourceVersion that was read. If two replicas write at the same time,
// one of them gets a conflict and reads the binding again. No row is therefore lost, and the conditions cover all rows.
//
// Only the leader writes three things: the part of the status that comes from the decision, the status of the hub
// object, and the rows of deleted clusters. The leader waits a little for the rows of other replicas, so that it merges
// the statuses only once.

// maxOthersWait is how long the leader waits for the rows of other replicas. The other replicas may need this time,
// because they also wait for results and for turns to write.
const maxOthersWait = pace.AnswerWithin

func (r *Reporter) leads() bool {
	select {
	case <-r.elected:
		return true
	default:
		return false
	}
}

// share determines which rows this replica writes. It returns false if this replica writes no row and is not the
// leader.
func (r *run) share(ctx context.Context) (part bool, err error) {
	r.part.leads = r.reporter.leads()
	r.part.elsewhere = map[string]bool{}
	for _, t := range r.targets {
		if r.reporter.opts.Shard.Holds(t.Name) {
			continue
		}
		if r.part.leads {
			var c hubv1.MemberCluster
			if err := r.reporter.opts.Client.Get(ctx, types.NamespacedName{Name: t.Name}, &c, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
				return false, fmt.Errorf("reading MemberCluster %s: %w", t.Name, err)
			}
			if c.Name == "" {
				continue // without a MemberCluster, the cluster is in no shard
			}
		}
		r.part.elsewhere[t.Name] = true
	}
	if r.part.leads || len(r.part.elsewhere) < len(r.targets) {
		return true, nil
	}
	r.end()
	return false, nil
}

// gatherElsewhere records two facts about a cluster that another replica serves: whether that replica will soon write a
// new row, and whether the cluster is the hub itself.
func (r *run) gatherElsewhere(t hubv1.BindingTarget) {
	row := r.binding.BindingStatus().Row(t.Name)
	r.in.hubIsTarget = r.in.hubIsTarget || (row != nil && row.Reason == hubv1.ReasonIsTemplate) || r.reporter.opts.Shard.IsHub(t.Name)
	if r.part.leads && t.State == hubv1.TargetPresent && r.in.isDue(t, row) {
		r.part.othersDue = true
	}
}

// isDue reports whether another replica will soon write the row. This is so if the row shows older content than the
// decision wants on the cluster, and gives no reason why the older content stays.
func (in *gathered) isDue(t hubv1.BindingTarget, row *hubv1.ClusterRow) bool {
	switch {
	case row == nil, row.Reason == hubv1.ReasonPending:
		return true
	case row.Applied != metav1.ConditionTrue, row.Reason == hubv1.ReasonIsTemplate, in.template == nil:
		return false
	}
	return !hubv1.Wanted(t, in.hub).IsHeld(row.Generation, row.Revision)
}

// patience returns how long the write of the status may wait for expected results, counted from the first unwritten
// change.
func (r *run) patience() time.Duration {
	if r.part.othersDue || r.ends() {
		return maxOthersWait
	}
	return maxWindow
}

// mayWrite reports whether this replica may write the status: it is the leader, or one of its own rows has changed. The
// row of a confirmed withdrawal is written once for each decision, even if the row has not changed.
func (r *run) mayWrite(before *hubv1.BindingStatus) bool {
	if r.part.leads {
		return true
	}
	return slices.ContainsFunc(r.part.own(r.out.after.Clusters), func(row hubv1.ClusterRow) bool {
		was := before.Row(row.Name)
		return was == nil || !sameRow(*was, row) ||
			(row.Reason == hubv1.ReasonWithdrawn && before.ObservedGeneration != r.out.after.ObservedGeneration)
	})
}

// own returns the rows of the clusters that this replica serves.
func (p part) own(rows []hubv1.ClusterRow) []hubv1.ClusterRow {
	if len(p.elsewhere) == 0 {
		return rows
	}
	return slices.DeleteFunc(slices.Clone(rows), func(row hubv1.ClusterRow) bool { return p.elsewhere[row.Name] })
}

// othersWrote queues a binding after another replica has written its status. The leader then merges the new rows. Other
// replicas then check their own rows, because a new decision may have reset one of them.
func (r *Reporter) othersWrote(was, is hubv1.BindingObject) {
	if !slices.ContainsFunc(is.BindingSpec().Clusters, func(t hubv1.BindingTarget) bool { return !r.opts.Shard.Holds(t.Name) }) {
		return
	}
	leads := r.leads()
	changed := slices.ContainsFunc(is.BindingStatus().Clusters, func(row hubv1.ClusterRow) bool {
		if !leads && !r.opts.Shard.Holds(row.Name) {
			return false
		}
		old := was.BindingStatus().Row(row.Name)
		return old == nil || !sameRow(*old, row)
	})
	if !changed {
		return
	}
	key := client.ObjectKeyFromObject(is)
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[key]; e != nil && e.last.written != is.GetResourceVersion() {
		r.wake(key, e, result, pace.MergedStatus)
	}
}
