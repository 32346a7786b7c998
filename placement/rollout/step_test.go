package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestBaseline(t *testing.T) {
	for name, story := range map[string]func(s *story){
		"all clusters get the first revision at once, and it passes when all are healthy": func(s *story) {
			s.step().want("Progressing: a=1 b=1 c=1 d=1 e=1")
			s.healthy("a", "b", "c", "d").step().want("Progressing: a=1 b=1 c=1 d=1 e=1")
			if s.last.Rollout.Passed != 0 || s.last.Moved != nil || !s.last.Progress.Done {
				t.Errorf("before it passes: %+v, moved %v, %+v", s.last.Rollout, s.last.Moved, s.last.Progress)
			}
			s.healthy("e").step().want("Complete: a=1 b=1 c=1 d=1 e=1")
			if s.last.Rollout.Passed != 1 || !s.last.Revisions[0].Passed {
				t.Errorf("after it has passed: %+v, %+v", s.last.Rollout, s.last.Revisions)
			}
		},
		"suspended clusters and clusters that do not answer do not keep the first revision from passing": func(s *story) {
			s.target("a").Kept, s.target("b").Row.Away = cordoned, true
			s.step().healthy("c", "d", "e").step().want("Complete: a=1 b=1 c=1 d=1 e=1")
		},
		"a cluster that joins gets the first revision": func(s *story) {
			s.step().join("f", 2).step().want("Progressing: a=1 b=1 c=1 d=1 e=1 f=1")
		},
		"a change before the first revision has passed goes by wave": func(s *story) {
			s.step().change("t2").step().want("Progressing canary: a=2 b=1 c=1 d=1 e=1")
		},
		"without clusters the first revision has passed": func(s *story) {
			s.in.Targets = nil
			s.step().want("Complete:")
		},
	} {
		t.Run(name, func(t *testing.T) { story(newStory(t)) })
	}
}

func TestWaves(t *testing.T) {
	tell(t, map[string]func(s *story){
		"a change goes wave by wave": func(s *story) {
			s.change("t2").step().want("Progressing canary: a=2 b=1 c=1 d=1 e=1")
			s.step().want("Progressing canary: a=2 b=1 c=1 d=1 e=1")
			s.healthy("a").step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1")
			s.healthy("b").step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1")
			s.healthy("c").step().want("Progressing rest: a=2 b=2 c=2 d=2 e=2")
			s.healthy("d", "e").step().want("Complete: a=2 b=2 c=2 d=2 e=2").says("")
			want := hubv1.BindingRollout{Revision: 2, Newest: 2, Passed: 2, Phase: hubv1.RolloutComplete, Since: s.last.Rollout.Since, Began: s.last.Rollout.Began}
			if diff := cmp.Diff(want, s.last.Rollout); diff != "" {
				t.Error(diff)
			}
		},
		"a new generation with the same content is no change": func(s *story) {
			s.in.Live.Generation = 7
			s.step().want("Complete: a=1 b=1 c=1 d=1 e=1")
			if got := s.last.Revisions[0].Generation; got != 7 {
				t.Errorf("generation %d", got)
			}
		},
		"other override rules are a change": func(s *story) {
			s.in.Live.Policies = "p2"
			s.step().want("Progressing canary: a=2 b=1 c=1 d=1 e=1")
		},
		"maxConcurrent bounds the clusters that change at a time": func(s *story) {
			s.concurrent("1").change("t2").step().healthy("a").step().want("Progressing asia: a=2 b=2 c=1 d=1 e=1")
			s.step().want("Progressing asia: a=2 b=2 c=1 d=1 e=1")
			s.healthy("b").step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1")
		},
		"a percentage is rounded up": func(s *story) {
			s.concurrent("1%").change("t2").step().healthy("a").step().want("Progressing asia: a=2 b=2 c=1 d=1 e=1")
			s.join("cc", 1).concurrent("34%").step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1 cc=1")
		},
		"a second change starts at the first wave, and clusters keep the older one": func(s *story) {
			s.change("t2").step().healthy("a").step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1")
			s.later(time.Minute).change("t3").step().want("Progressing canary: a=3 b=2 c=2 d=1 e=1")
			s.healthy("a", "b", "c").step().want("Progressing asia: a=3 b=3 c=3 d=1 e=1")
		},
		"a revision that another one replaces before it has passed is superseded": func(s *story) {
			s.change("t2").step().healthy("a").step().change("t3").step().wantSuperseded("2 by 3")
			s.step().wantSuperseded("2 by 3")
			s.all().want("Complete: a=3 b=3 c=3 d=3 e=3").wantSuperseded("2 by 3")
		},
		"a revision that has passed, has failed or was undone is not superseded": func(s *story) {
			s.change("t2").all().change("t3").step().report(hubv1.HealthDegraded, "a").later(time.Minute).step().want("Failed canary: a=3 b=2 c=2 d=2 e=2")
			s.change("t4").step().undo("2").step().change("t5").step().want("Progressing canary: a=5 b=2 c=2 d=2 e=2").wantSuperseded("")
		},
		"a revision that a user asks for again is no longer superseded": func(s *story) {
			s.change("t2").step().change("t3").step().undo("2").step().want("Progressing canary: a=2 b=1 c=1 d=1 e=1").wantSuperseded("")
		},
		"a superseded revision whose content comes back begins anew": func(s *story) {
			s.change("t2").step().change("t3").step().change("t2").step().want("Progressing canary: a=4 b=1 c=1 d=1 e=1").wantSuperseded("3 by 4")
		},
		"a wave without clusters has passed": func(s *story) {
			s.leave("b").leave("c").change("t2").step().healthy("a").step().want("Progressing rest: a=2 d=2 e=2")
		},
		"a wave soaks from the time at which its last cluster became healthy": func(s *story) {
			s.in.Policy.Waves[0].SoakSeconds = 600
			s.join("aa", 0).step().healthy("aa").change("t2").step().healthy("a").later(time.Minute).healthy("aa").step()
			s.want("Soaking canary: a=2 b=1 c=1 d=1 e=1 aa=2").says("wave canary must stay healthy for 600 s").again(10 * time.Minute)
			s.later(599 * time.Second).step().want("Soaking canary: a=2 b=1 c=1 d=1 e=1 aa=2")
			s.later(time.Second).step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1 aa=2")
		},
		"a relapse restarts the soak": func(s *story) {
			s.in.Policy.Waves[0].SoakSeconds = 600
			s.change("t2").step().healthy("a").step().later(9*time.Minute).report(hubv1.HealthProgressing, "a").step().want("Progressing canary: a=2 b=1 c=1 d=1 e=1")
			s.later(time.Minute).healthy("a").step().want("Soaking canary: a=2 b=1 c=1 d=1 e=1").again(10 * time.Minute)
		},
		"the last wave soaks, too": func(s *story) {
			s.in.Policy.Waves[2].SoakSeconds = 60
			s.change("t2").step().healthy("a").step().healthy("b", "c").step().healthy("d", "e").step().want("Soaking rest: a=2 b=2 c=2 d=2 e=2")
			s.later(time.Minute).step().want("Complete: a=2 b=2 c=2 d=2 e=2")
		},
		"a wave that the policy no longer has means a new start": func(s *story) {
			s.change("t2").step().healthy("a").step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1")
			s.in.Policy.Waves[1].Name = "europe"
			s.step().want("Progressing europe: a=2 b=2 c=2 d=1 e=1")
		},
		"a wave that has passed is not repeated when its cluster relapses": func(s *story) {
			s.change("t2").step().healthy("a").step().report(hubv1.HealthProgressing, "a").healthy("b", "c").step()
			s.want("Progressing rest: a=2 b=2 c=2 d=2 e=2")
		},
		"a revert soaks and goes by wave, and clusters that held the content do not move": func(s *story) {
			s.in.Policy.Waves[0].SoakSeconds = 600
			s.change("t2").step().healthy("a").step().change("t1").step().want("Progressing canary: a=3 b=3 c=3 d=3 e=3")
			if diff := cmp.Diff([]string{"a"}, s.last.Moved); diff != "" {
				t.Error("clusters that held the content did not move", diff)
			}
			s.healthy("a", "b", "c", "d", "e").step().want("Soaking canary: a=3 b=3 c=3 d=3 e=3")
			s.later(10 * time.Minute).step().want("Complete: a=3 b=3 c=3 d=3 e=3")
			numbers := []int64{}
			for _, r := range s.last.Revisions {
				numbers = append(numbers, r.Number)
			}
			if diff := cmp.Diff([]int64{2, 3}, numbers); diff != "" || s.last.Rollout.Passed != 3 {
				t.Error(diff, s.last.Rollout)
			}
		},
		"without waves all clusters are one wave": func(s *story) {
			s.in.Policy.Waves = nil
			s.change("t2").step().want("Progressing all: a=2 b=2 c=2 d=2 e=2")
		},
	})
}

func TestSinceMovesOnlyWithWaveOrPhase(t *testing.T) {
	s := running(t).change("t2").step()
	began := s.last.Rollout.Since
	s.later(time.Minute).step()
	if !s.last.Rollout.Since.Equal(&began) {
		t.Error("since moved without a change of wave or phase")
	}
	s.healthy("a").step()
	if s.last.Rollout.Since.Equal(&began) || !s.last.Rollout.Began.Equal(&began) {
		t.Error("a new wave changes since alone", s.last.Rollout)
	}
}

func TestHolds(t *testing.T) {
	tell(t, map[string]func(s *story){
		"a manual wave waits for an approval that came after the change": func(s *story) {
			s.in.Policy.Waves[1].Approval = hubv1.ApprovalManual
			s.verb(hubv1.RolloutApproveAnnotation, "asia@"+s.at()).later(time.Second)
			s.change("t2").step().healthy("a").step().want("WaitingForApproval asia: a=2 b=1 c=1 d=1 e=1")
			s.says("wave asia waits for approval: hansectl rollout approve web asia -n shop")
			s.verb(hubv1.RolloutApproveAnnotation, "rest@"+s.at()).step().want("WaitingForApproval asia: a=2 b=1 c=1 d=1 e=1")
			s.verb(hubv1.RolloutApproveAnnotation, "asia@"+s.at()).step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1")
		},
		"a pause lets clusters that have begun go on and starts no others": func(s *story) {
			s.change("t2").step().verb(hubv1.RolloutPauseAnnotation, "true").step().want("Paused canary: a=2 b=1 c=1 d=1 e=1")
			s.healthy("a").step().want("Paused asia: a=2 b=1 c=1 d=1 e=1").says("a user has paused the rollouts: hansectl rollout resume web -n shop")
			s.verb(hubv1.RolloutPauseAnnotation, "false").step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1")
		},
		"a pause does not keep a change from ending": func(s *story) {
			s.change("t2").step().healthy("a").step().healthy("b", "c").step().verb(hubv1.RolloutPauseAnnotation, "true")
			s.healthy("d", "e").step().want("Complete: a=2 b=2 c=2 d=2 e=2")
		},
		"no cluster begins outside of the windows, and the change goes on when one opens": func(s *story) {
			s.in.Policy.Windows = []hubv1.RolloutWindow{{Schedule: "0 14 * * *", DurationSeconds: 3600}}
			s.change("t2").step().want("WaitingForWindow canary: a=1 b=1 c=1 d=1 e=1").says("wave canary waits for the window that opens at 2026-11-26T14:00:00Z").again(time.Hour - time.Second)
			s.later(time.Hour - time.Second).step().want("Progressing canary: a=2 b=1 c=1 d=1 e=1")
			s.later(61 * time.Minute).step()
			s.healthy("a").step().want("WaitingForWindow asia: a=2 b=1 c=1 d=1 e=1")
		},
		"a window that closes in mid-wave lets the clusters that move finish": func(s *story) {
			s.in.Policy.Windows = []hubv1.RolloutWindow{{Schedule: "0 13 * * *", DurationSeconds: 600}}
			s.concurrent("1").change("t2").step().healthy("a").step().want("Progressing asia: a=2 b=2 c=1 d=1 e=1")
			s.later(11 * time.Minute).step().want("Progressing asia: a=2 b=2 c=1 d=1 e=1")
			s.healthy("b").step().want("WaitingForWindow asia: a=2 b=2 c=1 d=1 e=1")
		},
		"a window that cannot be read never opens": func(s *story) {
			s.in.Policy.Windows = []hubv1.RolloutWindow{{Schedule: "every day", DurationSeconds: 600}}
			s.change("t2").step().want("WaitingForWindow canary: a=1 b=1 c=1 d=1 e=1").again(0)
			s.says("wave canary waits for a window, and none ever opens: correct the windows of the placement")
		},
		"a failed object stops the others": func(s *story) {
			s.in.Peers = NewPeers([]Progress{{Object: "Widget shop/cart", Failed: true, Revision: 4}}).Without("Widget shop/web")
			s.change("t2").step().want("WaitingForOthers canary: a=1 b=1 c=1 d=1 e=1")
			s.says("revision 4 of Widget shop/cart failed, which stops the placement: change that object or use hansectl rollout undo widget cart -n shop")
		},
		"an object waits for the others that changed with it before a second wave": func(s *story) {
			s.in.Policy.SettleSeconds = ptr.To[int32](5)
			s.change("t2").step().want("Progressing canary: a=2 b=1 c=1 d=1 e=1")
			s.healthy("a").step().want("WaitingForOthers asia: a=2 b=1 c=1 d=1 e=1").again(4 * time.Second)
			s.says("wave asia waits until all objects that changed together have passed wave canary")
			other := Progress{Object: "Widget shop/cart", Began: s.last.Rollout.Began.Add(5 * time.Second)}
			s.later(6 * time.Second)
			s.in.Peers = NewPeers([]Progress{other})
			s.step().want("WaitingForOthers asia: a=2 b=1 c=1 d=1 e=1").again(0)
			other.Passed = 1
			s.in.Peers = NewPeers([]Progress{other})
			s.step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1")
		},
		"an object does not wait for a later change of another": func(s *story) {
			s.change("t2").step().healthy("a")
			s.in.Peers = NewPeers([]Progress{{Object: "Widget shop/cart", Began: s.in.Now.Add(time.Second)}})
			s.step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1")
		},
		"an object that has entered a wave goes on when another object begins the change anew": func(s *story) {
			s.concurrent("1").change("t2").step().healthy("a").step().healthy("b")
			s.in.Peers = NewPeers([]Progress{{Object: "Widget shop/cart", Began: s.last.Rollout.Began.Time}})
			s.step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1")
		},
		"an object that is not moving waits while as many as may be are moving": func(s *story) {
			s.in.Policy.MaxObjectsMoving = ptr.To[int32](1)
			s.in.Peers = NewPeers([]Progress{{Object: "Widget shop/cart", Moving: true, Done: true}})
			s.change("t2").step().want("WaitingForOthers canary: a=1 b=1 c=1 d=1 e=1").says("wave canary waits until fewer than 1 objects are moving")
			s.in.Peers = NewPeers(nil)
			s.step().want("Progressing canary: a=2 b=1 c=1 d=1 e=1")
			if !s.last.Progress.Moving {
				t.Error("an object that changes is moving")
			}
		},
		"an object that is moving goes on while as many as may be are moving": func(s *story) {
			s.in.Policy.MaxObjectsMoving = ptr.To[int32](1)
			s.join("cc", 1).step().healthy("cc").step().concurrent("2").change("t2").step().healthy("a").step()
			s.in.Peers = NewPeers([]Progress{{Object: "Widget shop/cart", Moving: true, Done: true}})
			s.healthy("b").step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1 cc=2")
		},
	})
}

func TestClustersThatDoNotCount(t *testing.T) {
	tell(t, map[string]func(s *story){
		"a cordoned cluster is waited for without end, by name": func(s *story) {
			s.target("a").Kept = cordoned
			waits := "WaitingForClusters canary: a=1 b=1 c=1 d=1 e=1"
			s.change("t2").step().want(waits).later(1000 * time.Hour).step().want(waits).again(0)
			s.says("wave canary waits for a, which keeps revision 1 and is cordoned: hansectl uncordon it; to leave the cluster out, use hansectl rollout skip web a -n shop")
			s.target("a").Kept = ""
			s.step().want("Progressing canary: a=2 b=1 c=1 d=1 e=1")
		},
		"the other clusters of the wave change, and the wave does not pass without the cordoned one": func(s *story) {
			s.target("b").Kept = cordoned
			s.change("t2").step().healthy("a").step().want("Progressing asia: a=2 b=1 c=2 d=1 e=1")
			s.healthy("c").step().want("WaitingForClusters asia: a=2 b=1 c=2 d=1 e=1")
			s.target("b").Kept = ""
			s.step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1")
		},
		"a skipped cluster that is cordoned gets the revision when a window is open": func(s *story) {
			s.target("a").Kept = cordoned
			s.change("t2").step().verb(hubv1.RolloutSkipAnnotation, "a@"+s.at()).step().healthy("b", "c").step().healthy("d", "e").step()
			s.want("Complete: a=1 b=2 c=2 d=2 e=2")
			s.says("no cluster of wave canary has shown that revision 2 is healthy: a rollback returns to revision 1; but a has revision 1, and is cordoned: hansectl uncordon it")
			s.target("a").Kept = ""
			s.in.Policy.Windows = []hubv1.RolloutWindow{{Schedule: "0 14 * * *", DurationSeconds: 3600}}
			s.step().want("Complete: a=1 b=2 c=2 d=2 e=2").again(time.Hour - 3*time.Second)
			s.later(time.Hour).step().want("Complete: a=2 b=2 c=2 d=2 e=2")
		},
		"a cluster that does not answer is waited for": func(s *story) {
			s.target("b").Row.Away = true
			s.change("t2").step().healthy("a").step().healthy("c").step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1")
		},
		"a cluster that does not answer is left out if the gate says so, and gets the revision with its wave": func(s *story) {
			s.in.Policy.HealthGate.Unreachable = hubv1.UnreachableSkip
			s.target("b").Row.Away = true
			s.change("t2").step().healthy("a").step().want("Progressing asia: a=2 b=1 c=2 d=1 e=1")
			s.healthy("c").step().want("Progressing rest: a=2 b=2 c=2 d=2 e=2")
		},
		"a cluster that is evicted after it has begun to change is waited for": func(s *story) {
			s.change("t2").step()
			s.target("a").Evicting, s.target("a").Row.Away = true, true
			s.step().want("Progressing canary: a=2 b=1 c=1 d=1 e=1").later(15 * time.Minute).step().want("Failed canary: a=2 b=1 c=1 d=1 e=1")
			s.leave("a").step().want("Failed canary: b=1 c=1 d=1 e=1")
		},
		"a cluster that is evicted before it begins to change keeps its revision, and is not waited for": func(s *story) {
			s.target("a").Evicting = true
			s.change("t2").step().want("Progressing asia: a=1 b=2 c=2 d=1 e=1")
			s.healthy("b", "c").step().healthy("d", "e").step().want("Complete: a=1 b=2 c=2 d=2 e=2")
		},
		"a rollback neither moves nor waits for a cluster that is evicted": func(s *story) {
			s.in.Policy.OnFailure = hubv1.FailureRollback
			s.change("t2").step().healthy("a").step().report(hubv1.HealthDegraded, "b").later(time.Minute)
			s.target("c").Evicting = true
			s.step().want("RollingBack asia: a=1 b=1 c=2 d=1 e=1").healthy("a", "b").step().want("RolledBack: a=1 b=1 c=2 d=1 e=1")
		},
		"a user leaves a cluster out of this change": func(s *story) {
			s.verb(hubv1.RolloutSkipAnnotation, "a@"+s.at()).later(time.Second)
			s.change("t2").step().want("Progressing canary: a=2 b=1 c=1 d=1 e=1")
			s.verb(hubv1.RolloutSkipAnnotation, "a@"+s.at()).step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1")
		},
	})
}

func TestNewClusters(t *testing.T) {
	tell(t, map[string]func(s *story){
		"a cluster that joins gets the revision that its wave has passed": func(s *story) {
			s.change("t2").step().healthy("a").step().join("aa", 0).step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1 aa=2")
			if s.last.Moved != nil {
				t.Errorf("a new cluster did not move: %v", s.last.Moved)
			}
		},
		"a cluster that joins after the rollout gets its revision": func(s *story) {
			s.join("f", 2).step().want("Complete: a=1 b=1 c=1 d=1 e=1 f=1")
		},
		"a cluster that joins gets the last revision that passed": func(s *story) {
			s.change("t2").step().healthy("a").step().change("t3").step().join("bb", 1).join("f", 2).step()
			s.want("Progressing canary: a=3 b=2 c=2 d=1 e=1 bb=1 f=1")
		},
		"a cluster that joins the wave in progress takes its turn": func(s *story) {
			s.concurrent("1").change("t2").step().healthy("a").step().join("cc", 1).step().want("Progressing asia: a=2 b=2 c=1 d=1 e=1 cc=1")
			s.healthy("b").step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1 cc=1")
			s.healthy("c").step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1 cc=2")
		},
		"the first cluster of a wave gets the revision that passed": func(s *story) {
			s.leave("b").leave("c").change("t2").step().join("b", 1).step().want("Progressing canary: a=2 d=1 e=1 b=1")
		},
		"a replacement gets at least the revision of the cluster that it replaces": func(s *story) {
			s.change("t2").step().leave("a").join("f", 2)
			s.target("f").Least = 2
			s.verb(hubv1.RolloutPauseAnnotation, "true").step().want("Paused canary: b=1 c=1 d=1 e=1 f=2")
		},
		"a cluster that joins does not get the old revision of a suspended one": func(s *story) {
			s.target("b").Kept = cordoned
			s.change("t2").step().verb(hubv1.RolloutSkipAnnotation, "b@"+s.at()).healthy("a").step().healthy("c").step().healthy("d", "e").step().want("Complete: a=2 b=1 c=2 d=2 e=2")
			s.later(time.Minute).leave("c").join("cc", 1).change("t3").step().want("Progressing canary: a=3 b=1 d=2 e=2 cc=2")
		},
		"a replacement follows the new number of a revision": func(s *story) {
			s.change("t2").step().change("t3").step().change("t2").leave("a").join("f", 2)
			s.target("f").Least = 2
			s.verb(hubv1.RolloutPauseAnnotation, "true").step().want("Paused asia: b=1 c=1 d=1 e=1 f=4")
		},
		"a replacement does not get a revision that is gone": func(s *story) {
			s.change("t2").step().join("f", 2)
			s.target("f").Least = 9
			s.step().want("Progressing canary: a=2 b=1 c=1 d=1 e=1 f=1")
		},
	})
}
