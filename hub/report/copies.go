package report

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
	fleet "github.com/hanse-dev/hanse/hub/store/clusters"
)

// These are the values of the metric label hold. They tell why a copy stays at an older revision, or why its removal
// waits.
const (
	holdApproval  = "Approval"  // the copy's wave waits for an approval
	holdFailed    = "Failed"    // the rollout has failed
	holdGuard     = "Guard"     // the removal waits for a confirmation
	holdPaused    = "Paused"    // a user has paused the rollout, or the copy on its cluster
	holdRollback  = "Rollback"  // the clusters have, or return to, an older revision
	holdSuspended = "Suspended" // the placement suspends writes
	holdWave      = "Wave"      // an earlier wave, or another object, changes first
	holdWindow    = "Window"    // the next clusters change when a window opens
)

var (
	holds         = []string{holdApproval, holdFailed, holdGuard, holdPaused, holdRollback, holdSuspended, holdWave, holdWindow}
	rolloutStates = []hubv1.RolloutPhase{
		hubv1.RolloutProgressing, hubv1.RolloutSoaking, hubv1.RolloutWaitingForApproval, hubv1.RolloutWaitingForWindow, hubv1.RolloutWaitingForOthers,
		hubv1.RolloutWaitingForClusters, hubv1.RolloutPaused, hubv1.RolloutFailed, hubv1.RolloutRollingBack, hubv1.RolloutRolledBack, hubv1.RolloutComplete,
	}
	// holdOfPhase maps a rollout's phase to the reason why copies stay at an older revision. For all other phases, the
	// reason is holdWave: an earlier wave, or another object, changes first.
	holdOfPhase = map[hubv1.RolloutPhase]string{
		hubv1.RolloutWaitingForApproval: holdApproval, hubv1.RolloutWaitingForWindow: holdWindow, hubv1.RolloutPaused: holdPaused,
		hubv1.RolloutFailed: holdFailed, hubv1.RolloutRollingBack: holdRollback, hubv1.RolloutRolledBack: holdRollback,
	}
	// appliedReasons are the reasons that the hub itself may give in the row of an applied copy. Any other reason of such
	// a row comes from the copy's own status.
	appliedReasons = map[string]bool{
		hubv1.ReasonPending: true, hubv1.ReasonContested: true, hubv1.ReasonFieldsDropped: true, hubv1.ReasonCompleted: true, hubv1.ReasonInSync: true,
		hubv1.ReasonIsTemplate: true, hubv1.ReasonEvicting: true, hubv1.ReasonPaused: true, hubv1.ReasonAutoscaled: true, hubv1.ReasonNotRecreated: true,
		hubv1.ReasonMadeAnew:         true,
		hubv1.ReasonChangedByCluster: true,
	}
)

// These constants limit the number of series. The less frequent reasons of a cluster or kind are counted together in
// one series. Placements beyond their limit are counted together in one series, too.
const (
	maxReasonsOfCluster = 5
	maxReasonsOfKind    = 10
	maxPlacements       = 500
	others              = "(others)"
)

var (
	copiesDesc    = prom.NewDesc("hanse_copies", "Copies that the hub wants on a cluster, by cluster and kind.", []string{"cluster", "kind"}, nil)
	outOfSyncDesc = prom.NewDesc("hanse_copies_out_of_sync",
		"Wanted copies whose wanted state is not on the cluster, or does not stay there because another client changes it. "+
			"Copies that are held or whose state is unknown are not counted.", []string{"cluster", "kind"}, nil)
	failingDesc = prom.NewDesc("hanse_copies_failing", "Wanted copies whose health is Degraded, also if their content is out of sync. Copies whose state is unknown are not counted.", []string{"cluster", "kind"}, nil)
	unknownDesc = prom.NewDesc("hanse_copies_unknown",
		"Wanted copies whose state is not known now, because the hub does not observe their cluster, or the cluster's watch does not show the applied copy.", []string{"cluster", "kind"}, nil)
	clusterReasonDesc = prom.NewDesc("hanse_cluster_copies_by_reason",
		"Copies with a reason in their row, by cluster. A reason from the copy's own status is replaced by the copy's health. The least frequent reasons are summed as (others).",
		[]string{"cluster", "reason"}, nil)
	kindReasonDesc = prom.NewDesc("hanse_kind_copies_by_reason",
		"Copies with a reason in their row, by kind. A reason from the copy's own status is replaced by the copy's health. The least frequent reasons are summed as (others).",
		[]string{"kind", "reason"}, nil)
	heldDesc = prom.NewDesc("hanse_copies_held",
		"Copies that stay at an older state, or are not removed, because a rollout, the guard of removals or a user holds them.", []string{"hold"}, nil)
	heldSinceDesc = prom.NewDesc("hanse_copies_held_oldest_timestamp_seconds",
		"When the hold of the longest held copy began, in seconds since 1970, to the minute. Absent if no copy is held.", []string{"hold"}, nil)
	placementDesc = prom.NewDesc("hanse_placement_copies",
		"Copies of a placement without a held removal. The namespace of a ClusterPlacement is empty. Placements beyond 500 are summed as (others).",
		[]string{"namespace", "placement"}, nil)
	placementInSyncDesc = prom.NewDesc("hanse_placement_copies_in_sync",
		"Copies of a placement without a held removal that have the wanted state.", []string{"namespace", "placement"}, nil)
	placementSecondsDesc = prom.NewDesc("hanse_placement_status_duration_seconds",
		"The same times as in hanse_kind_status_duration_seconds, by placement: only their number and their sum.", []string{"namespace", "placement"}, nil)
	rolloutsDesc = prom.NewDesc("hanse_rollouts", "Objects of placements with a rollout, by the phase of the object's rollout.", []string{"state"}, nil)
	waitingDesc  = prom.NewDesc("hanse_rollout_waiting_timestamp_seconds",
		"When the first object of a placement began to wait in this wave for an approval (phase WaitingForApproval) or for clusters (WaitingForClusters), in seconds since 1970, to the minute. "+
			"The namespace of a ClusterPlacement is empty. Absent if no object waits.", []string{"namespace", "placement", "wave", "phase"}, nil)
	removalsDesc = prom.NewDesc("hanse_removals_held", "Objects with copies whose removal waits for a user's confirmation.", nil, nil)

	copyDescs = []*prom.Desc{
		copiesDesc, outOfSyncDesc, failingDesc, unknownDesc, clusterReasonDesc, kindReasonDesc, heldDesc, heldSinceDesc,
		placementDesc, placementInSyncDesc, placementSecondsDesc, rolloutsDesc, waitingDesc, removalsDesc,
	}
)

// Copies counts the copies in all bindings for the metrics. It updates the counts with each change of a binding, so
// that a scrape does not list bindings. Every replica counts, but only the leader exports the metrics.
//
// A scrape reads the MemberClusters from the cache, because a cluster can become unreachable while no binding changes.
// A cluster without a MemberCluster has no series, even if bindings still name it.
type Copies struct {
	members *fleet.Store

	mu     sync.Mutex
	counts counts
}

// counts has the current numbers that Copies exports.
type counts struct {
	copies     map[clusterKind]copyCount
	ofCluster  map[string]map[string]int // number of rows by reason, for each cluster or kind
	ofKind     map[string]map[string]int // number of rows by reason, for each cluster or kind
	held       map[string]heldCount
	ofPolicy   map[types.NamespacedName]placementCount
	durations  map[types.NamespacedName]durationCount
	rollouts   map[hubv1.RolloutPhase]int
	waiting    map[waitingSince]int // number of objects whose rollouts wait for a user
	removals   int
	placements map[types.NamespacedName]bool // placements that exist
}

type (
	clusterKind struct{ cluster, kind string }
	copyCount   struct{ wanted, outOfSync, failing, unknown int }
	waitingWave struct {
		placement types.NamespacedName
		wave      string
		phase     hubv1.RolloutPhase
	}
	waitingSince struct {
		waitingWave
		minute int64 // when the wait began
	}
	placementCount struct{ copies, inSync int }
	durationCount  struct {
		changes uint64
		seconds float64
	}
	heldCount struct {
		copies int
		since  map[int64]int // number of copies, by the minute in which the hold began
	}
)

// NewCopies returns Copies without any binding. members has the MemberClusters.
func NewCopies(members *fleet.Store) *Copies {
	c := counts{
		copies: map[clusterKind]copyCount{}, ofCluster: map[string]map[string]int{}, ofKind: map[string]map[string]int{},
		held: map[string]heldCount{}, ofPolicy: map[types.NamespacedName]placementCount{}, durations: map[types.NamespacedName]durationCount{},
		rollouts: map[hubv1.RolloutPhase]int{}, waiting: map[waitingSince]int{}, placements: map[types.NamespacedName]bool{},
	}
	for _, hold := range holds {
		c.held[hold] = heldCount{since: map[int64]int{}}
	}
	return &Copies{members: members, counts: c}
}

// Lead exports the metrics until ctx ends. The manager runs it in the leading replica only.
func (c *Copies) Lead(ctx context.Context) error {
	// Only in tests, a process has a second hub. Its copies are not exported.
	if err := metrics.Registry.Register(c); err == nil {
		defer metrics.Registry.Unregister(c)
	}
	<-ctx.Done()
	return nil
}

// BindingChanged updates the counts after a change of a binding.
func (c *Copies) BindingChanged(_ context.Context, ch changes.Binding) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch.Before != nil {
		c.counts.add(ch.Before, -1)
	}
	if ch.After != nil {
		c.counts.add(ch.After, 1)
	}
}

// PlacementChanged records a new or deleted placement. When a placement is deleted, its copies stay on the members, but
// the series of the placement end.
func (c *Copies) PlacementChanged(_ context.Context, ch changes.Placement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ch.After == nil {
		delete(c.counts.placements, client.ObjectKeyFromObject(ch.Before))
		delete(c.counts.durations, client.ObjectKeyFromObject(ch.Before))
		return
	}
	c.counts.placements[client.ObjectKeyFromObject(ch.After)] = true
}

// Converged records how long it took until every copy of a hub object had a change of the object. placement is the
// placement of the object.
func (c *Copies) Converged(placement types.NamespacedName, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts.placements[placement] {
		n := c.counts.durations[placement]
		c.counts.durations[placement] = durationCount{n.changes + 1, n.seconds + took.Seconds()}
	}
}

// add adds the copies of a binding to the counts, multiplied by n. n is 1 for the new state of a binding, and -1 for
// its old state.
func (c *counts) add(b hubv1.BindingObject, n int) {
	spec := b.BindingSpec()
	rows := make(map[string]*hubv1.ClusterRow, len(spec.Clusters))
	for i := range b.BindingStatus().Clusters {
		row := &b.BindingStatus().Clusters[i]
		rows[row.Name] = row
	}
	// hub/report/policies uses the same condition when it counts the rollouts of a placement: the binding has a rollout
	// and is not being deleted.
	if spec.Rollout != nil && b.GetDeletionTimestamp() == nil {
		increase(c.rollouts, spec.Rollout.Phase, n)
		c.addWaiting(spec, n)
	}
	removal := false
	for i := range spec.Clusters {
		t := &spec.Clusters[i]
		c.addCopy(spec, t, rows[t.Name], n)
		removal = removal || t.Removal != nil
	}
	if removal {
		c.removals += n
	}
}

// addCopy adds one copy to the counts, multiplied by n. row is nil if the binding has no row for the cluster yet.
func (c *counts) addCopy(spec *hubv1.BindingSpec, t *hubv1.BindingTarget, row *hubv1.ClusterRow, n int) {
	kind := spec.ObjectRef.Kind
	// A contested copy (another client keeps changing it back) must be in both counts, out of sync and by reason. An alert
	// subtracts the contested copies from the copies out of sync.
	if reason := reasonOf(row); reason != "" && (reason != hubv1.ReasonContested || t.State == hubv1.TargetPresent) {
		increaseReason(c.ofCluster, t.Name, reason, n)
		increaseReason(c.ofKind, kind, reason, n)
	}
	if t.State != hubv1.TargetPresent {
		return
	}
	is := copyOf(t, row)
	key := clusterKind{t.Name, kind}
	sum := c.copies[key].plus(is, n)
	if c.copies[key] = sum; sum == (copyCount{}) {
		delete(c.copies, key)
	}
	if hold, since := holdOf(spec, t, row); hold != "" {
		c.held[hold] = c.held[hold].plus(since, n)
		return
	}
	if ref := spec.PlacementRef; ref != nil {
		policy := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		sum := c.ofPolicy[policy]
		sum.copies += n
		sum.inSync += n * (1 - is.outOfSync - is.unknown)
		if c.ofPolicy[policy] = sum; sum == (placementCount{}) {
			delete(c.ofPolicy, policy)
		}
	}
}

// copyOf returns the counts of one copy, from its row. Each count is 0 or 1, and outOfSync and unknown are never both
// 1. Whether the hub can observe the cluster at all is not checked here. A contested copy, which another client keeps
// changing back, counts as out of sync even after the hub has corrected it.
func copyOf(t *hubv1.BindingTarget, row *hubv1.ClusterRow) copyCount {
	is := copyCount{wanted: 1}
	switch {
	case row == nil:
		is.outOfSync = 1
	case row.LastObservedTime != nil: // the row shows an earlier time
		is.unknown = 1
		return is
	case row.Applied == metav1.ConditionUnknown: // the hub has not written yet, holds the write, or will try again
		is.outOfSync = 1
	case row.Reason == hubv1.ReasonSuspended, row.Reason == hubv1.ReasonPaused: // the write is held
	case row.Applied != metav1.ConditionTrue, row.Reason == hubv1.ReasonContested, !hubv1.Wanted(*t, hubv1.HubObject{}).IsHeld(row.Generation, row.Revision):
		is.outOfSync = 1
	case row.Reason == hubv1.ReasonPending:
		is.unknown = 1
	}
	if row != nil && row.Health == hubv1.HealthDegraded {
		is.failing = 1
	}
	return is
}

func (s copyCount) plus(o copyCount, n int) copyCount {
	return copyCount{
		s.wanted + n*o.wanted, s.outOfSync + n*o.outOfSync, s.failing + n*o.failing, s.unknown + n*o.unknown,
	}
}

// holdOf returns why a copy stays at an older revision or why its removal waits, and since when. hold is empty if
// neither is the case.
func holdOf(spec *hubv1.BindingSpec, t *hubv1.BindingTarget, row *hubv1.ClusterRow) (hold string, since *metav1.Time) {
	switch {
	case t.Removal != nil:
		return holdGuard, &t.Removal.Since
	case row != nil && row.Reason == hubv1.ReasonSuspended:
		return holdSuspended, row.LastTransitionTime
	case row != nil && row.Reason == hubv1.ReasonPaused:
		return holdPaused, row.LastTransitionTime
	case spec.Rollout != nil && t.Revision != 0 && t.Revision != spec.Rollout.Newest:
		return cmp.Or(holdOfPhase[spec.Rollout.Phase], holdWave), &spec.Rollout.Since
	}
	return "", nil
}

func (h heldCount) plus(since *metav1.Time, n int) heldCount {
	if !since.IsZero() {
		increase(h.since, since.Unix()/60, n)
	}
	return heldCount{h.copies + n, h.since}
}

// reasonOf returns the reason of a row for the metrics. It is empty if the copy has no problem. If the reason comes
// from the copy's own status, it returns the health instead, because a member could invent any number of reasons.
func reasonOf(row *hubv1.ClusterRow) string {
	switch {
	case row == nil, row.Reason == "", row.Reason == hubv1.ReasonApplied, row.Reason == hubv1.ReasonWithdrawn:
		return ""
	case row.Applied != metav1.ConditionTrue, appliedReasons[row.Reason]:
		return row.Reason
	case row.Health == hubv1.HealthHealthy:
		return ""
	}
	return cmp.Or(string(row.Health), string(hubv1.HealthUnknown))
}

// addWaiting adds an object n times if its rollout waits for a user.
func (c *counts) addWaiting(spec *hubv1.BindingSpec, n int) {
	of, ref := spec.Rollout, spec.PlacementRef
	if ref == nil || of.Phase != hubv1.RolloutWaitingForApproval && of.Phase != hubv1.RolloutWaitingForClusters {
		return
	}
	wave := waitingWave{types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, of.Wave, of.Phase}
	increase(c.waiting, waitingSince{wave, of.Since.Unix() / 60}, n)
}

// oldestWaits returns for each wave that waits for a user the minute in which the first object began to wait.
func (c *counts) oldestWaits() map[waitingWave]int64 {
	oldest := map[waitingWave]int64{}
	for w := range c.waiting {
		if first, known := oldest[w.waitingWave]; !known || w.minute < first {
			oldest[w.waitingWave] = w.minute
		}
	}
	return oldest
}

func increase[K comparable](sums map[K]int, key K, n int) {
	if sums[key] += n; sums[key] == 0 {
		delete(sums, key)
	}
}

func increaseReason(sums map[string]map[string]int, key, reason string, n int) {
	if sums[key] == nil {
		sums[key] = map[string]int{}
	}
	if increase(sums[key], reason, n); len(sums[key]) == 0 {
		delete(sums, key)
	}
}

// Describe implements prometheus.Collector.
func (*Copies) Describe(out chan<- *prom.Desc) {
	for _, d := range copyDescs {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Copies) Collect(out chan<- prom.Metric) {
	all, err := c.members.Current(context.Background())
	if err != nil {
		return // the cache is stopping, and so is this process
	}
	observed, now := make(map[string]bool, len(all.Clusters)), time.Now()
	for _, m := range all.Clusters {
		observed[m.Name] = m.IsObserved(now)
	}
	counted := c.snapshot()
	counted.collect(out, observed)
}

// snapshot returns a copy of the counts, so that a scrape does not block updates.
func (c *Copies) snapshot() counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.counts
	now.copies, now.ofPolicy, now.durations = maps.Clone(now.copies), maps.Clone(now.ofPolicy), maps.Clone(now.durations)
	now.rollouts, now.waiting, now.placements = maps.Clone(now.rollouts), maps.Clone(now.waiting), maps.Clone(now.placements)
	now.ofCluster, now.ofKind, now.held = cloneInner(now.ofCluster), cloneInner(now.ofKind), maps.Clone(now.held)
	for hold, h := range now.held {
		now.held[hold] = heldCount{h.copies, maps.Clone(h.since)}
	}
	return now
}

func cloneInner(sums map[string]map[string]int) map[string]map[string]int {
	out := make(map[string]map[string]int, len(sums))
	for key, inner := range sums {
		out[key] = maps.Clone(inner)
	}
	return out
}

// collect sends the series of a snapshot. observed has a value for each MemberCluster. The value is false if the hub
// cannot observe the cluster now. All copies on such a cluster are counted as unknown.
func (c *counts) collect(out chan<- prom.Metric, observed map[string]bool) {
	gauge := func(d *prom.Desc, v int, labels ...string) {
		out <- prom.MustNewConstMetric(d, prom.GaugeValue, float64(v), labels...)
	}
	for key, n := range c.copies {
		known, exists := observed[key.cluster]
		if !exists {
			continue
		}
		if !known {
			n = copyCount{wanted: n.wanted, unknown: n.wanted}
		}
		gauge(copiesDesc, n.wanted, key.cluster, key.kind)
		gauge(outOfSyncDesc, n.outOfSync, key.cluster, key.kind)
		gauge(failingDesc, n.failing, key.cluster, key.kind)
		gauge(unknownDesc, n.unknown, key.cluster, key.kind)
	}
	for cluster, reasons := range c.ofCluster {
		if _, exists := observed[cluster]; exists {
			for reason, n := range mostFrequent(reasons, maxReasonsOfCluster) {
				gauge(clusterReasonDesc, n, cluster, reason)
			}
		}
	}
	for kind, reasons := range c.ofKind {
		for reason, n := range mostFrequent(reasons, maxReasonsOfKind) {
			gauge(kindReasonDesc, n, kind, reason)
		}
	}
	for hold, h := range c.held {
		gauge(heldDesc, h.copies, hold)
		if len(h.since) > 0 {
			oldest := slices.Min(slices.Collect(maps.Keys(h.since)))
			gauge(heldSinceDesc, int(oldest*int64(time.Minute/time.Second)), hold)
		}
	}
	shown, durations := c.firstPlacements()
	for policy, n := range shown {
		gauge(placementDesc, n.copies, policy.Namespace, policy.Name)
		gauge(placementInSyncDesc, n.inSync, policy.Namespace, policy.Name)
		took := durations[policy]
		out <- prom.MustNewConstSummary(placementSecondsDesc, took.changes, took.seconds, nil, policy.Namespace, policy.Name)
	}
	for _, state := range rolloutStates {
		gauge(rolloutsDesc, c.rollouts[state], string(state))
	}
	for w, minute := range c.oldestWaits() {
		gauge(waitingDesc, int(minute*int64(time.Minute/time.Second)), w.placement.Namespace, w.placement.Name, w.wave, string(w.phase))
	}
	gauge(removalsDesc, c.removals)
}

// mostFrequent returns the most frequent reasons with their counts, up to the limit. If there are more reasons, the
// last entry is the sum of the others. Contested always has its own entry, because an alert reads its series.
func mostFrequent(reasons map[string]int, limit int) map[string]int {
	if len(reasons) <= limit {
		return reasons
	}
	weight := func(reason string) int {
		if reason == hubv1.ReasonContested {
			return math.MaxInt
		}
		return reasons[reason]
	}
	order := slices.SortedFunc(maps.Keys(reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a, b))
	})
	out := map[string]int{}
	for i, reason := range order {
		if i >= limit-1 {
			out[others] += reasons[reason]
			continue
		}
		out[reason] = reasons[reason]
	}
	return out
}

// firstPlacements returns the counts of the existing placements that are first by name, up to the limit, and one sum
// for all other placements. The order by name is stable, so that the series of a placement has no gaps.
func (c *counts) firstPlacements() (map[types.NamespacedName]placementCount, map[types.NamespacedName]durationCount) {
	shown := make(map[types.NamespacedName]placementCount, min(len(c.placements), maxPlacements+1))
	durations := make(map[types.NamespacedName]durationCount, len(shown))
	order := slices.SortedFunc(maps.Keys(c.placements), func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for i, policy := range order {
		n, took := c.ofPolicy[policy], c.durations[policy]
		if i >= maxPlacements {
			policy = types.NamespacedName{Name: others}
			n.copies, n.inSync = n.copies+shown[policy].copies, n.inSync+shown[policy].inSync
			took.changes, took.seconds = took.changes+durations[policy].changes, took.seconds+durations[policy].seconds
		}
		shown[policy], durations[policy] = n, took
	}
	return shown, durations
}
