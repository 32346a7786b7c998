package rollout

import (
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

const waysOut = "; change the object, or use hansectl rollout undo widget cart -n shop, or hansectl rollout promote web --full --reason TEXT -n shop"

func TestGate(t *testing.T) {
	waits := "Progressing canary: a=2 b=1 c=1 d=1 e=1"
	tell(t, map[string]func(s *story){
		"a report about the revision before does not pass": func(s *story) {
			s.change("t2").step().healthy("a")
			s.target("a").Row.Revision = 1
			s.step().want(waits)
		},
		"a copy that is not applied does not pass": func(s *story) {
			s.change("t2").step().healthy("a")
			s.target("a").Row.Applied = false
			s.step().want(waits)
		},
		"a status without observedGeneration counts after minObservedSeconds": func(s *story) {
			s.change("t2").step().healthy("a")
			s.target("a").Row.Observes = false
			s.step().want(waits).again(time.Minute)
			s.later(time.Minute).step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1")
		},
		"a status without observedGeneration does not fail while it is observed": func(s *story) {
			s.in.Policy.HealthGate.MinObservedSeconds = ptr.To[int32](3600)
			s.change("t2").step().healthy("a")
			s.target("a").Row.Observes = false
			s.later(20 * time.Minute).step().want(waits).again(40 * time.Minute)
		},
		"a report that is older than the order to change counts after a minute": func(s *story) {
			s.change("t2").step().later(time.Second).undo("1").step().want("Progressing canary: a=1 b=1 c=1 d=1 e=1").again(time.Minute)
			s.later(time.Minute).step().want("RolledBack: a=1 b=1 c=1 d=1 e=1")
		},
		"a report of the second in which the cluster was told counts after that second": func(s *story) {
			s.change("t2").step().report(hubv1.HealthHealthy, "a").step().want(waits).again(time.Second)
			s.later(time.Second).step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1")
		},
		"a refusal of the change before does not fail the next one": func(s *story) {
			s.in.Policy.HealthGate.MinObservedSeconds = ptr.To[int32](0)
			refused := func() { // the row of a refusal names the revision that the cluster holds
				row := &s.target("a").Row
				row.Applied, row.Refused, row.Reason, row.Revision = false, true, "Forbidden", s.target("a").Holds
			}
			s.change("t2").step().later(time.Second).report(hubv1.HealthUnknown, "a")
			refused()
			s.step().want("Failed canary: a=2 b=1 c=1 d=1 e=1").later(time.Second).change("t3").step()
			refused()
			s.step().want("Progressing canary: a=3 b=1 c=1 d=1 e=1").again(time.Minute)
			s.later(time.Minute).step().want("Failed canary: a=3 b=1 c=1 d=1 e=1")
		},
		"a cluster that does not answer does not pass by an old report": func(s *story) {
			s.change("t2").step().healthy("a")
			s.target("a").Row.Away = true
			s.step().want(waits)
		},
	})
}

func TestFailures(t *testing.T) {
	failed := "Failed canary: a=2 b=1 c=1 d=1 e=1"
	waits := "Progressing canary: a=2 b=1 c=1 d=1 e=1"
	tell(t, map[string]func(s *story){
		"a cluster that stays degraded stops the change": func(s *story) {
			s.change("t2").step().report(hubv1.HealthDegraded, "a").step().want(waits).again(time.Minute)
			s.later(time.Minute).step().want(failed).says("a failed: Degraded: the report of a" + waysOut)
			if p := s.last.Progress; !p.Failed || p.Revision != 2 || !p.Since.Equal(s.in.Now) {
				t.Errorf("%+v", p)
			}
		},
		"a cluster that was degraded before the change has time to recover": func(s *story) {
			s.report(hubv1.HealthDegraded, "a").step().later(time.Hour).change("t2").step().report(hubv1.HealthDegraded, "a")
			s.step().want(waits).again(time.Minute)
		},
		"a cluster that refuses the revision stops the change": func(s *story) {
			s.change("t2").step().report(hubv1.HealthProgressing, "a")
			row := &s.target("a").Row
			row.Applied, row.Refused, row.Reason = false, true, "Rejected"
			s.later(time.Minute).step().want(failed).says("a failed: Rejected: the report of a" + waysOut)
		},
		"a cluster that is not healthy in time stops the change": func(s *story) {
			s.change("t2").step().report(hubv1.HealthProgressing, "a").later(899 * time.Second).step().want(waits).again(time.Second)
			s.later(time.Second).step().want(failed).says("a failed: not healthy within 900 s: Progressing: the report of a" + waysOut)
		},
		"a cluster without a report is not healthy in time": func(s *story) {
			s.target("a").Row = Row{}
			s.change("t2").step().again(15 * time.Minute).later(15 * time.Minute).step().want(failed).says("a failed: not healthy within 900 s: the cluster has not reported revision 2" + waysOut)
		},
		"a cluster that does not answer in time stops the change": func(s *story) {
			s.target("a").Row.Away = true
			s.change("t2").step().later(15 * time.Minute).step().want(failed)
			s.says("a failed: the cluster does not answer; to leave the cluster out, use hansectl rollout skip web a -n shop" + waysOut)
			s.verb(hubv1.RolloutSkipAnnotation, "a@"+s.at()).step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1")
		},
		"a cluster that was healthy has the whole time again": func(s *story) {
			s.in.Policy.Waves[0].SoakSeconds = 7200
			s.change("t2").step().healthy("a").step().later(time.Hour).report(hubv1.HealthProgressing, "a").step().want(waits).again(15 * time.Minute)
			s.later(15 * time.Minute).step().want(failed)
		},
		"a copy that the member's admin has paused does not fail": func(s *story) {
			s.change("t2").step().report(hubv1.HealthDegraded, "a")
			s.target("a").Row.HeldByMember = true
			s.step().want(waits).says("").again(15 * time.Minute)
			s.later(15 * time.Minute).step().want(waits).says("an admin of a has paused the copy there")
		},
		"as many clusters as maxFailures may fail": func(s *story) {
			s.in.Policy.Waves[1].MaxFailures = 1
			s.concurrent("1").change("t2").step().healthy("a").step().report(hubv1.HealthDegraded, "b").later(time.Minute)
			s.step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1").says("b failed and is left out: Degraded: the report of b")
			s.healthy("c").step().want("Progressing rest: a=2 b=2 c=2 d=2 e=2")
			s.healthy("d", "e").step().want("Complete: a=2 b=2 c=2 d=2 e=2")
		},
		"more failures than maxFailures stop the change": func(s *story) {
			s.in.Policy.Waves[1].MaxFailures = 1
			s.change("t2").step().healthy("a").step().report(hubv1.HealthDegraded, "b", "c").later(time.Minute)
			s.step().want("Failed asia: a=2 b=2 c=2 d=1 e=1").says("b failed: Degraded: the report of b; 1 more failed" + waysOut)
		},
		"a cluster of an earlier wave that fails later stops the change": func(s *story) {
			s.concurrent("1").change("t2").step().healthy("a").step().report(hubv1.HealthDegraded, "a").later(time.Minute).healthy("b")
			s.step().want("Failed asia: a=2 b=2 c=1 d=1 e=1")
		},
		"a change that failed goes on when its clusters pass after all": func(s *story) {
			s.change("t2").step().report(hubv1.HealthDegraded, "a").later(time.Minute).step().want(failed)
			s.report(hubv1.HealthProgressing, "a").step().want(failed)
			s.healthy("a").step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1")
			if s.last.Rollout.Failed != 0 {
				t.Error("the revision has not failed any more")
			}
		},
		"a change that failed in the last wave completes when its clusters pass after all": func(s *story) {
			s.change("t2").step().healthy("a").step().healthy("b", "c").step().healthy("d").report(hubv1.HealthDegraded, "e").later(time.Minute)
			s.step().want("Failed rest: a=2 b=2 c=2 d=2 e=2")
			s.healthy("e").step().want("Complete: a=2 b=2 c=2 d=2 e=2")
			if s.last.Rollout.Failed != 0 {
				t.Error("the revision has not failed any more")
			}
		},
		"a change that failed goes on when the member's admin pauses the copy": func(s *story) {
			s.change("t2").step().report(hubv1.HealthDegraded, "a").later(time.Minute).step().want(failed)
			s.target("a").Row.HeldByMember = true
			s.step().want(waits)
		},
		"a change that failed does not go on because its cluster is cordoned or leaves": func(s *story) {
			s.change("t2").step().report(hubv1.HealthDegraded, "a").later(time.Minute).step().want(failed)
			s.target("a").Kept = cordoned
			s.step().want(failed)
			s.says("a failed: Degraded: the report of a" + waysOut)
			s.leave("a").step().want("Failed canary: b=1 c=1 d=1 e=1")
			s.says("revision 2 failed, and wave canary has no cluster left that can pass" + waysOut)
			s.change("t3").step().want("Progressing asia: b=3 c=3 d=1 e=1")
		},
		"a change that failed goes on when a user leaves its cordoned cluster out": func(s *story) {
			s.change("t2").step().report(hubv1.HealthDegraded, "a").later(time.Minute).step()
			s.target("a").Kept = cordoned
			s.verb(hubv1.RolloutSkipAnnotation, "a@"+s.at()).step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1")
		},
		"a change that failed goes on when another cluster joins its wave and passes": func(s *story) {
			s.change("t2").step().report(hubv1.HealthDegraded, "a").later(time.Minute).step().leave("a").join("aa", 0).step()
			s.want("Progressing canary: b=1 c=1 d=1 e=1 aa=2").healthy("aa").step().want("Progressing asia: b=2 c=2 d=1 e=1 aa=2")
		},
		"a change that failed does not go on because its cluster goes down and the gate skips it": func(s *story) {
			s.in.Policy.HealthGate.Unreachable = hubv1.UnreachableSkip
			s.change("t2").step().report(hubv1.HealthDegraded, "a").later(time.Minute).step().want(failed)
			s.target("a").Row.Away = true
			s.step().want(failed)
			s.target("a").Row.Away = false
			s.healthy("a").step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1")
		},
		"a cluster that joins late has the whole time": func(s *story) {
			s.in.Policy.Waves[1].Approval = hubv1.ApprovalManual
			s.change("t2").step().healthy("a").later(time.Hour).step().join("aa", 0).step().want("WaitingForApproval asia: a=2 b=1 c=1 d=1 e=1 aa=2").again(0)
			s.report(hubv1.HealthProgressing, "aa").step().want("WaitingForApproval asia: a=2 b=1 c=1 d=1 e=1 aa=2").again(15 * time.Minute)
			s.later(15 * time.Minute).step().want("Failed asia: a=2 b=1 c=1 d=1 e=1 aa=2")
		},
		"a cluster that joins early has the whole time, too": func(s *story) {
			s.in.Policy.Waves[1].Approval = hubv1.ApprovalManual
			s.change("t2").step().healthy("a").later(10*time.Minute).step().join("aa", 0).step().report(hubv1.HealthProgressing, "aa")
			s.step().want("WaitingForApproval asia: a=2 b=1 c=1 d=1 e=1 aa=2").again(15 * time.Minute)
		},
		"a change that failed is followed by the next one": func(s *story) {
			s.change("t2").step().report(hubv1.HealthDegraded, "a").later(time.Minute).step().want(failed)
			s.change("t3").step().want("Progressing canary: a=3 b=1 c=1 d=1 e=1")
		},
		"a cluster that fails after the rollout is no failure of the rollout": func(s *story) {
			s.report(hubv1.HealthDegraded, "a").later(time.Hour).step().want("Complete: a=1 b=1 c=1 d=1 e=1")
		},
		"a long report leaves room for the ways out": func(s *story) {
			s.change("t2").step().report(hubv1.HealthDegraded, "a").later(time.Minute)
			s.target("a").Row.Message = strings.Repeat("ü", 2000)
			s.step().want(failed)
			if m := s.last.Rollout.Message; !strings.HasSuffix(m, waysOut) || len([]rune(m)) > 512 {
				t.Error(m)
			}
		},
	})
}

func TestRollback(t *testing.T) {
	failing := func(s *story) *story { // clusters b and c of wave asia have the change, and b fails
		s.in.Policy.OnFailure = hubv1.FailureRollback
		return s.change("t2").step().healthy("a").step().report(hubv1.HealthDegraded, "b").report(hubv1.HealthProgressing, "c").later(time.Minute)
	}
	tell(t, map[string]func(s *story){
		"clusters return in reverse order of the waves, and the object stays failed": func(s *story) {
			failing(s.concurrent("1")).step().want("RollingBack asia: a=1 b=1 c=1 d=1 e=1")
			s.says("revision 2 failed: the clusters return to revision 1")
			s.healthy("a", "b", "c").step().want("RolledBack: a=1 b=1 c=1 d=1 e=1")
			s.says("all clusters returned to revision 1: revision 2 failed; " + StillHas(2))
			if r, p := s.last.Rollout, s.last.Progress; r.Revision != 1 || r.Newest != 2 || r.Failed != 2 || r.Passed != 1 || !p.Failed || p.Revision != 2 {
				t.Errorf("%+v %+v", r, p)
			}
			s.later(time.Hour).step().want("RolledBack: a=1 b=1 c=1 d=1 e=1")
		},
		"a wave returns within its maxConcurrent before an earlier one does": func(s *story) {
			failing(s)
			s.concurrent("1").step().want("RollingBack asia: a=2 b=1 c=2 d=1 e=1")
			s.healthy("b").step().want("RollingBack asia: a=1 b=1 c=1 d=1 e=1")
			s.healthy("a").step().want("RollingBack asia: a=1 b=1 c=1 d=1 e=1")
			s.healthy("c").step().want("RolledBack: a=1 b=1 c=1 d=1 e=1")
		},
		"a rollback needs no approval, no soak and no window": func(s *story) {
			failing(s)
			s.in.Policy.Windows = []hubv1.RolloutWindow{{Schedule: "0 20 * * *", DurationSeconds: 60}}
			for i := range s.in.Policy.Waves {
				s.in.Policy.Waves[i].Approval, s.in.Policy.Waves[i].SoakSeconds = hubv1.ApprovalManual, 3600
			}
			s.step().healthy("a", "b", "c").step().want("RolledBack: a=1 b=1 c=1 d=1 e=1")
		},
		"a rollback that fails stops": func(s *story) {
			failing(s.concurrent("1"))
			s.step().report(hubv1.HealthDegraded, "b").later(time.Minute).step().want("Failed asia: a=1 b=1 c=1 d=1 e=1")
			s.says("b failed: Degraded: the report of b" + waysOut)
			s.healthy("a", "b", "c").step().want("RolledBack: a=1 b=1 c=1 d=1 e=1")
		},
		"a rollback does not wait for clusters that do not answer, and tells them": func(s *story) {
			failing(s)
			s.target("c").Row.Away = true
			s.concurrent("1").step().want("RollingBack asia: a=1 b=1 c=1 d=1 e=1").healthy("a", "b").step().want("RolledBack: a=1 b=1 c=1 d=1 e=1")
		},
		"a rollback waits for a copy that the member's admin has paused, and says so": func(s *story) {
			failing(s.concurrent("1")).step().healthy("a", "c")
			s.target("b").Row.HeldByMember = true
			s.step().want("RollingBack asia: a=1 b=1 c=1 d=1 e=1").says("revision 2 failed: the clusters return to revision 1")
			s.later(15 * time.Minute).step().says("revision 2 failed: the clusters return to revision 1; an admin of b has paused the copy there")
			s.target("b").Row.HeldByMember = false
			s.healthy("b").step().want("RolledBack: a=1 b=1 c=1 d=1 e=1")
		},
		"a suspended cluster keeps the revision that failed": func(s *story) {
			failing(s)
			s.target("c").Kept = cordoned
			s.step().healthy("a", "b").step().want("RolledBack: a=1 b=1 c=2 d=1 e=1")
			s.target("c").Kept = ""
			s.step().want("RolledBack: a=1 b=1 c=1 d=1 e=1")
		},
		"a pause holds a rollback": func(s *story) {
			failing(s).verb(hubv1.RolloutPauseAnnotation, "true").step().want("Paused asia: a=2 b=2 c=2 d=1 e=1")
			s.verb(hubv1.RolloutPauseAnnotation, "").step().want("RollingBack asia: a=1 b=1 c=1 d=1 e=1")
		},
		"the revision that failed is not tried again, and the next change is": func(s *story) {
			failing(s).step().healthy("a", "b", "c").step().step().want("RolledBack: a=1 b=1 c=1 d=1 e=1")
			s.change("t3").step().want("Progressing canary: a=3 b=1 c=1 d=1 e=1")
		},
		"a CustomResourceDefinition stops and does not return": func(s *story) {
			s.in.NoRollback = true
			failing(s).step().want("Failed asia: a=2 b=2 c=2 d=1 e=1")
		},
		"clusters of later waves return from a revision that never passed": func(s *story) {
			s.change("t2").step().healthy("a").step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1")
			s.in.Policy.OnFailure = hubv1.FailureRollback
			s.change("t3").step().report(hubv1.HealthDegraded, "a").later(time.Minute).step().want("RollingBack canary: a=1 b=1 c=1 d=1 e=1")
		},
		"a cluster that joins gets the revision to which the others return": func(s *story) {
			failing(s)
			s.concurrent("1").step().join("cc", 1).step().want("RollingBack asia: a=2 b=1 c=2 d=1 e=1 cc=1")
		},
		"a cluster that never had the change cannot fail the rollback": func(s *story) {
			failing(s.report(hubv1.HealthDegraded, "e").later(time.Hour)).step().later(time.Minute).step().want("RollingBack asia: a=1 b=1 c=1 d=1 e=1")
		},
	})
	t.Run("without a revision that passed there is nothing to return to", func(t *testing.T) {
		s := newStory(t)
		s.in.Policy.OnFailure = hubv1.FailureRollback
		s.step().change("t2").step().report(hubv1.HealthDegraded, "a").later(time.Minute).step().want("Failed canary: a=2 b=1 c=1 d=1 e=1")
	})
}

func TestUndo(t *testing.T) {
	tell(t, map[string]func(s *story){
		"an undo goes by wave, and ends rolled back": func(s *story) {
			s.change("t2").step().healthy("a").step().later(time.Minute).undo("1").step().want("Progressing canary: a=1 b=2 c=2 d=1 e=1")
			s.later(time.Second).healthy("a").step().want("Progressing asia: a=1 b=1 c=1 d=1 e=1")
			s.healthy("b", "c").step().want("RolledBack: a=1 b=1 c=1 d=1 e=1")
			s.says("all clusters returned to revision 1, as annotation hanse.dev/rollout-undo asks; " + StillHas(2))
			if s.last.Progress.Failed || !s.last.Progress.Done {
				t.Errorf("an undo is no failure: %+v", s.last.Progress)
			}
		},
		"an undo to a revision that is gone changes nothing and says so": func(s *story) {
			s.undo("9").step().want("Complete: a=1 b=1 c=1 d=1 e=1")
			s.says("cannot return to revision 9, which is gone: see hansectl rollout history")
		},
		"a blocked undo changes nothing and says so, and begins when nothing blocks it": func(s *story) {
			s.change("t2").step().undo("1")
			s.in.UndoBlocked = "UndoBlocked: revision 1 lacks version v2"
			s.step().want("Progressing canary: a=2 b=1 c=1 d=1 e=1").says("UndoBlocked: revision 1 lacks version v2")
			if s.last.Again != time.Minute {
				t.Errorf("it is tried again after %s", s.last.Again)
			}
			s.in.UndoBlocked = ""
			s.step().want("Progressing canary: a=1 b=1 c=1 d=1 e=1")
		},
		"an undo that is no number changes nothing and says so": func(s *story) {
			for _, value := range []string{"x", "-1", "0", "1.5", "1" + strings.Repeat("@", 64)} {
				s.undo(value).step().want("Complete: a=1 b=1 c=1 d=1 e=1").says("annotation hanse.dev/rollout-undo is not the number of a revision")
			}
		},
		"a change after an undo goes on, and the undo is spent": func(s *story) {
			s.change("t2").step().undo("1").step().later(time.Minute).step().want("RolledBack: a=1 b=1 c=1 d=1 e=1")
			s.change("t3").step().want("Progressing canary: a=3 b=1 c=1 d=1 e=1")
			s.step().want("Progressing canary: a=3 b=1 c=1 d=1 e=1")
			s.undo("1@" + s.at()).step().want("Progressing canary: a=1 b=1 c=1 d=1 e=1")
		},
		"without its annotation an undo ends, and the newest revision goes by wave": func(s *story) {
			s.change("t2").step().undo("1").step().later(time.Minute).step().want("RolledBack: a=1 b=1 c=1 d=1 e=1")
			s.undo("").step().want("Progressing canary: a=2 b=1 c=1 d=1 e=1")
		},
		"an undo to the revision that failed tries it again": func(s *story) {
			s.in.Policy.OnFailure = hubv1.FailureRollback
			s.change("t2").step().report(hubv1.HealthDegraded, "a").later(time.Minute).step().healthy("a").step().want("RolledBack: a=1 b=1 c=1 d=1 e=1")
			s.undo("2").step().want("Progressing canary: a=2 b=1 c=1 d=1 e=1")
		},
		"an undo of a rolled back object accepts the rollback": func(s *story) {
			s.in.Policy.OnFailure = hubv1.FailureRollback
			s.change("t2").step().report(hubv1.HealthDegraded, "a").later(time.Minute).step().healthy("a").step().want("RolledBack: a=1 b=1 c=1 d=1 e=1")
			s.undo("1").step().want("RolledBack: a=1 b=1 c=1 d=1 e=1")
			if s.last.Progress.Failed {
				t.Error("the object still stops the others")
			}
			s.undo("").step().want("Progressing canary: a=2 b=1 c=1 d=1 e=1")
		},
		"an undo to the last revision that passed has nothing to return to": func(s *story) {
			s.in.Policy.OnFailure = hubv1.FailureRollback
			s.change("t2").step().undo("1").step().report(hubv1.HealthDegraded, "a").later(time.Minute).step().want("Failed canary: a=1 b=1 c=1 d=1 e=1")
		},
		"an undo that fails returns to the last revision that passed": func(s *story) {
			s.in.Policy.OnFailure = hubv1.FailureRollback
			s.change("t2").step().healthy("a").step().healthy("b", "c").step().healthy("d", "e").step().want("Complete: a=2 b=2 c=2 d=2 e=2")
			s.undo("1").step().report(hubv1.HealthDegraded, "a").later(time.Minute).step().want("RollingBack canary: a=2 b=2 c=2 d=2 e=2")
			s.healthy("a").step().want("Complete: a=2 b=2 c=2 d=2 e=2")
			if s.last.Progress.Failed || s.last.Rollout.Failed != 1 {
				t.Errorf("%+v %+v", s.last.Progress, s.last.Rollout)
			}
		},
		"the end of an undo does not try the revision that failed": func(s *story) {
			s.undo("1").step()
			s.in.Policy.OnFailure = hubv1.FailureRollback
			s.change("t2").step().report(hubv1.HealthDegraded, "a").later(time.Minute).step().healthy("a").step().want("RolledBack: a=1 b=1 c=1 d=1 e=1")
			s.undo("").step().want("RolledBack: a=1 b=1 c=1 d=1 e=1")
		},
	})
}

func TestPromote(t *testing.T) {
	tell(t, map[string]func(s *story){
		"a promotion sends the change to all clusters at once": func(s *story) {
			s.in.Policy.Waves[0].Approval = hubv1.ApprovalManual
			s.in.Policy.Windows = []hubv1.RolloutWindow{{Schedule: "0 20 * * *", DurationSeconds: 60}}
			s.change("t2").step().want("WaitingForApproval canary: a=1 b=1 c=1 d=1 e=1")
			s.target("e").Kept = cordoned
			s.verb(hubv1.RolloutPromoteAnnotation, s.at()+" CVE-2026-1").step().want("Progressing rest: a=2 b=2 c=2 d=2 e=1")
			s.says("promoted: the revision is not yet healthy on all clusters")
			s.healthy("a", "b", "c", "d").step().want("Complete: a=2 b=2 c=2 d=2 e=1")
			s.step().want("Complete: a=2 b=2 c=2 d=2 e=1")
		},
		"a promotion ends a failure and a rollback": func(s *story) {
			s.in.Policy.OnFailure = hubv1.FailureRollback
			s.change("t2").step().report(hubv1.HealthDegraded, "a").later(time.Minute).step().want("RollingBack canary: a=1 b=1 c=1 d=1 e=1")
			s.verb(hubv1.RolloutPromoteAnnotation, s.at()+" now").step().want("Progressing rest: a=2 b=2 c=2 d=2 e=2")
			s.report(hubv1.HealthDegraded, "a").later(time.Hour).step().want("Progressing rest: a=2 b=2 c=2 d=2 e=2")
			if s.last.Rollout.Failed != 0 || s.last.Progress.Failed {
				t.Error("a promoted change cannot fail")
			}
		},
		"a promotion is for changes that began before it": func(s *story) {
			s.verb(hubv1.RolloutPromoteAnnotation, s.at()+" now").later(time.Second).change("t2").step().want("Progressing canary: a=2 b=1 c=1 d=1 e=1")
		},
		"a promotion takes an undo back": func(s *story) {
			s.change("t2").step().undo("1").step().later(time.Minute).step().want("RolledBack: a=1 b=1 c=1 d=1 e=1")
			s.verb(hubv1.RolloutPromoteAnnotation, s.at()+" now").step().want("Progressing rest: a=2 b=2 c=2 d=2 e=2")
		},
	})
}

func TestHistory(t *testing.T) {
	tell(t, map[string]func(s *story){
		"the latest revisions of the history are kept, and the ones in use": func(s *story) {
			s.in.Policy.RevisionHistoryLimit = ptr.To[int32](1)
			s.target("e").Kept = cordoned
			for _, template := range []string{"t2", "t3", "t4", "t5"} {
				s.later(time.Minute).change(template).step().verb(hubv1.RolloutSkipAnnotation, "e@"+s.at())
				for range 4 {
					s.step().healthy("a", "b", "c", "d")
				}
			}
			s.step().want("Complete: a=5 b=5 c=5 d=5 e=1")
			got := ""
			for _, r := range s.last.Revisions {
				got += r.Template
			}
			if got != "t1t4t5" {
				t.Error(got)
			}
		},
		"a revision that a report names is kept": func(s *story) {
			s.in.Policy.RevisionHistoryLimit = ptr.To[int32](0)
			s.target("e").Row.Away = true
			s.in.Policy.HealthGate.Unreachable = hubv1.UnreachableSkip
			s.change("t2").step().healthy("a").step().healthy("b", "c").step().healthy("d").step().want("Complete: a=2 b=2 c=2 d=2 e=2")
			if n := len(s.last.Revisions); n != 2 {
				t.Errorf("%d revisions are kept", n)
			}
			s.healthy("e").step()
			if n := len(s.last.Revisions); n != 1 {
				t.Errorf("%d revisions are kept after the report", n)
			}
		},
		"a new number is higher than any in use": func(s *story) {
			s.target("e").Kept, s.target("e").Holds = cordoned, 9
			s.change("t2").step().want("Progressing canary: a=10 b=1 c=1 d=1 e=9")
		},
		"no more revisions are kept than a binding may have": func(s *story) {
			for i := range 40 {
				s.join(strings.Repeat("x", i+1), 2)
				s.in.Targets[len(s.in.Targets)-1].Holds = int64(i + 2)
				s.in.Revisions = append(s.in.Revisions, hubv1.ObjectRevision{Number: int64(i + 2), Template: strings.Repeat("x", i+1)})
			}
			s.change("new").step()
			if n := len(s.last.Revisions); n != hubv1.MaxRevisions || s.last.Revisions[0].Number != 1 || s.last.Revisions[n-1].Number != 42 {
				t.Error(n, s.last.Revisions)
			}
		},
	})
}
