package rollout

import (
	"testing"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// leftOut are the ways in which the clusters of a wave do not count.
var leftOut = map[string]func(s *story, cluster string){
	"cordoned":    func(s *story, cluster string) { s.target(cluster).Kept = cordoned },
	"unreachable": func(s *story, cluster string) { s.target(cluster).Row.Away = true },
	"skipped": func(s *story, cluster string) {
		verbs, _ := verbsOf(map[string]string{hubv1.RolloutSkipAnnotation: "b@" + s.at() + ",c@" + s.at()})
		s.in.Verbs = verbs
	},
	"in a skipped wave": func(s *story, cluster string) { s.verb(hubv1.RolloutSkipAnnotation, "wave/asia@"+s.at()) },
}

func TestAManualWaveNeedsItsApprovalWhoeverCounts(t *testing.T) {
	for name, leave := range leftOut {
		t.Run(name, func(t *testing.T) {
			s := running(t)
			s.in.Policy.Waves[1].Approval = hubv1.ApprovalManual
			s.in.Policy.HealthGate.Unreachable = hubv1.UnreachableSkip
			waits := "WaitingForApproval asia: a=2 b=1 c=1 d=1 e=1"
			s.change("t2").step().healthy("a").step().want(waits)
			leave(s, "b")
			leave(s, "c")
			s.step().want(waits)
			s.target("b").Kept, s.target("c").Kept, s.target("b").Row.Away, s.target("c").Row.Away = "", "", false, false
			s.step().want(waits)
			s.verb(hubv1.RolloutApproveAnnotation, "asia@"+s.at()).step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1")
		})
	}
}

func TestABrokenChangePassesNoCordonedWave(t *testing.T) {
	degraded := func(s *story) *story { return s.change("t2").step().report(hubv1.HealthDegraded, "a").step() }
	tell(t, map[string]func(s *story){
		"a cluster that is cordoned while it is degraded fails the change": func(s *story) {
			degraded(s).target("a").Kept = cordoned
			s.step().want("WaitingForClusters canary: a=2 b=1 c=1 d=1 e=1")
			s.says("wave canary waits for a, which is not healthy with revision 2 and is cordoned: hansectl uncordon it; to leave the cluster out, use hansectl rollout skip web a -n shop")
			s.later(time.Minute).step().want("Failed canary: a=2 b=1 c=1 d=1 e=1")
			if s.last.Rollout.Passed != 1 {
				t.Errorf("%+v", s.last.Rollout)
			}
		},
		"so it rolls back, and the cordoned cluster returns afterwards": func(s *story) {
			s.in.Policy.OnFailure = hubv1.FailureRollback
			degraded(s).target("a").Kept = cordoned
			s.step().later(time.Minute).step().want("RolledBack: a=2 b=1 c=1 d=1 e=1")
			s.target("a").Kept = ""
			s.step().want("RolledBack: a=1 b=1 c=1 d=1 e=1")
		},
		"work on the nodes of a cordoned cluster pauses the wave, and rolls nothing back": func(s *story) {
			s.in.Policy.OnFailure = hubv1.FailureRollback
			s.concurrent("1").change("t2").step().healthy("a").step().healthy("b").step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1")
			s.target("b").Kept = cordoned
			waits := "WaitingForClusters asia: a=2 b=2 c=2 d=1 e=1"
			s.step().report(hubv1.HealthDegraded, "b").healthy("c").step().want(waits).later(time.Hour).step().want(waits)
			s.healthy("b").step().want("Progressing rest: a=2 b=2 c=2 d=2 e=2")
		},
		"no further cluster of the wave begins meanwhile": func(s *story) {
			s.join("cc", 1).step().healthy("cc").step()
			s.concurrent("2").change("t2").step().healthy("a").step().healthy("b").report(hubv1.HealthProgressing, "c")
			s.target("b").Kept = cordoned
			s.report(hubv1.HealthDegraded, "b").target("b").KeptHealth = hubv1.HealthHealthy
			s.step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1 cc=1").healthy("c").step().want("WaitingForClusters asia: a=2 b=2 c=2 d=1 e=1 cc=1")
		},
		"work on the nodes of an earlier wave stops nothing": func(s *story) {
			s.change("t2").step().healthy("a").step().target("a").Kept = cordoned
			s.step().report(hubv1.HealthDegraded, "a").later(time.Hour).healthy("b", "c").step().want("Progressing rest: a=2 b=2 c=2 d=2 e=2")
		},
		"a cordoned cluster that is healthy with the revision passes": func(s *story) {
			s.change("t2").step().target("a").Kept = cordoned
			s.healthy("a").step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1")
		},
	})
}

func TestAFailedRevisionOfABundleIsCorrectedInItsBundle(t *testing.T) {
	s := running(t)
	s.in.Names.Bundle = "Bundle shop/parts"
	s.change("t2").step().report(hubv1.HealthDegraded, "a").later(time.Minute).step().want("Failed canary: a=2 b=1 c=1 d=1 e=1")
	s.says("a failed: Degraded: the report of a; change its Bundle shop/parts, or hansectl rollout promote web --full --reason TEXT -n shop")
	s.in.Names.Object, s.in.Names.ObjectNamespace, s.in.Names.Whole = "bundle parts", "shop", true
	s.step().says("a failed: Degraded: the report of a; change Bundle shop/parts, or use hansectl rollout undo bundle parts -n shop, or hansectl rollout promote web --full --reason TEXT -n shop")
}

func TestAWaveNamesTheClustersThatItWaitsFor(t *testing.T) {
	tell(t, map[string]func(s *story){
		"the cluster that is not healthy comes first": func(s *story) {
			s.change("t2").step().healthy("a").step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1").healthy("b")
			s.join("bb", 1).target("bb").Kept = cordoned
			s.target("c").Kept = cordoned
			s.step().want("WaitingForClusters asia: a=2 b=2 c=2 d=1 e=1 bb=1").says("wave asia waits for c, which is not healthy with revision 2 and is cordoned: " +
				"hansectl uncordon it; and for 1 more clusters; to leave the cluster out, use hansectl rollout skip web c -n shop")
		},
		"a promotion names a cluster that is not healthy in time": func(s *story) {
			s.change("t2").step().verb(hubv1.RolloutPromoteAnnotation, s.at()+" now").step().healthy("a", "b", "c", "d").step()
			s.says("promoted: the revision is not yet healthy on all clusters").later(time.Hour).step()
			s.says("promoted: the revision is not yet healthy on all clusters; e: not healthy within 900 s: the cluster has not reported revision 2")
		},
	})
}

func TestAWaveThatHasLostItsClustersWaits(t *testing.T) {
	lost := func(s *story) *story {
		s.change("t2").step().leave("a").step().want("WaitingForClusters canary: b=1 c=1 d=1 e=1")
		return s.says("wave canary has begun, and all its clusters have left: wait for a cluster that joins the wave, or use hansectl rollout skip web --wave canary -n shop")
	}
	tell(t, map[string]func(s *story){
		"a wave without clusters that has not begun passes": func(s *story) {
			s.leave("a").change("t2").step().want("Progressing asia: b=2 c=2 d=1 e=1")
		},
		"a cluster that joins the wave ends the wait": func(s *story) {
			lost(s).join("aa", 0).step().want("Progressing canary: b=1 c=1 d=1 e=1 aa=2").healthy("aa").step().want("Progressing asia: b=2 c=2 d=1 e=1 aa=2")
		},
		"a skip of the wave ends the wait": func(s *story) {
			lost(s).verb(hubv1.RolloutSkipAnnotation, "wave/canary@"+s.at()).step().want("Progressing asia: b=2 c=2 d=1 e=1")
		},
		"a promotion ends the wait": func(s *story) {
			lost(s).verb(hubv1.RolloutPromoteAnnotation, s.at()+" now").step().want("Progressing rest: b=2 c=2 d=2 e=2")
		},
		"the next change does not wait": func(s *story) {
			lost(s).change("t3").step().want("Progressing asia: b=3 c=3 d=1 e=1")
		},
		"a change of a leader whose clock was ahead waits, too": func(s *story) {
			s.in.Peers = NewPeers([]Progress{{Object: "other", Began: s.in.Now.Add(time.Minute), Done: true}}).Without("cart")
			lost(s)
		},
		"clusters that the gate skips have not left": func(s *story) {
			s.in.Policy.HealthGate.Unreachable = hubv1.UnreachableSkip
			s.change("t2").step().target("a").Row.Away = true
			s.step().want("Progressing asia: a=2 b=2 c=2 d=1 e=1")
		},
	})
}

func TestARevisionPassesWithEvidenceOfEachWave(t *testing.T) {
	without := func(s *story) *story { // the change is complete, and no cluster of wave canary has shown its health
		s.in.Policy.HealthGate.Unreachable = hubv1.UnreachableSkip
		s.target("a").Row.Away = true
		s.change("t2").step().healthy("b", "c").step().healthy("d", "e").step().want("Complete: a=2 b=2 c=2 d=2 e=2")
		return s.says("no cluster of wave canary has shown that revision 2 is healthy: a rollback returns to revision 1")
	}
	tell(t, map[string]func(s *story){
		"a revision that no cluster of a wave has shown is not what a rollback returns to": func(s *story) {
			without(s).in.Policy.OnFailure = hubv1.FailureRollback
			s.target("a").Row.Away = false
			s.report(hubv1.HealthProgressing, "a").later(time.Minute).change("t3").step().report(hubv1.HealthDegraded, "a").later(time.Minute).step()
			s.want("RollingBack canary: a=1 b=1 c=1 d=1 e=1")
		},
		"a cluster that catches up completes the evidence": func(s *story) {
			without(s).target("a").Row.Away = false
			s.healthy("a").step().want("Complete: a=2 b=2 c=2 d=2 e=2").says("")
			if r := s.last.Rollout; r.Passed != 2 || len(r.PassedWaves) != 0 {
				t.Errorf("%+v", r)
			}
		},
		"evidence of a cluster that has left counts": func(s *story) {
			s.join("aa", 0).step().healthy("aa").step().change("t2").step().healthy("a", "aa").step().leave("a").leave("aa")
			s.healthy("b", "c").step().healthy("d", "e").step().want("Complete: b=2 c=2 d=2 e=2").says("")
		},
	})
}

func TestAClusterThatJoinsGetsNoRevisionUnseen(t *testing.T) {
	manual := func(s *story) *story {
		s.in.Policy.Waves[1].Approval = hubv1.ApprovalManual
		return s
	}
	tell(t, map[string]func(s *story){
		"a cluster of another wave brings its revision into no manual wave": func(s *story) {
			manual(s).change("t2").step().target("a").Wave = 1
			s.join("aa", 0).change("t3").step().join("bb", 1).step().want("Progressing canary: a=2 b=1 c=1 d=1 e=1 aa=3 bb=1")
		},
		"a failed revision goes to no other cluster, also of a wave that has passed": func(s *story) {
			s.change("t2").step().healthy("a").step().report(hubv1.HealthDegraded, "b").later(time.Minute).step()
			s.want("Failed asia: a=2 b=2 c=2 d=1 e=1").join("aa", 0).step().want("Failed asia: a=2 b=2 c=2 d=1 e=1 aa=1")
		},
		"a wave that was empty changes in its turn after its approval": func(s *story) {
			manual(s).concurrent("1").leave("b").leave("c").change("t2").step().healthy("a").step()
			s.join("b", 1).join("c", 1).step().want("WaitingForApproval asia: a=2 d=1 e=1 b=1 c=1")
			s.verb(hubv1.RolloutApproveAnnotation, "asia@"+s.at()).step().want("Progressing asia: a=2 d=1 e=1 b=2 c=1")
			s.healthy("b").step().want("Progressing asia: a=2 d=1 e=1 b=2 c=2").healthy("c").step().want("Progressing rest: a=2 d=2 e=2 b=2 c=2")
		},
	})
	t.Run("before a revision has passed, it gets the oldest one", func(t *testing.T) {
		s := manual(newStory(t)).leave("b").leave("c").step().want("Progressing: a=1 d=1 e=1").change("t2").step().join("b", 1).step()
		s.want("Progressing canary: a=2 d=1 e=1 b=1").healthy("a").step().want("WaitingForApproval asia: a=2 d=1 e=1 b=1")
	})
}

func TestAClusterJoinsAWaveThatNoApprovalCovers(t *testing.T) {
	empty := func(s *story) *story { // wave asia is manual, and neither it nor a later wave has a cluster
		s.in.Policy.Waves[1].Approval = hubv1.ApprovalManual
		return s.leave("b").leave("c").leave("d").leave("e").change("t2").step().healthy("a").step().want("Complete: a=2")
	}
	tell(t, map[string]func(s *story){
		"it gets the revision before, and the change is in progress again": func(s *story) {
			empty(s).join("b", 1).step().want("WaitingForApproval asia: a=2 b=1")
			s.says("wave asia waits for approval: hansectl rollout approve web asia -n shop").later(time.Hour).healthy("b")
			s.verb(hubv1.RolloutApproveAnnotation, "asia@"+s.at()).step().want("Progressing asia: a=2 b=2")
			s.healthy("b").step().want("Complete: a=2 b=2")
		},
		"other waves are not judged again": func(s *story) {
			s.in.Policy.OnFailure = hubv1.FailureRollback
			empty(s).report(hubv1.HealthDegraded, "a").later(time.Hour).join("b", 1).step().healthy("b")
			s.verb(hubv1.RolloutApproveAnnotation, "asia@"+s.at()).step().healthy("b").step().want("Complete: a=2 b=2")
		},
		"the approval stays for clusters that join later": func(s *story) {
			empty(s).join("b", 1).step().verb(hubv1.RolloutApproveAnnotation, "asia@"+s.at()).step().healthy("b").step()
			s.verb(hubv1.RolloutApproveAnnotation, "").join("c", 1).step().want("Complete: a=2 b=2 c=2")
		},
		"a promotion that was too late for the change covers it": func(s *story) {
			empty(s).verb(hubv1.RolloutPromoteAnnotation, s.at()+" now").join("b", 1).step().want("Progressing rest: a=2 b=2")
		},
		"the first revision, a promotion and a return need no approval": func(s *story) {
			s.in.Policy.Waves[1].Approval = hubv1.ApprovalManual
			s.join("bb", 1).step().want("Complete: a=1 b=1 c=1 d=1 e=1 bb=1").healthy("bb").step()
			s.change("t2").step().verb(hubv1.RolloutPromoteAnnotation, s.at()+" now").step().healthy("a", "b", "c", "d", "e", "bb").step()
			s.join("cc", 1).step().want("Complete: a=2 b=2 c=2 d=2 e=2 bb=2 cc=2").healthy("cc").step()
			s.later(time.Minute).undo("1").step().later(time.Second)
			for range 3 {
				s.healthy("a", "b", "c", "d", "e", "bb", "cc").step()
			}
			s.want("RolledBack: a=1 b=1 c=1 d=1 e=1 bb=1 cc=1").join("dd", 1).step().want("RolledBack: a=1 b=1 c=1 d=1 e=1 bb=1 cc=1 dd=1")
		},
	})
}

func TestAManualWaveWithoutClustersNeedsItsApproval(t *testing.T) {
	waits := func(s *story) *story { // wave asia is manual, and has lost its clusters before the change reaches it
		s.in.Policy.Waves[1].Approval = hubv1.ApprovalManual
		s.leave("b").leave("c").change("t2").step().healthy("a").step().want("WaitingForApproval asia: a=2 d=1 e=1")
		return s.says("wave asia waits for approval: hansectl rollout approve web asia -n shop")
	}
	tell(t, map[string]func(s *story){
		"an approval ends the wait": func(s *story) {
			waits(s).verb(hubv1.RolloutApproveAnnotation, "asia@"+s.at()).step().want("Progressing rest: a=2 d=2 e=2")
		},
		"a skip of the wave is no approval": func(s *story) {
			waits(s).verb(hubv1.RolloutSkipAnnotation, "wave/asia@"+s.at()).step().want("WaitingForApproval asia: a=2 d=1 e=1")
		},
		"a promotion ends the wait": func(s *story) {
			waits(s).verb(hubv1.RolloutPromoteAnnotation, s.at()+" now").step().want("Progressing rest: a=2 d=2 e=2")
		},
		"a cluster that joins waits with the others": func(s *story) {
			waits(s).join("b", 1).step().want("WaitingForApproval asia: a=2 d=1 e=1 b=1")
		},
		"a wave whose clusters leave while it waits goes on waiting": func(s *story) {
			s.in.Policy.Waves[1].Approval = hubv1.ApprovalManual
			s.change("t2").step().healthy("a").step().want("WaitingForApproval asia: a=2 b=1 c=1 d=1 e=1")
			s.leave("b").leave("c").step().want("WaitingForApproval asia: a=2 d=1 e=1")
		},
		"the last wave has passed at once": func(s *story) {
			s.in.Policy.Waves[2].Approval = hubv1.ApprovalManual
			s.leave("d").leave("e").change("t2").step().healthy("a").step().healthy("b", "c").step().want("Complete: a=2 b=2 c=2")
		},
	})
}

func TestAReturnWaitsForClustersWhoseRemovalsAreHeld(t *testing.T) {
	tell(t, map[string]func(s *story){
		"until a user has confirmed the removals": func(s *story) {
			s.change("t2").step().healthy("a").step().healthy("b", "c").step().healthy("d", "e").step().later(time.Minute)
			b := s.target("b")
			b.Kept, b.Held = "waits for a confirmation", true
			s.undo("1").step().healthy("a").step().healthy("c").step().want("WaitingForClusters asia: a=1 b=2 c=1 d=2 e=2")
			s.says("wave asia waits for b, which keeps revision 2 and waits for a confirmation; to leave the cluster out, use hansectl rollout skip web b -n shop")
			b = s.target("b")
			b.Kept, b.Held = "", false
			s.step().healthy("b").step().healthy("d", "e").step().want("RolledBack: a=1 b=1 c=1 d=1 e=1")
		},
	})
}

func TestOnlyAReturnNeedsNoApproval(t *testing.T) {
	manual := func(s *story) *story {
		s.in.Policy.Waves[1].Approval = hubv1.ApprovalManual
		return s.change("t2").step().healthy("a").step().want("WaitingForApproval asia: a=2 b=1 c=1 d=1 e=1")
	}
	tell(t, map[string]func(s *story){
		"an undo to a revision that has not passed needs one": func(s *story) {
			manual(s).later(time.Minute).undo("1").step().healthy("a").step().want("RolledBack: a=1 b=1 c=1 d=1 e=1")
			s.undo("2").step().later(time.Minute).healthy("a").step().want("WaitingForApproval asia: a=2 b=1 c=1 d=1 e=1")
		},
		"a change back to a content that has passed needs one": func(s *story) {
			manual(s).verb(hubv1.RolloutApproveAnnotation, "asia@"+s.at()).step().healthy("b", "c").step().healthy("d", "e").step()
			s.later(time.Minute).change("t1").step().healthy("a").step().want("WaitingForApproval asia: a=3 b=2 c=2 d=2 e=2")
		},
		"the end of an undo needs one": func(s *story) {
			manual(s).verb(hubv1.RolloutApproveAnnotation, "asia@"+s.at()).step().healthy("b", "c").step().healthy("d", "e").step()
			s.later(time.Minute).undo("1").step()
			for range 3 {
				s.later(time.Second).healthy("a", "b", "c", "d", "e").step()
			}
			s.want("RolledBack: a=1 b=1 c=1 d=1 e=1").later(time.Minute).undo("").step().healthy("a").step().want("WaitingForApproval asia: a=2 b=1 c=1 d=1 e=1")
		},
	})
}

func TestAChangeBeginsAfterEachEarlierRequest(t *testing.T) {
	s := running(t)
	s.in.Policy.Waves[1].Approval = hubv1.ApprovalManual
	s.verb(hubv1.RolloutApproveAnnotation, "asia@"+s.at())
	s.in.Now = s.in.Now.Add(-time.Minute) // a new leader, whose clock is behind
	s.change("t2").step().later(2 * time.Minute).healthy("a").step().want("WaitingForApproval asia: a=2 b=1 c=1 d=1 e=1")
	other := running(t)
	other.in.Peers = NewPeers([]Progress{{Object: "Widget shop/cart", Began: other.in.Now.Add(time.Minute), Done: true}})
	other.change("t2").step()
	if began, last := other.last.Rollout.Began.Time, other.in.Now.Add(time.Minute); began.Before(last) {
		t.Errorf("the change began at %s, before the change of the placement at %s", began, last)
	}
}

func TestAnEditOfTheWavesDoesNotEndAFailure(t *testing.T) {
	s := running(t)
	s.change("t2").step().healthy("a").step().report(hubv1.HealthDegraded, "b", "c").later(time.Minute).step().want("Failed asia: a=2 b=2 c=2 d=1 e=1")
	s.in.Policy.Waves[1].Name = "europe"
	s.step().want("Failed canary: a=2 b=2 c=2 d=1 e=1")
	if !s.last.Progress.Failed {
		t.Error("the edit ends the stop of other objects")
	}
	s.in.Live.Policies = "p2"
	if s.step(); s.last.Progress.Failed {
		t.Error("a new revision does not end the stop of other objects")
	}
}
