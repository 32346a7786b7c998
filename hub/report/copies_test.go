package report

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	prom "github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
	fleet "github.com/hanse-dev/hanse/hub/store/clusters"
)

// series returns the series of the metrics with the given names, as "name labels: value". All names are without the
// prefix hanse_. If no name is given, it returns all series.
func series(t *testing.T, c prom.Collector, names ...string) []string {
	t.Helper()
	registry := prom.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range families {
		name := strings.TrimPrefix(f.GetName(), "hanse_")
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		for _, m := range f.GetMetric() {
			text := name
			for _, l := range m.GetLabel() {
				text += " " + l.GetValue()
			}
			out = append(out, fmt.Sprintf("%s: %v", text, m.GetGauge().GetValue()))
		}
	}
	return out
}

// nonZero returns the series whose value is not 0.
func nonZero(all []string) []string {
	return slices.DeleteFunc(all, func(s string) bool { return strings.HasSuffix(s, ": 0") })
}

var copiesSince = metav1.NewTime(time.Date(2026, 3, 2, 12, 0, 30, 0, time.UTC))

// members implements the client for lists of MemberClusters.
type members struct {
	client.Reader
	items []hubv1.MemberCluster
}

func (m *members) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*hubv1.MemberClusterList).Items = m.items
	return nil
}

// countedIn returns Copies with the given clusters and the placements that the tests use.
func countedIn(t *testing.T, clusters ...string) *Copies {
	t.Helper()
	known := &members{}
	for _, name := range clusters {
		known.items = append(known.items, *clusterThatIs(name, metav1.ConditionTrue))
	}
	c := NewCopies(fleet.New(known))
	c.PlacementChanged(t.Context(), changes.Placement{After: &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "all"}}})
	return c
}

func clusterThatIs(name string, ready metav1.ConditionStatus) *hubv1.MemberCluster {
	c := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: ready}}
	return c
}

// placedOn returns a binding of the kind with the given targets and rows.
func placedOn(kind string, targets []hubv1.BindingTarget, rows ...hubv1.ClusterRow) *hubv1.ResourceBinding {
	b := &hubv1.ResourceBinding{}
	b.Spec.ObjectRef.Kind = kind
	b.Spec.PlacementRef = &hubv1.PlacementReference{Kind: "Placement", Namespace: "ns", Name: "all"}
	b.Spec.Clusters, b.Status.Clusters = targets, rows
	return b
}

func TestAWantedCopyIsCountedByItsRow(t *testing.T) {
	t.Parallel()
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	here := hubv1.BindingTarget{Name: "a", State: hubv1.TargetPresent}
	second := hubv1.BindingTarget{Name: "a", State: hubv1.TargetPresent, Revision: 2}
	rollout := func(phase hubv1.RolloutPhase) *hubv1.BindingRollout {
		return &hubv1.BindingRollout{Revision: 3, Newest: 3, Phase: phase, Since: copiesSince}
	}
	both := []string{"placement_copies ns all: 1", "placement_copies_in_sync ns all: 1"}
	late := []string{"copies_out_of_sync a Widget: 1", "placement_copies ns all: 1"}
	held := func(hold string) []string {
		return []string{"copies_held " + hold + ": 1", fmt.Sprintf("copies_held_oldest_timestamp_seconds %s: %v", hold, float64(copiesSince.Unix()-30))}
	}
	for name, tc := range map[string]struct {
		target  hubv1.BindingTarget
		row     *hubv1.ClusterRow
		rollout *hubv1.BindingRollout
		away    bool     // its cluster is not Ready
		want    []string // the series with the value 1, besides the wanted copy
	}{
		"a healthy copy with the wanted state is in sync": {
			target: here, row: &hubv1.ClusterRow{Applied: yes, Health: hubv1.HealthHealthy}, want: both},
		"a degraded copy is in sync and fails, and its own reason is no label": {
			target: here, row: &hubv1.ClusterRow{Applied: yes, Health: hubv1.HealthDegraded, Reason: "TenantText"},
			want: append([]string{"cluster_copies_by_reason a Degraded: 1", "copies_failing a Widget: 1", "kind_copies_by_reason Widget Degraded: 1"}, both...)},
		"a contested copy has this reason and is out of sync": {
			target: here, row: &hubv1.ClusterRow{Applied: no, Health: hubv1.HealthHealthy, Reason: hubv1.ReasonContested},
			want: append([]string{"cluster_copies_by_reason a Contested: 1", "kind_copies_by_reason Widget Contested: 1"}, late...)},
		"a contested copy that the hub has just restored is out of sync, too": {
			target: here, row: &hubv1.ClusterRow{Applied: yes, Health: hubv1.HealthHealthy, Reason: hubv1.ReasonContested},
			want: append([]string{"cluster_copies_by_reason a Contested: 1", "kind_copies_by_reason Widget Contested: 1"}, late...)},
		"a copy whose write the hub holds is out of sync, because its cluster answers": {
			target: here, row: &hubv1.ClusterRow{Applied: unknown, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonServerError},
			want: append([]string{"cluster_copies_by_reason a ServerError: 1", "kind_copies_by_reason Widget ServerError: 1"}, late...)},
		"an applied copy that the watch does not show is unknown": {
			target: here, row: &hubv1.ClusterRow{Applied: yes, Health: hubv1.HealthProgressing, Reason: hubv1.ReasonPending},
			want: []string{
				"cluster_copies_by_reason a Pending: 1", "copies_unknown a Widget: 1", "kind_copies_by_reason Widget Pending: 1", "placement_copies ns all: 1"}},
		"a healthy copy with a reason of its own has no reason": {
			target: here, row: &hubv1.ClusterRow{Applied: yes, Health: hubv1.HealthHealthy, Reason: "TenantText"}, want: both},
		"a refused copy is out of sync": {
			target: here, row: &hubv1.ClusterRow{Applied: no, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonForbidden},
			want: append([]string{"cluster_copies_by_reason a Forbidden: 1", "kind_copies_by_reason Widget Forbidden: 1"}, late...)},
		"a copy whose values its cluster has changed is in sync, and counted apart": {
			target: here, row: &hubv1.ClusterRow{Applied: yes, Health: hubv1.HealthHealthy, Reason: hubv1.ReasonChangedByCluster, ChangedByCluster: ".spec.replicas 2 instead of 4"},
			want: append([]string{
				"cluster_copies_by_reason a ChangedByCluster: 1", "kind_copies_by_reason Widget ChangedByCluster: 1"}, both...)},
		"a copy without a row is out of sync": {target: here, want: late},
		"a copy that is not written yet is out of sync and not unknown": {
			target: here, row: &hubv1.ClusterRow{Applied: unknown, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonPending},
			want: append([]string{"cluster_copies_by_reason a Pending: 1", "kind_copies_by_reason Widget Pending: 1"}, late...)},
		"a copy on an unreachable cluster is unknown and not out of sync": {
			target: here, row: &hubv1.ClusterRow{Applied: unknown, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonUnreachable}, away: true,
			want: []string{
				"cluster_copies_by_reason a ClusterUnreachable: 1", "copies_unknown a Widget: 1", "kind_copies_by_reason Widget ClusterUnreachable: 1",
				"placement_copies ns all: 1"}},
		"a copy whose row is older than its cluster is unknown": {
			target: here, row: &hubv1.ClusterRow{Applied: unknown, Health: hubv1.HealthUnknown, Reason: hubv1.ReasonUnreachable, LastObservedTime: &copiesSince},
			want: []string{
				"cluster_copies_by_reason a ClusterUnreachable: 1", "copies_unknown a Widget: 1", "kind_copies_by_reason Widget ClusterUnreachable: 1",
				"placement_copies ns all: 1"}},
		"a degraded copy is unknown once its cluster is away, although the row does not say so yet": {
			target: here, row: &hubv1.ClusterRow{Applied: yes, Health: hubv1.HealthDegraded, Reason: "TenantText"}, away: true,
			want: append([]string{"cluster_copies_by_reason a Degraded: 1", "copies_unknown a Widget: 1", "kind_copies_by_reason Widget Degraded: 1"}, both...)},
		"a suspended copy is held and not out of sync": {
			target: here, row: &hubv1.ClusterRow{Applied: no, Health: hubv1.HealthHealthy, Reason: hubv1.ReasonSuspended, LastTransitionTime: &copiesSince},
			want: append([]string{"cluster_copies_by_reason a Suspended: 1", "kind_copies_by_reason Widget Suspended: 1"}, held("Suspended")...)},
		"a copy whose removal is held": {
			target: hubv1.BindingTarget{Name: "a", State: hubv1.TargetPresent, Removal: &hubv1.HeldRemoval{Reason: hubv1.ReasonNotSelected, Since: copiesSince}},
			row:    &hubv1.ClusterRow{Applied: yes, Health: hubv1.HealthHealthy},
			want:   append([]string{"removals_held: 1"}, held("Guard")...)},
		"a copy that waits for a window has an older revision and is held": {
			target: second, row: &hubv1.ClusterRow{Applied: yes, Health: hubv1.HealthHealthy, Revision: 2}, rollout: rollout(hubv1.RolloutWaitingForWindow),
			want: append([]string{"rollouts WaitingForWindow: 1"}, held("Window")...)},
		"a copy that waits for its wave": {
			target: second, row: &hubv1.ClusterRow{Applied: yes, Health: hubv1.HealthHealthy, Revision: 2}, rollout: rollout(hubv1.RolloutSoaking),
			want: append([]string{"rollouts Soaking: 1"}, held("Wave")...)},
		"a copy whose rollout has failed": {
			target: second, row: &hubv1.ClusterRow{Applied: yes, Health: hubv1.HealthHealthy, Revision: 2}, rollout: rollout(hubv1.RolloutFailed),
			want: append([]string{"rollouts Failed: 1"}, held("Failed")...)},
		"a held copy that lacks even its older revision is out of sync": {
			target: second, row: &hubv1.ClusterRow{Applied: yes, Health: hubv1.HealthHealthy, Revision: 1}, rollout: rollout(hubv1.RolloutWaitingForApproval),
			want: append([]string{
				"copies_out_of_sync a Widget: 1", "rollouts WaitingForApproval: 1", "rollout_waiting_timestamp_seconds ns WaitingForApproval all : 1.7724528e+09",
			}, held("Approval")...)},
		"a rollout that waits for clusters": {
			target: second, row: &hubv1.ClusterRow{Applied: yes, Health: hubv1.HealthHealthy, Revision: 2}, rollout: rollout(hubv1.RolloutWaitingForClusters),
			want: append([]string{
				"rollouts WaitingForClusters: 1", "rollout_waiting_timestamp_seconds ns WaitingForClusters all : 1.7724528e+09",
			}, held("Wave")...)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := countedIn(t, "a")
			if tc.away {
				c.members = fleet.New(&members{items: []hubv1.MemberCluster{*clusterThatIs("a", metav1.ConditionFalse)}})
			}
			b := placedOn("Widget", []hubv1.BindingTarget{tc.target})
			b.Spec.Rollout = tc.rollout
			if tc.row != nil {
				tc.row.Name = "a"
				b.Status.Clusters = []hubv1.ClusterRow{*tc.row}
			}
			idle := series(t, c)
			c.BindingChanged(t.Context(), changes.Binding{After: b})
			want := append([]string{"copies a Widget: 1"}, tc.want...)
			got := nonZero(series(t, c))
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("series (-want +got):\n%s", diff)
			}
			c.BindingChanged(t.Context(), changes.Binding{Before: b})
			if diff := cmp.Diff(idle, series(t, c)); diff != "" {
				t.Errorf("series after the binding is deleted (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACopyThatIsNotWantedIsNotCounted(t *testing.T) {
	t.Parallel()
	c := countedIn(t, "a", "b", "c")
	c.BindingChanged(t.Context(), changes.Binding{After: placedOn("Widget", []hubv1.BindingTarget{
		{Name: "c", State: hubv1.TargetEvicting, Evicting: &hubv1.Eviction{}},
		{Name: "a", State: hubv1.TargetAbsent, Absent: &hubv1.Absence{}}, {Name: "b", State: hubv1.TargetEvicting, Evicting: &hubv1.Eviction{}},
	}, hubv1.ClusterRow{Name: "a", Applied: metav1.ConditionFalse, Reason: hubv1.ReasonFinalizersRemain},
		// This copy is contested, but not out of sync.
		hubv1.ClusterRow{Name: "c", Applied: metav1.ConditionFalse, Reason: hubv1.ReasonContested},
		hubv1.ClusterRow{Name: "b", Applied: metav1.ConditionTrue, Health: hubv1.HealthDegraded, Reason: hubv1.ReasonEvicting})})
	want := []string{
		"cluster_copies_by_reason a FinalizersRemain: 1", "cluster_copies_by_reason b Evicting: 1",
		"kind_copies_by_reason Widget Evicting: 1", "kind_copies_by_reason Widget FinalizersRemain: 1",
	}
	if diff := cmp.Diff(want, nonZero(series(t, c))); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}

func TestSeriesFollowWhatExists(t *testing.T) {
	t.Parallel()
	c := countedIn(t, "a", "b")
	target := func(name string) hubv1.BindingTarget {
		return hubv1.BindingTarget{Name: name, State: hubv1.TargetPresent}
	}
	before := placedOn("Widget", []hubv1.BindingTarget{target("a"), target("b")})
	after := placedOn("Widget", []hubv1.BindingTarget{target("a"), target("b")},
		hubv1.ClusterRow{Name: "a", Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy},
		hubv1.ClusterRow{Name: "b", Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy})
	c.BindingChanged(t.Context(), changes.Binding{After: before, Initial: true})
	c.BindingChanged(t.Context(), changes.Binding{Before: before, After: after})
	step := func(name string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, series(t, c, "copies", "copies_out_of_sync", "placement_copies", "placement_copies_in_sync")); diff != "" {
			t.Errorf("series %s (-want +got):\n%s", name, diff)
		}
	}
	step("of applied copies", "copies a Widget: 1", "copies b Widget: 1", "copies_out_of_sync a Widget: 0", "copies_out_of_sync b Widget: 0",
		"placement_copies ns all: 2", "placement_copies_in_sync ns all: 2")
	c.members = fleet.New(&members{items: []hubv1.MemberCluster{*clusterThatIs("a", metav1.ConditionTrue)}})
	step("after a cluster has left", "copies a Widget: 1", "copies_out_of_sync a Widget: 0", "placement_copies ns all: 2", "placement_copies_in_sync ns all: 2")
	c.PlacementChanged(t.Context(), changes.Placement{Before: &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "all"}}})
	step("after the placement is deleted", "copies a Widget: 1", "copies_out_of_sync a Widget: 0")
	c.BindingChanged(t.Context(), changes.Binding{Before: after})
	step("after the kind is gone")
}

func TestThePlacementHasTheTimesOfItsChanges(t *testing.T) {
	t.Parallel()
	c := countedIn(t)
	all := types.NamespacedName{Namespace: "ns", Name: "all"}
	c.Converged(all, time.Second)
	c.Converged(all, 3*time.Second)
	c.Converged(types.NamespacedName{Name: "gone"}, time.Second)
	times := func() (out []string) {
		registry := prom.NewPedanticRegistry()
		registry.MustRegister(c)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == "hanse_placement_status_duration_seconds" {
					out = append(out, fmt.Sprintf("%s: %d in %v s", m.GetLabel()[1].GetValue(), m.GetSummary().GetSampleCount(), m.GetSummary().GetSampleSum()))
				}
			}
		}
		return out
	}
	if diff := cmp.Diff([]string{"all: 2 in 4 s"}, times()); diff != "" {
		t.Errorf("times (-want +got):\n%s", diff)
	}
	c.PlacementChanged(t.Context(), changes.Placement{Before: &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "all"}}})
	if got := times(); len(got) > 0 {
		t.Errorf("a deleted placement has %v", got)
	}
}

func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	c := countedIn(t, "a")
	for i := range 12 {
		for range 12 - i {
			c.BindingChanged(t.Context(), changes.Binding{After: placedOn("Widget", []hubv1.BindingTarget{{Name: "a", State: hubv1.TargetPresent}},
				hubv1.ClusterRow{Name: "a", Applied: metav1.ConditionFalse, Reason: fmt.Sprintf("Reason%02d", i)})})
		}
	}
	c.BindingChanged(t.Context(), changes.Binding{After: placedOn("Widget", []hubv1.BindingTarget{{Name: "a", State: hubv1.TargetPresent}},
		hubv1.ClusterRow{Name: "a", Applied: metav1.ConditionTrue, Reason: hubv1.ReasonContested})})
	want := []string{
		"cluster_copies_by_reason a (others): 45", "cluster_copies_by_reason a Contested: 1", "cluster_copies_by_reason a Reason00: 12",
		"cluster_copies_by_reason a Reason01: 11", "cluster_copies_by_reason a Reason02: 10",
	}
	if diff := cmp.Diff(want, series(t, c, "cluster_copies_by_reason")); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
	for i := range maxPlacements + 2 {
		name := fmt.Sprintf("p%03d", i)
		c.PlacementChanged(t.Context(), changes.Placement{After: &hubv1.ClusterPlacement{ObjectMeta: metav1.ObjectMeta{Name: name}}})
		b := placedOn("Gadget", []hubv1.BindingTarget{{Name: "a", State: hubv1.TargetPresent}})
		b.Spec.PlacementRef = &hubv1.PlacementReference{Kind: "ClusterPlacement", Name: name}
		c.BindingChanged(t.Context(), changes.Binding{After: b})
	}
	got := series(t, c, "placement_copies") // series of placement ns/all come last
	if len(got) != maxPlacements+1 || got[0] != "placement_copies  (others): 81" {
		t.Errorf("%d series of placements, the first %q", len(got), got[0])
	}
}

func TestOnlyTheLeaderOffersTheCounts(t *testing.T) {
	leader, other := countedIn(t, "a"), countedIn(t, "a")
	b := placedOn("Widget", []hubv1.BindingTarget{{Name: "a", State: hubv1.TargetPresent}})
	for _, c := range []*Copies{leader, other} {
		c.BindingChanged(t.Context(), changes.Binding{After: b})
	}
	if got := registered(t, "hanse_copies"); got != 0 {
		t.Fatalf("%v copies are offered before anyone leads", got)
	}
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- leader.Lead(ctx) }()
	eventuallyRegistered(t, "hanse_copies", 1)
	end()
	<-done
	if got := registered(t, "hanse_copies"); got != 0 {
		t.Errorf("%v copies are offered after the lead has ended", got)
	}
	ctx, end = context.WithCancel(t.Context())
	go func() { done <- other.Lead(ctx) }()
	eventuallyRegistered(t, "hanse_copies", 1)
	end()
	<-done
}

// registered returns the sum of a gauge's series in the registry that the hub serves.
func registered(t *testing.T, name string) (sum float64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

func eventuallyRegistered(t *testing.T, name string, want float64) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		return registered(t, name) == want, nil
	}); err != nil {
		t.Fatalf("%s is %v, want %v", name, registered(t, name), want)
	}
}

func TestTheTimeFromAChangeToTheStatusIsMeasuredOnce(t *testing.T) {
	shown := func() (n uint64) {
		families, err := metrics.Registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == "hanse_kind_status_duration_seconds" && m.GetLabel()[0].GetValue() == "Widget" {
					n = m.GetHistogram().GetSampleCount()
				}
			}
		}
		return n
	}
	w := newWorld(t, "Widget")
	w.start()
	before := shown()
	o := w.object("web", present("a"), present("b"))
	w.applied(o, "a", hubv1.HealthHealthy, two)
	w.applied(o, "b", hubv1.HealthHealthy, two)
	w.until("all rows", healthyEverywhere)
	w.eventually("the measure of the new object", func() (bool, string) { return shown() == before+1, fmt.Sprint(shown() - before) })
	w.observe(o, "a", hubv1.HealthDegraded, three)
	w.until("a degraded copy", is(hubv1.ConditionHealthy, metav1.ConditionFalse, hubv1.ReasonDegradedOnSome))
	w.quiet()
	if got := shown() - before; got != 1 {
		t.Errorf("%d changes are measured, want 1: a copy that changes itself is none", got)
	}
}
