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

// Several replicas write one binding, each replica the rows of the clusters in its shard. Each write replaces the whole
// status at the version that was read. The second of two concurrent writers gets a conflict and reads the binding
// again, so no row is lost, and conditions cover all rows.
//
// The leader writes all other parts: the decision's part of the status, the hub object's status, and the rows of
// clusters that no longer exist. It waits a short time for the rows of other replicas, so that the status is merged
// only once.

// othersAtMost is how long the leader waits for the rows of other replicas. These replicas themselves wait for results
// and turns.
const othersAtMost = pace.AnswerWithin

func (r *Reporter) leads() bool {
	select {
	case <-r.elected:
		return true
	default:
		return false
	}
}

// share determines the rows that this replica writes. It returns false if the replica has no row and no other part of
// the binding to write.
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
				continue // no replica has it
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

// gatherElsewhere checks the row of a cluster in another replica's shard.
func (r *run) gatherElsewhere(t hubv1.BindingTarget) {
	row := r.binding.BindingStatus().Row(t.Name)
	r.hubIsTarget = r.hubIsTarget || (row != nil && row.Reason == hubv1.ReasonIsTemplate) || r.reporter.opts.IsHub(t.Name)
	if r.leads && t.State == hubv1.TargetPresent && r.isDue(t, row) {
		r.othersDue = true
	}
}

// isDue reports whether another replica still has to report about the wanted content of a target. A row that says why
// the content is not applied is such a report.
func (r *run) isDue(t hubv1.BindingTarget, row *hubv1.ClusterRow) bool {
	switch {
	case row == nil, row.Reason == hubv1.ReasonPending:
		return true
	case row.Applied != metav1.ConditionTrue, row.Reason == hubv1.ReasonIsTemplate, r.template == nil:
		return false
	}
	return !hubv1.Wanted(t, r.hub).IsHeld(row.Generation, row.Revision)
}

// patience returns the longest time from the first change until a write, while results are expected.
func (r *run) patience() time.Duration {
	if r.othersDue || r.ends() {
		return othersAtMost
	}
	return longestWindow
}

// mayWrite reports whether this replica is the leader or its own rows changed. A withdrawal is a change until a row for
// the current decision shows it.
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

// othersWrote queues a binding whose rows another replica has changed. The leader merges these rows, and a new decision
// may have reset a row of this replica.
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
