package report

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
	fleet "github.com/hanse-dev/hanse/hub/store/clusters"
	"github.com/hanse-dev/hanse/member/rollup"
	"github.com/hanse-dev/hanse/view"
)

// anyOf returns one of the values at random.
func anyOf[T any](random *rand.Rand, of ...T) T { return of[random.IntN(len(of))] }

// anyMember returns a MemberCluster in a random state. unknown is true if the hub cannot observe it.
func anyMember(random *rand.Rand, name string) (m hubv1.MemberCluster, unknown bool) {
	m.Name = name
	status := anyOf(random, "", metav1.ConditionTrue, metav1.ConditionTrue, metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown)
	if status != "" {
		reason := anyOf(random, hubv1.ReasonConnected, hubv1.ReasonUnreachable, hubv1.ReasonLeaving)
		m.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: status, Reason: reason}}
	}
	observed := anyOf(random, -1, 1, 20, 3600) // seconds since the last observation; -1: never
	if observed >= 0 {
		at := metav1.NewTime(time.Now().Add(-time.Duration(observed) * time.Second))
		m.Status.LastObservedTime = &at
	}
	return m, status != metav1.ConditionTrue || observed == 3600
}

// anyRow returns a row with random values. As in the hub, a copy that was just applied but not yet observed is
// Progressing.
func anyRow(random *rand.Rand, cluster string) hubv1.ClusterRow {
	row := hubv1.ClusterRow{
		Name: cluster, UID: "u1", Generation: 1,
		Applied: anyOf(random, metav1.ConditionTrue, metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown),
		Health:  anyOf(random, "", hubv1.HealthHealthy, hubv1.HealthHealthy, hubv1.HealthDegraded, hubv1.HealthProgressing, hubv1.HealthUnknown),
		Reason: anyOf(random, "", "", "TenantText", hubv1.ReasonPending, hubv1.ReasonApplied, hubv1.ReasonContested, hubv1.ReasonForbidden, hubv1.ReasonSuspended,
			hubv1.ReasonPaused, hubv1.ReasonServerError, hubv1.ReasonUnreachable, hubv1.ReasonHubIsOlder, hubv1.ReasonInSync),
	}
	if row.Applied == metav1.ConditionTrue && row.Reason == hubv1.ReasonPending {
		row.Health = hubv1.HealthProgressing
	}
	if random.IntN(8) == 0 {
		at := metav1.NewTime(time.Now().Add(-time.Hour))
		row.LastObservedTime = &at
	}
	return row
}

// printed returns the health that hansectl prints for the binding's only copy.
func printed(t *testing.T, b hubv1.BindingObject, known []hubv1.MemberCluster) string {
	t.Helper()
	var text bytes.Buffer
	view.Of(view.StatusInput{ID: hubv1.ObjectOf(b), Binding: b, Members: known, Now: time.Now()}).Write(&text, time.Now())
	_, table, found := strings.Cut(text.String(), "CLUSTER ")
	lines := strings.Split("CLUSTER "+table, "\n")
	column := strings.Index(lines[0], "HEALTH")
	if !found || column < 0 || len(lines) < 2 || len(lines[1]) < column {
		t.Fatalf("no health is printed:\n%s", text.String())
	}
	health, _, _ := strings.Cut(lines[1][column:], " ")
	return health
}

// copySamples returns the names of the hanse_copies_* metrics that count the binding's only copy. The names have no
// prefix, and are separated by spaces.
func copySamples(t *testing.T, known *members, b hubv1.BindingObject) string {
	t.Helper()
	one := NewCopies(fleet.New(known))
	one.BindingChanged(t.Context(), changes.Binding{After: b})
	var names []string
	for _, s := range nonZero(series(t, one, "copies_out_of_sync", "copies_failing", "copies_unknown")) {
		name, _, _ := strings.Cut(strings.TrimPrefix(s, "copies_"), " ")
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// samplesOf returns the metrics that a wanted copy must have, given the state on the console and the health in
// hansectl. docs/metrics.md says where the metrics and the health differ.
func samplesOf(cell rollup.CopyState, health string, row *hubv1.ClusterRow, away bool) string {
	var names []string
	held := row != nil && (row.Reason == hubv1.ReasonSuspended || row.Reason == hubv1.ReasonPaused)
	unwritten := row == nil || row.Applied != metav1.ConditionTrue || row.Reason == hubv1.ReasonContested
	if away {
		return "unknown"
	}
	if health == string(hubv1.HealthDegraded) || cell == rollup.CopyDegraded {
		names = append(names, "failing")
	}
	switch {
	case cell == rollup.CopyProgressing && !unwritten && row.Reason == hubv1.ReasonPending:
		names = append(names, "unknown")
	case unwritten && (!held || row.Applied == metav1.ConditionUnknown):
		names = append(names, "out_of_sync")
	}
	return strings.Join(names, " ")
}

func TestPagesAndHansectlAndMetricsAgreeOnRandomStates(t *testing.T) {
	t.Parallel()
	seen := map[rollup.CopyState]int{}
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		known, silent := &members{}, map[string]bool{}
		for i := range 1 + random.IntN(6) {
			m, unknown := anyMember(random, fmt.Sprintf("member-%d", i))
			known.items, silent[m.Name] = append(known.items, m), unknown
		}
		for _, c := range view.Clusters(known.items, nil, nil, time.Now()).Clusters {
			if c.Live == silent[c.Name] {
				t.Fatalf("seed %d: %s is live: %t", seed, c.Name, c.Live)
			}
		}
		all, matrix := NewCopies(fleet.New(known)), view.NewMatrixGatherer(known.items, view.MatrixQuery{}, time.Now())
		var shown view.CopyCounts
		sums := map[string]int{}
		for i := range 1 + random.IntN(5) {
			b := placedOn("Widget", nil)
			b.Spec.ObjectRef.Name = fmt.Sprintf("w-%d", i)
			for _, m := range known.items {
				one := placedOn("Widget", []hubv1.BindingTarget{{
					Name: m.Name, State: anyOf(random, hubv1.TargetPresent, hubv1.TargetPresent, hubv1.TargetPresent, hubv1.TargetAbsent, hubv1.TargetEvicting),
				}})
				if random.IntN(6) > 0 {
					one.Status.Clusters = []hubv1.ClusterRow{anyRow(random, m.Name)}
				}
				b.Spec.Clusters, b.Status.Clusters = append(b.Spec.Clusters, one.Spec.Clusters...), append(b.Status.Clusters, one.Status.Clusters...)
				state, names := compareCopy(t, seed, known, one, silent[m.Name])
				shown[state]++
				seen[state]++
				for _, name := range strings.Fields(names) {
					sums[fmt.Sprintf("copies_%s %s Widget", name, m.Name)]++
				}
			}
			all.BindingChanged(t.Context(), changes.Binding{After: b})
			matrix.Add(b)
		}
		if diff := cmp.Diff(shown, matrix.Matrix().Copies); diff != "" {
			t.Fatalf("seed %d: the page's counts (-copies +page):\n%s", seed, diff)
		}
		counted := map[string]int{}
		for _, s := range nonZero(series(t, all, "copies_out_of_sync", "copies_failing", "copies_unknown")) {
			name, n, _ := strings.Cut(s, ": ")
			counted[name], _ = strconv.Atoi(n)
		}
		if diff := cmp.Diff(sums, counted); diff != "" {
			t.Fatalf("seed %d: the samples (-copies +metrics):\n%s", seed, diff)
		}
	}
	for _, state := range rollup.CopyStates() {
		if seen[state] == 0 {
			t.Errorf("no copy is %s", state)
		}
	}
}

// compareCopy compares the console, hansectl and the metrics for the only copy of a binding. It returns the copy's
// state on the console and the metrics with the value 1.
func compareCopy(t *testing.T, seed uint64, known *members, b *hubv1.ResourceBinding, silent bool) (rollup.CopyState, string) {
	t.Helper()
	target := b.Spec.Clusters[0]
	row := b.Status.Row(target.Name)
	away := silent || row != nil && row.LastObservedTime != nil
	gathered := view.NewMatrixGatherer(known.items, view.MatrixQuery{}, time.Now())
	gathered.Add(b)
	cell := gathered.Matrix().Objects[0].Cells[0].State
	health := printed(t, b, known.items)
	samples := copySamples(t, known, b)
	where := fmt.Sprintf("seed %d, target %s, silent %t, row %+v: the page says %s, hansectl %q, the metrics %q", seed, target.State, silent, row, cell, health, samples)
	if away != (cell == rollup.CopyUnknown) && (away || row.Applied != metav1.ConditionUnknown && row.Health != "" && row.Health != hubv1.HealthUnknown) {
		t.Fatalf("%s; want Unknown if the cluster is away", where)
	}
	if away && health != "-" && health != "Unknown" && !strings.HasSuffix(health, "?") || cell == rollup.CopyHealthy && health != string(hubv1.HealthHealthy) {
		t.Fatalf("%s; hansectl differs from the page", where)
	}
	if want := samplesOf(cell, health, row, away); target.State == hubv1.TargetPresent && samples != want {
		t.Fatalf("%s; want %q", where, want)
	}
	if row != nil && !silent {
		want := cell.String()
		if row.Reason == hubv1.ReasonHubIsOlder {
			want = row.Reason
		}
		if got := count(b.Status.Clusters, b.Spec.Clusters); got[want] != 1 {
			t.Fatalf("%s; hanse_binding_clusters counts it as %v", where, got)
		}
	}
	return cell, samples
}

// The metric counts the objects that are not complete; hansectl and the console list them.
func TestPagesAndHansectlAndMetricsAgreeOnTheRolloutsOfRandomFleets(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 7))
		p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "all"}}
		p.Spec.Rollout = &hubv1.RolloutPolicy{Waves: []hubv1.RolloutWave{{Name: "one"}, {Name: "two"}}}
		counted, want := NewCopies(fleet.New(&members{})), map[hubv1.RolloutPhase]int{}
		var objects []hubv1.BindingObject
		for i := range random.IntN(12) {
			b := placedOn("Widget", nil)
			b.Spec.ObjectRef.Name = fmt.Sprintf("w-%d", i)
			if random.IntN(6) > 0 {
				b.Spec.Rollout = &hubv1.BindingRollout{
					Revision: 2, Newest: 2, Phase: anyOf(random, rolloutStates...), Wave: anyOf(random, "", "one", "two"),
				}
			}
			counted.BindingChanged(t.Context(), changes.Binding{After: b})
			if random.IntN(8) == 0 {
				before := b.DeepCopy()
				b.DeletionTimestamp = &copiesSince
				counted.BindingChanged(t.Context(), changes.Binding{Before: before, After: b})
			} else if b.Spec.Rollout != nil {
				want[b.Spec.Rollout.Phase]++
			}
			objects = append(objects, b)
		}
		metric := map[hubv1.RolloutPhase]int{}
		for _, s := range nonZero(series(t, counted, "rollouts")) {
			phase, n, _ := strings.Cut(strings.TrimPrefix(s, "rollouts "), ": ")
			metric[hubv1.RolloutPhase(phase)], _ = strconv.Atoi(n)
		}
		if diff := cmp.Diff(want, metric); diff != "" {
			t.Fatalf("seed %d: the metric (-want +got):\n%s", seed, diff)
		}
		delete(want, hubv1.RolloutComplete)
		listed, timeline := view.PlacementRolloutOf(p, objects), view.RolloutTimelineOf(p, objects, nil, time.Now())
		for name, list := range map[string][]view.RolloutObject{"hansectl": listed.Objects, "the console": timeline.Objects} {
			shown := map[hubv1.RolloutPhase]int{}
			for _, o := range list {
				if o.Rollout != nil {
					shown[o.Rollout.Phase]++
				}
			}
			if diff := cmp.Diff(want, shown); diff != "" {
				t.Fatalf("seed %d: %s (-metric +shown):\n%s", seed, name, diff)
			}
		}
		for _, wave := range timeline.Waves {
			if phase := hubv1.RolloutPhase(wave.State); len(wave.Objects) > 0 && metric[phase] == 0 {
				t.Fatalf("seed %d: wave %s is %s, and the metric has none", seed, wave.Name, phase)
			}
		}
	}
}
