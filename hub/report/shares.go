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

// Several replicas write the status of the same binding. Each one writes the rows of the clusters in its shard. A write
// replaces the whole status, at the resourceVersion that was read. If two replicas write at the same time, one gets a
// conflict and reads again. No row is therefore lost, and the conditions cover all rows.
//
// Only the leader writes the part of the status that comes from the decision, the status of the hub object, and the
// rows of deleted clusters. It waits a little for the rows of other replicas, so that it merges only once.

// othersAtMost is how long the leader waits for the rows of other replicas. They also wait for results and for turns.
const othersAtMost = pace.AnswerWithin

func (r *Reporter) leads() bool {
	select {
	case <-r.elected:
		return true
	default:
		return false
	}
}

// share determines the rows that this replica writes. It returns false if it writes no row and is not the leader.
func (r *run) share(ctx context.Context) (part bool, err error) {
	r.leads = r.reporter.leads()
	r.elsewhere = map[string]bool{}
	for _, t := range r.targets {
		if r.reporter.opts.Holds(t.Name) {
			continue
		}
		if r.leads {
			var c hubv1.MemberCluster
			if err := r.reporter.opts.Client.Get(ctx, types.NamespacedName{Name: t.Name}, &c, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
				return false, fmt.Errorf("reading MemberCluster %s: %w", t.Name, err)
			}
			if c.Name == "" {
				continue // without a MemberCluster, no replica has it in its shard
			}
		}
		r.elsewhere[t.Name] = true
	}
	if r.leads || len(r.elsewhere) < len(r.targets) {
		return true, nil
	}
	r.end()
	return false, nil
}

// gatherElsewhere records facts about the row of a cluster in another replica's shard: whether a new row is due, and
// whether the cluster is the hub itself.
func (r *run) gatherElsewhere(t hubv1.BindingTarget) {
	row := r.binding.BindingStatus().Row(t.Name)
	r.hubIsTarget = r.hubIsTarget || (row != nil && row.Reason == hubv1.ReasonIsTemplate) || r.reporter.opts.IsHub(t.Name)
	if r.leads && t.State == hubv1.TargetPresent && r.isDue(t, row) {
		r.othersDue = true
	}
}

// isDue reports whether another replica will soon write the row. The row shows older content than the target wants, and
// no reason why the older content stays.
func (r *run) isDue(t hubv1.BindingTarget, row *hubv1.ClusterRow) bool {
	switch {
	case row == nil, row.Reason == hubv1.ReasonPending:
		return true
	case row.Applied != metav1.ConditionTrue, row.Reason == hubv1.ReasonIsTemplate, r.template == nil:
		return false
	}
	return !hubv1.Wanted(t, r.hub).IsHeld(row.Generation, row.Revision)
}

// patience returns how long the write may wait for expected results, from the first change in the window.
func (r *run) patience() time.Duration {
	if r.othersDue || r.ends() {
		return othersAtMost
	}
	return longestWindow
}

// mayWrite reports whether this replica is the leader, or its own rows have changed. The row of a withdrawal must also
// be written once for each decision.
func (r *run) mayWrite(before *hubv1.BindingStatus) bool {
	if r.leads {
		return true
	}
	return slices.ContainsFunc(r.own(r.after.Clusters), func(row hubv1.ClusterRow) bool {
		was := before.Row(row.Name)
		return was == nil || !sameRow(*was, row) ||
			(row.Reason == hubv1.ReasonWithdrawn && before.ObservedGeneration != r.after.ObservedGeneration)
	})
}

// own returns the rows of clusters in this replica's shard.
func (r *run) own(rows []hubv1.ClusterRow) []hubv1.ClusterRow {
	if len(r.elsewhere) == 0 {
		return rows
	}
	return slices.DeleteFunc(slices.Clone(rows), func(row hubv1.ClusterRow) bool { return r.elsewhere[row.Name] })
}

// othersWrote queues a binding after another replica has written its status. The leader merges the new rows. Other
// replicas check their own rows, because a new decision may have reset one of them.
func (r *Reporter) othersWrote(was, is hubv1.BindingObject) {
	if !slices.ContainsFunc(is.BindingSpec().Clusters, func(t hubv1.BindingTarget) bool { return !r.opts.Holds(t.Name) }) {
		return
	}
	leads := r.leads()
	news := slices.ContainsFunc(is.BindingStatus().Clusters, func(row hubv1.ClusterRow) bool {
		if !leads && !r.opts.Holds(row.Name) {
			return false
		}
		old := was.BindingStatus().Row(row.Name)
		return old == nil || !sameRow(*old, row)
	})
	if !news {
		return
	}
	key := client.ObjectKeyFromObject(is)
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.entries[key]; e != nil && e.written != is.GetResourceVersion() {
		r.wake(key, e, result, pace.MergedStatus)
	}
}
