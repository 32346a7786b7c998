package rollout

import (
	"testing"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// policies changes the override rules of the object, one second later in the story. digest identifies the new rules.
func (s *story) policies(digest string) *story {
	s.later(time.Second).in.Live.Policies = digest
	return s
}

// all makes all clusters of the story healthy, wave by wave.
func (s *story) all() *story {
	for range 4 {
		s.step().healthy("a", "b", "c", "d", "e")
	}
	return s.step()
}

// content returns the template and the policies of a revision as text.
func (s *story) content(number int64) string {
	for _, r := range s.last.Revisions {
		if r.Number == number {
			return r.Template + r.Policies
		}
	}
	return ""
}

// wantContents checks the contents of two revisions: the one that the clusters get, and the newest one.
func (s *story) wantContents(desired, newest string) *story {
	s.t.Helper()
	gets, has := s.content(s.last.Rollout.Revision), s.content(s.last.Rollout.Newest)
	if gets != desired || has != newest {
		s.t.Fatalf("the clusters get %s, and the hub object has %s, want %s and %s", gets, has, desired, newest)
	}
	return s
}

func TestAPolicyEditAfterARollback(t *testing.T) {
	rolledBack := func(s *story) *story {
		s.in.Policy.OnFailure = hubv1.FailureRollback
		s.change("t2").step().report(hubv1.HealthDegraded, "a").later(time.Minute).step().healthy("a").step()
		return s.want("RolledBack: a=1 b=1 c=1 d=1 e=1")
	}
	stopped := func(s *story) *story {
		s.change("t2").step().report(hubv1.HealthDegraded, "a").later(time.Minute).step()
		return s.want("Failed canary: a=2 b=1 c=1 d=1 e=1")
	}
	const origin = "revision 3 has newer policies and the template of revision 1, because revision 2 failed"
	const asked = "revision 3 has newer policies and the template of revision 1, as annotation hanse.dev/rollout-undo asks"
	tell(t, map[string]func(s *story){
		"the new policies go by wave with the template to which the clusters returned": func(s *story) {
			rolledBack(s).policies("p2").step().want("Progressing canary: a=3 b=1 c=1 d=1 e=1").says(origin).wantContents("t1p2", "t2p2")
			if r, p := s.last.Rollout, s.last.Progress; r.Newest != 4 || r.Failed != 0 || r.RolledBack != 2 || p.Failed || p.Done {
				t.Errorf("%+v %+v", r, p)
			}
			s.step().want("Progressing canary: a=3 b=1 c=1 d=1 e=1")
			s.healthy("a").step().want("Progressing asia: a=3 b=3 c=3 d=1 e=1").says(origin)
			s.healthy("b", "c").step().healthy("d", "e").step().want("RolledBack: a=3 b=3 c=3 d=3 e=3").says("all clusters have revision 3; " + StillHas(4) + "; " + origin)
			if r := s.last.Rollout; r.Passed != 3 {
				t.Errorf("%+v", r)
			}
		},
		"so do those of each further edit": func(s *story) {
			rolledBack(s).policies("p2").all().policies("p3").step().want("Progressing canary: a=5 b=3 c=3 d=3 e=3").wantContents("t1p3", "t2p3")
			s.says("revision 5 has newer policies and the template of revision 1, because revision 2 failed")
		},
		"the edit may come while the clusters return": func(s *story) {
			s.in.Policy.OnFailure = hubv1.FailureRollback
			s.change("t2").step().healthy("a").step().report(hubv1.HealthDegraded, "b").later(time.Minute).step().want("RollingBack asia: a=1 b=1 c=1 d=1 e=1")
			s.policies("p2").step().want("Progressing canary: a=3 b=1 c=1 d=1 e=1").wantContents("t1p2", "t2p2")
		},
		"policies that were at fault are replaced by the new ones": func(s *story) {
			s.in.Policy.OnFailure = hubv1.FailureRollback
			s.policies("bad").step().report(hubv1.HealthDegraded, "a").later(time.Minute).step().healthy("a").step().want("RolledBack: a=1 b=1 c=1 d=1 e=1")
			s.policies("p2").all().want("Complete: a=3 b=3 c=3 d=3 e=3").says("").wantContents("t1p2", "t1p2")
		},
		"policies that return to those before the failure are no change for the clusters": func(s *story) {
			s.in.Policy.OnFailure = hubv1.FailureRollback
			s.policies("bad").change("t2").step().report(hubv1.HealthDegraded, "a").later(time.Minute).step().healthy("a").step()
			s.want("RolledBack: a=1 b=1 c=1 d=1 e=1").policies("p1").step().want("Progressing canary: a=3 b=3 c=3 d=3 e=3").wantContents("t1p1", "t2p1")
			if s.last.Moved != nil {
				t.Errorf("moved %v", s.last.Moved)
			}
			s.all().want("RolledBack: a=3 b=3 c=3 d=3 e=3").says("all clusters returned to revision 3: revision 2 failed; " + StillHas(4))
		},
		"another template of the user ends it": func(s *story) {
			rolledBack(s).policies("p2").all().change("t3").all().want("Complete: a=5 b=5 c=5 d=5 e=5").wantContents("t3p2", "t3p2")
			s.policies("p3").step().wantContents("t3p3", "t3p3")
		},
		"the template to which the clusters returned ends it, when the user takes it up": func(s *story) {
			rolledBack(s).policies("p2").all().change("t1").all().want("Complete: a=5 b=5 c=5 d=5 e=5").says("")
			if r := s.last.Rollout; r.RolledBack != 0 {
				t.Errorf("%+v", r)
			}
		},
		"a promotion ends it": func(s *story) {
			rolledBack(s).policies("p2").step().later(time.Minute).verb(hubv1.RolloutPromoteAnnotation, s.at()+" now").step()
			s.want("Progressing rest: a=4 b=4 c=4 d=4 e=4").wantContents("t2p2", "t2p2").all().want("Complete: a=4 b=4 c=4 d=4 e=4")
		},
		"an undo to the newest revision tries the template again": func(s *story) {
			rolledBack(s).policies("p2").step().undo("4").step().want("Progressing canary: a=4 b=1 c=1 d=1 e=1").says("")
		},
		"the end of an earlier undo does not try the template again": func(s *story) {
			rolledBack(s.undo("1").step()).policies("p2").all().undo("").step().want("RolledBack: a=3 b=3 c=3 d=3 e=3")
		},
		"new policies that fail return to the last revision that passed": func(s *story) {
			rolledBack(s).policies("bad").step().report(hubv1.HealthDegraded, "a").later(time.Minute).step().want("RollingBack canary: a=1 b=1 c=1 d=1 e=1")
			s.healthy("a").step().want("RolledBack: a=1 b=1 c=1 d=1 e=1").says("all clusters returned to revision 1: revision 3 failed; " + StillHas(4))
			s.policies("p3").step().wantContents("t1p3", "t2p3").says("revision 5 has newer policies and the template of revision 1, because revision 2 failed")
		},
		"a change that is stopped and not undone goes on with its template": func(s *story) {
			stopped(s).policies("p2").step().want("Progressing canary: a=3 b=1 c=1 d=1 e=1").says("").wantContents("t2p2", "t2p2")
		},
		"after an undo the new policies go with the template that the user asked for": func(s *story) {
			stopped(s).undo("1").step().later(time.Minute).healthy("a").step().want("RolledBack: a=1 b=1 c=1 d=1 e=1")
			s.policies("p2").step().want("Progressing canary: a=3 b=1 c=1 d=1 e=1").says(asked).wantContents("t1p2", "t2p2")
			s.all().want("RolledBack: a=3 b=3 c=3 d=3 e=3").says("all clusters have revision 3; " + StillHas(4) + "; " + asked)
			s.undo("").step().want("Progressing canary: a=4 b=3 c=3 d=3 e=3").wantContents("t2p2", "t2p2")
		},
		"an undo of policies ends with the next ones": func(s *story) {
			s.policies("p2").all().undo("1").all().want("RolledBack: a=1 b=1 c=1 d=1 e=1").policies("p3").all()
			s.want("Complete: a=3 b=3 c=3 d=3 e=3").wantContents("t1p3", "t1p3")
		},
		"an edit that comes with the end of the undo goes with the newest template": func(s *story) {
			s.change("t2").step().undo("1").all().policies("p2").undo("").step().want("Progressing canary: a=4 b=1 c=1 d=1 e=1").wantContents("t2p2", "t2p2")
		},
	})
}
