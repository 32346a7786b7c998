package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestEachStepOfARolloutIsOneEvent(t *testing.T) {
	tests := map[string]struct {
		story func(s *story)
		want  []string
	}{
		"the first revision is no news": {func(*story) {}, nil},
		"each wave, and the end": {
			func(s *story) {
				s.change("t2").step().step().healthy("a").step().healthy("b", "c").step().step().healthy("d", "e").step().step()
			},
			[]string{
				"Normal WaveStarted: wave canary has begun: its clusters get revision 2",
				"Normal WaveStarted: wave asia has begun: its clusters get revision 2",
				"Normal WaveStarted: wave rest has begun: its clusters get revision 2",
				"Normal RolloutComplete: revision 2 has passed all waves",
			},
		},
		"a second change of the same wave is another story": {
			func(s *story) { s.change("t2").step().later(time.Minute).change("t3").step().step() },
			[]string{
				"Normal WaveStarted: wave canary has begun: its clusters get revision 2",
				"Normal WaveStarted: wave canary has begun: its clusters get revision 3",
			},
		},
		"an approval": {
			func(s *story) {
				s.in.Policy.Waves[1].Approval = hubv1.ApprovalManual
				s.change("t2").step().healthy("a").step().step().verb(hubv1.RolloutApproveAnnotation, "asia@"+s.at()).step()
			},
			[]string{
				"Normal WaveStarted: wave canary has begun: its clusters get revision 2",
				"Warning WaitingForApproval: revision 2: wave asia waits for approval: hansectl rollout approve web asia -n shop",
				"Normal WaveStarted: wave asia has begun: its clusters get revision 2",
			},
		},
		"a cordoned cluster": {
			func(s *story) {
				s.target("a").Kept = cordoned
				s.change("t2").step().step()
			},
			[]string{
				"Warning WaitingForClusters: revision 2: wave canary waits for a, which keeps revision 1 and is cordoned: hansectl uncordon it; " +
					"to leave the cluster out, use hansectl rollout skip web a -n shop",
			},
		},
		"a failure": {
			func(s *story) {
				s.change("t2").step().report(hubv1.HealthDegraded, "a").later(time.Minute).step().step()
			},
			[]string{
				"Normal WaveStarted: wave canary has begun: its clusters get revision 2",
				"Warning RolloutFailed: revision 2 failed: a failed: Degraded: the report of a; " +
					"change the object, or use hansectl rollout undo widget cart -n shop, or hansectl rollout promote web --full --reason TEXT -n shop",
			},
		},
		"a rollback": {
			func(s *story) {
				s.in.Policy.OnFailure = hubv1.FailureRollback
				s.change("t2").step().report(hubv1.HealthDegraded, "a").later(time.Minute).step().step().healthy("a").step().step()
			},
			[]string{
				"Normal WaveStarted: wave canary has begun: its clusters get revision 2",
				"Warning RolloutFailed: revision 2 failed: the clusters return to revision 1",
				"Warning RolledBack: all clusters returned to revision 1: revision 2 failed; " +
					"the hub object still has revision 2: correct it in Git, or the next change starts from there",
			},
		},
		"an undo": {
			func(s *story) {
				s.change("t2").step().healthy("a").step().healthy("b", "c").step().healthy("d", "e").step()
				s.news = nil
				s.undo("1@"+s.at()).step().healthy("a").step().healthy("b", "c").step().healthy("d", "e").step().step()
			},
			[]string{
				"Warning RolledBack: all clusters returned to revision 1, as annotation hanse.dev/rollout-undo asks; " +
					"the hub object still has revision 2: correct it in Git, or the next change starts from there",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := running(t)
			tc.story(s)
			if diff := cmp.Diff(tc.want, s.news); diff != "" {
				t.Errorf("news (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEachStepOfAPlacementIsOneEvent(t *testing.T) {
	began := metav1.NewTime(noon)
	request := hubv1.RolloutRequest{Wave: "asia", Time: began, By: "kim"}
	refused := hubv1.RolloutRequest{Wave: "rest", Time: began, Refused: true}
	complete := hubv1.PlacementRollout{Phase: hubv1.RolloutComplete, Objects: hubv1.RolloutObjects{Passed: 2}}
	moving := hubv1.PlacementRollout{
		Phase: hubv1.RolloutProgressing, Wave: "canary", Object: "Widget shop/cart", Revision: 2, WaveBegan: &began, Objects: hubv1.RolloutObjects{Moving: 2},
	}
	other := moving
	other.Object, other.Revision = "Widget shop/web", 7
	newer := moving
	newer.Revision = 3
	waiting := hubv1.PlacementRollout{
		Phase: hubv1.RolloutWaitingForApproval, Wave: "asia", Object: "Widget shop/cart", Revision: 2, Message: "Widget shop/cart: wave asia waits for approval: hansectl",
	}
	approved := waiting
	approved.Approvals = []hubv1.RolloutRequest{request, refused}
	stopped := hubv1.PlacementRollout{Phase: hubv1.RolloutFailed, Wave: "asia", Message: "Widget shop/cart: b failed", Stopped: &hubv1.RolloutStop{Object: "Widget shop/cart", Revision: 2}}
	back := hubv1.PlacementRollout{Phase: hubv1.RolloutRolledBack, Message: "Widget shop/cart: all clusters returned to revision 1"}
	first := hubv1.PlacementRollout{Phase: hubv1.RolloutProgressing, Object: "Widget shop/cart", Revision: 1}
	normal, warning := corev1.EventTypeNormal, corev1.EventTypeWarning
	begun := Event{normal, hubv1.ReasonWaveStarted, "RollOut/canary/2", "wave canary has begun: Widget shop/cart goes to revision 2; objects that change: 2"}
	tests := map[string]struct {
		statuses []*hubv1.PlacementRollout
		want     []Event
	}{
		"a placement without a change":               {[]*hubv1.PlacementRollout{nil, &complete, &complete, nil}, nil},
		"the first revision of an object":            {[]*hubv1.PlacementRollout{nil, &first, &complete}, nil},
		"a wave with several objects is told once":   {[]*hubv1.PlacementRollout{&complete, &moving, &other, &moving}, []Event{begun}},
		"a second change of the same object is told": {[]*hubv1.PlacementRollout{&moving, &newer}, []Event{{normal, hubv1.ReasonWaveStarted, "RollOut/canary/3", "wave canary has begun: Widget shop/cart goes to revision 3; objects that change: 2"}}},
		"a restart of the hub is not told":           {[]*hubv1.PlacementRollout{&approved, &approved}, nil},
		"a wave that waits, and its approval by kim": {
			[]*hubv1.PlacementRollout{&moving, &waiting, &waiting, &approved, &complete},
			[]Event{
				{warning, hubv1.ReasonWaitingForApproval, "RollOut/asia/2", "Widget shop/cart: wave asia waits for approval: hansectl"},
				{normal, hubv1.ReasonRolloutApproved, "Approve/asia", "wave asia is approved by kim for the changes that began until 2026-11-26T12:00:00Z"},
				{normal, hubv1.ReasonRolloutComplete, "RollOut//0", "objects with their newest revision on all clusters: 2"},
			},
		},
		"a failure and a rollback": {
			[]*hubv1.PlacementRollout{&moving, &stopped, &stopped, &back, &back},
			[]Event{
				{warning, hubv1.ReasonRolloutFailed, "RollOut/asia/0", "revision 2 failed, which stops the rollouts of the placement: Widget shop/cart: b failed"},
				{warning, hubv1.ReasonRolledBack, "RollOut//0", "Widget shop/cart: all clusters returned to revision 1"},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got []Event
			for i := range tc.statuses[1:] {
				got = append(got, PlacementNews(tc.statuses[i], tc.statuses[i+1])...)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}
