package policies

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestTheRolloutOfAPlacement(t *testing.T) {
	binding := func(name string, r *hubv1.BindingRollout) hubv1.BindingObject {
		b := &hubv1.ResourceBinding{}
		b.Namespace, b.Spec.ObjectRef, b.Spec.Rollout = "ns", hubv1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: name}, r
		return b
	}
	complete := &hubv1.BindingRollout{Phase: hubv1.RolloutComplete}
	soaking := &hubv1.BindingRollout{Phase: hubv1.RolloutSoaking, Wave: "second", Message: "wave second must stay healthy for 60 s"}
	waiting := &hubv1.BindingRollout{Phase: hubv1.RolloutWaitingForApproval, Wave: "first", Message: "wave first waits for approval"}
	failed := &hubv1.BindingRollout{Phase: hubv1.RolloutFailed, Wave: "first", Failed: 3, Message: "eu failed"}
	back := &hubv1.BindingRollout{Phase: hubv1.RolloutRolledBack, Failed: 3, Message: "all clusters returned to revision 2"}
	tests := map[string]struct {
		bindings    []hubv1.BindingObject
		annotations map[string]string
		phase       hubv1.RolloutPhase
		wave        string
		stopped     string
		status      metav1.ConditionStatus
		reason      string
		message     string
	}{
		"all objects have their newest revision": {
			bindings: []hubv1.BindingObject{binding("a", complete), binding("b", complete)},
			phase:    hubv1.RolloutComplete, status: metav1.ConditionTrue, reason: hubv1.ReasonRolloutComplete, message: "2 of 2 objects",
		},
		"the object that is furthest behind speaks for all": {
			bindings: []hubv1.BindingObject{binding("a", complete), binding("b", soaking), binding("c", waiting)},
			phase:    hubv1.RolloutWaitingForApproval, wave: "first", status: metav1.ConditionFalse, reason: hubv1.ReasonRolloutMoving,
			message: "1 of 3 objects have their newest revision everywhere; ConfigMap ns/c: wave first waits for approval",
		},
		"an object that failed stops the placement": {
			bindings: []hubv1.BindingObject{binding("a", failed), binding("b", soaking)},
			phase:    hubv1.RolloutFailed, wave: "first", stopped: "ConfigMap ns/a", status: metav1.ConditionFalse, reason: hubv1.ReasonRolloutFailed,
			message: "ConfigMap ns/a: eu failed",
		},
		"so does an object that was rolled back": {
			bindings: []hubv1.BindingObject{binding("a", back)},
			phase:    hubv1.RolloutRolledBack, stopped: "ConfigMap ns/a", status: metav1.ConditionFalse, reason: hubv1.ReasonRolloutFailed,
			message: "returned to revision 2",
		},
		"an object without a revision is pending": {
			bindings: []hubv1.BindingObject{binding("a", nil)},
			phase:    hubv1.RolloutComplete, status: metav1.ConditionFalse, reason: hubv1.ReasonBaselinePending, message: "objects without a revision: 1",
		},
		"an annotation that cannot be read is named": {
			bindings: []hubv1.BindingObject{binding("a", complete)}, annotations: map[string]string{hubv1.RolloutPauseAnnotation: "maybe"},
			phase: hubv1.RolloutComplete, status: metav1.ConditionTrue, reason: hubv1.ReasonRolloutComplete, message: "hanse.dev/rollout-pause",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations, Generation: 2}}
			p.Spec.Rollout = &hubv1.RolloutPolicy{Waves: []hubv1.RolloutWave{{Name: "first"}, {Name: "second"}}}
			foldRollouts(&p.Status, p, tc.bindings, time.Now())
			r, c := p.Status.Rollout, meta.FindStatusCondition(p.Status.Conditions, hubv1.ConditionRolledOut)
			if r.Phase != tc.phase || r.Wave != tc.wave || (r.Stopped != nil) != (tc.stopped != "") || r.Stopped != nil && r.Stopped.Object != tc.stopped {
				t.Errorf("the rollout is %+v", r)
			}
			if c == nil || c.Status != tc.status || c.Reason != tc.reason || !strings.Contains(c.Message, tc.message) {
				t.Errorf("the condition is %+v", c)
			}
			p.Spec.Rollout = nil
			foldRollouts(&p.Status, p, tc.bindings, time.Now())
			if p.Status.Rollout != nil || meta.FindStatusCondition(p.Status.Conditions, hubv1.ConditionRolledOut) != nil {
				t.Errorf("without a rollout, the status is %+v", p.Status)
			}
		})
	}
}

func TestAnObjectThatWaitsForAUserSpeaksForItsWave(t *testing.T) {
	early, late := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(2000, 0))
	binding := func(name string, r hubv1.BindingRollout) hubv1.BindingObject {
		b := &hubv1.ResourceBinding{}
		b.Namespace, b.Spec.ObjectRef, b.Spec.Rollout = "ns", hubv1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Name: name}, &r
		return b
	}
	p := &hubv1.Placement{}
	p.Spec.Rollout = &hubv1.RolloutPolicy{Waves: []hubv1.RolloutWave{{Name: "first"}, {Name: "second"}}}
	foldRollouts(&p.Status, p, []hubv1.BindingObject{
		binding("a", hubv1.BindingRollout{Phase: hubv1.RolloutProgressing, Wave: "first", Revision: 2, WaveBegan: &late}),
		binding("b", hubv1.BindingRollout{Phase: hubv1.RolloutWaitingForApproval, Wave: "first", Revision: 7}),
		binding("c", hubv1.BindingRollout{Phase: hubv1.RolloutProgressing, Wave: "first", Revision: 3, WaveBegan: &early}),
		binding("d", hubv1.BindingRollout{Phase: hubv1.RolloutWaitingForClusters, Wave: "second", Revision: 4}),
	}, time.Now())
	r := p.Status.Rollout
	if r.Phase != hubv1.RolloutWaitingForApproval || r.Wave != "first" || r.Object != "ConfigMap ns/b" || r.Revision != 7 || !r.WaveBegan.Equal(&early) {
		t.Errorf("the rollout is %+v", r)
	}
}

func TestARequestOfAUserIsRecorded(t *testing.T) {
	noon := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	p := &hubv1.Placement{}
	p.Spec.Rollout = &hubv1.RolloutPolicy{Waves: []hubv1.RolloutWave{{Name: "first"}}}
	p.Annotations = map[string]string{
		hubv1.ChangedByAnnotation: "kim", hubv1.RolloutApproveAnnotation: "first@2026-11-26T12:00:00Z,first@2099-01-01T00:00:00Z",
		hubv1.RolloutPromoteAnnotation: "2099-01-01T00:00:00Z hotfix",
	}
	refused := foldRollouts(&p.Status, p, nil, noon)
	if len(refused) != 2 || !strings.Contains(refused[0].Error(), "hanse.dev/rollout-approve: 2099-01-01T00:00:00Z: the time was in the future") {
		t.Errorf("refused are %v", refused)
	}
	r := p.Status.Rollout
	if len(r.Approvals) != 2 || r.Approvals[0].By != "kim" || r.Approvals[0].Refused || !r.Approvals[1].Refused || r.Promotion == nil || !r.Promotion.Refused {
		t.Errorf("recorded are %+v", r)
	}
	p.Annotations[hubv1.ChangedByAnnotation] = "lee"
	foldRollouts(&p.Status, p, nil, noon.Add(100*365*24*time.Hour))
	if again := p.Status.Rollout; !again.Approvals[1].Refused || again.Approvals[0].By != "kim" {
		t.Errorf("a request is judged a second time: %+v", again)
	}
}
