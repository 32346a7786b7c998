package view

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// stagedBinding returns the binding of an object that is in a wave. rows are the rows of the clusters a and b.
func stagedBinding(name, wave string, phase hubv1.RolloutPhase, since time.Time, rows ...hubv1.ClusterRow) hubv1.BindingObject {
	b := hubv1.NewBinding(hubv1.ObjectIdentity{Kind: "ConfigMap", Namespace: "shop", Name: name}.BindingKey())
	b.BindingSpec().ObjectRef = hubv1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: name}
	b.BindingSpec().Rollout = &hubv1.BindingRollout{Revision: 2, Newest: 2, Wave: wave, Phase: phase, Since: metav1.NewTime(since), Began: metav1.NewTime(since)}
	for _, row := range rows {
		b.BindingSpec().Clusters = append(b.BindingSpec().Clusters, hubv1.BindingTarget{Name: row.Name, State: hubv1.TargetPresent})
	}
	b.BindingStatus().Clusters = rows
	return b
}

func TestATimelineShowsTheStateOfEachWave(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	stamp := metav1.NewTime(now)
	passing := func(name string) hubv1.ClusterRow {
		return hubv1.ClusterRow{Name: name, Revision: 2, Applied: metav1.ConditionTrue, Health: hubv1.HealthHealthy, PassingSince: &stamp}
	}
	old := func(name string, health hubv1.Health) hubv1.ClusterRow {
		return hubv1.ClusterRow{Name: name, Revision: 1, Applied: metav1.ConditionTrue, Health: health}
	}
	stale := func(row hubv1.ClusterRow) hubv1.ClusterRow {
		row.LastObservedTime = &stamp
		return row
	}
	changing := hubv1.ClusterRow{Name: "b", Revision: 2, Applied: metav1.ConditionTrue, Health: hubv1.HealthProgressing}
	type wave struct {
		State    WaveState
		Clusters []WaveClusterState
		Objects  int
		Approved bool
	}
	const waiting, moving, failed = hubv1.RolloutWaitingForApproval, hubv1.RolloutProgressing, hubv1.RolloutFailed
	for name, tc := range map[string]struct {
		objects  []hubv1.BindingObject
		approved []hubv1.RolloutRequest
		away     string // cluster that does not answer
		overdue  string // cluster that the hub has not observed for long, although its condition is Ready
		want     []wave
	}{
		"without a change, all waves have passed": {
			objects: []hubv1.BindingObject{stagedBinding("x", "", hubv1.RolloutComplete, now, passing("a"), passing("b"))},
			want:    []wave{{State: WavePassed, Clusters: []WaveClusterState{WaveClusterPassing}}, {State: WavePassed, Clusters: []WaveClusterState{WaveClusterPassing}}},
		},
		"an object in the first wave leaves the second one pending": {
			objects: []hubv1.BindingObject{stagedBinding("x", "one", moving, now, old("a", hubv1.HealthHealthy), old("b", hubv1.HealthHealthy))},
			want:    []wave{{State: WaveState(moving), Clusters: []WaveClusterState{WaveClusterWaiting}, Objects: 1}, {State: WavePending, Clusters: []WaveClusterState{WaveClusterWaiting}}},
		},
		"a failure is the state of its wave": {
			objects: []hubv1.BindingObject{stagedBinding("x", "one", moving, now, passing("a")), stagedBinding("y", "one", failed, now, old("a", hubv1.HealthDegraded))},
			want:    []wave{{State: WaveState(failed), Clusters: []WaveClusterState{WaveClusterDegraded}, Objects: 2}, {State: WavePending}},
		},
		"an approval of all changes counts": {
			objects:  []hubv1.BindingObject{stagedBinding("x", "two", waiting, now, passing("a"), changing)},
			approved: []hubv1.RolloutRequest{{Wave: "two", Time: metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))}},
			want:     []wave{{State: WavePassed, Clusters: []WaveClusterState{WaveClusterPassing}}, {State: WaveState(waiting), Clusters: []WaveClusterState{WaveClusterChanging}, Objects: 1, Approved: true}},
		},
		"an approval of an earlier change does not count": {
			objects:  []hubv1.BindingObject{stagedBinding("x", "two", waiting, now.Add(time.Second), passing("a"), changing)},
			approved: []hubv1.RolloutRequest{{Wave: "two", Time: metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))}},
			want:     []wave{{State: WavePassed, Clusters: []WaveClusterState{WaveClusterPassing}}, {State: WaveState(waiting), Clusters: []WaveClusterState{WaveClusterChanging}, Objects: 1}},
		},
		"a cluster that does not answer is unknown": {
			objects: []hubv1.BindingObject{stagedBinding("x", "", hubv1.RolloutComplete, now, passing("a"), passing("b"))}, away: "a",
			want: []wave{{State: WavePassed, Clusters: []WaveClusterState{WaveClusterUnknown}}, {State: WavePassed, Clusters: []WaveClusterState{WaveClusterPassing}}},
		},
		"a cluster that the hub does not observe any more is unknown": {
			objects: []hubv1.BindingObject{stagedBinding("x", "", hubv1.RolloutComplete, now, passing("a"), passing("b"))}, overdue: "a",
			want: []wave{{State: WavePassed, Clusters: []WaveClusterState{WaveClusterUnknown}}, {State: WavePassed, Clusters: []WaveClusterState{WaveClusterPassing}}},
		},
		"a copy that is as of an earlier time is unknown": {
			objects: []hubv1.BindingObject{stagedBinding("x", "", hubv1.RolloutComplete, now, stale(passing("a")), passing("b"))},
			want:    []wave{{State: WavePassed, Clusters: []WaveClusterState{WaveClusterUnknown}}, {State: WavePassed, Clusters: []WaveClusterState{WaveClusterPassing}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
			p.Status.Rollout = &hubv1.PlacementRollout{Approvals: tc.approved}
			p.Spec.Rollout = &hubv1.RolloutPolicy{Waves: []hubv1.RolloutWave{{Name: "one", Clusters: &hubv1.RuleClusters{Names: []string{"a"}}}, {Name: "two", Approval: hubv1.ApprovalManual}}}
			var members []hubv1.MemberCluster
			for _, name := range []string{"a", "b"} {
				m := hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
				if name != tc.away {
					m.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: metav1.ConditionTrue}}
				}
				if name == tc.overdue {
					m.Status.LastObservedTime = ptr.To(metav1.NewTime(now.Add(-time.Hour)))
				}
				members = append(members, m)
			}
			var got []wave
			for _, w := range RolloutTimelineOf(p, tc.objects, members, now).Waves {
				one := wave{State: w.State, Objects: len(w.Objects), Approved: w.Approved}
				for _, c := range w.OnClusters {
					one.Clusters = append(one.Clusters, c.State)
				}
				got = append(got, one)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
