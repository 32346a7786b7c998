package membership

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestTainted(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	taint := func(effect corev1.TaintEffect, ago time.Duration) corev1.Taint {
		at := metav1.NewTime(noon.Add(-ago))
		return corev1.Taint{Key: hubv1.UnreachableTaint, Effect: effect, TimeAdded: &at}
	}
	const noSchedule, noExecute = corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute
	tests := map[string]struct {
		before []corev1.Taint
		silent bool
		want   []corev1.Taint
		wait   time.Duration
	}{
		"a cluster that answers has none":            {},
		"one that has just fallen silent":            {silent: true, want: []corev1.Taint{taint(noSchedule, 0)}, wait: time.Minute},
		"one that has been silent for a while":       {before: []corev1.Taint{taint(noSchedule, 20*time.Second)}, silent: true, want: []corev1.Taint{taint(noSchedule, 20*time.Second)}, wait: 40 * time.Second},
		"one that was silent for the grace period":   {before: []corev1.Taint{taint(noSchedule, time.Minute)}, silent: true, want: []corev1.Taint{taint(noSchedule, time.Minute), taint(noExecute, 0)}},
		"one that has been silent ever since":        {before: []corev1.Taint{taint(noSchedule, time.Hour), taint(noExecute, time.Minute)}, silent: true, want: []corev1.Taint{taint(noSchedule, time.Hour), taint(noExecute, time.Minute)}},
		"one that answers again loses both":          {before: []corev1.Taint{taint(noSchedule, time.Hour), taint(noExecute, time.Minute)}, want: []corev1.Taint{}},
		"one that has just answered and does not":    {before: []corev1.Taint{}, silent: true, want: []corev1.Taint{taint(noSchedule, 0)}, wait: time.Minute},
		"what is not of the hub's taint stays as is": {before: []corev1.Taint{{Key: "other", Effect: noExecute}}, want: []corev1.Taint{{Key: "other", Effect: noExecute}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, wait := tainted(tc.before, tc.silent, noon, time.Minute)
			if diff := cmp.Diff(tc.want, got); diff != "" || wait != tc.wait {
				t.Errorf("look again after %s, want %s; taints (-want +got):\n%s", wait, tc.wait, diff)
			}
		})
	}
}

func (s scene) tainted(want ...corev1.TaintEffect) {
	s.Helper()
	s.eventually(fmt.Sprintf("taints %v", want), func() string {
		var got []corev1.TaintEffect
		for _, t := range s.get().Status.Taints {
			got = append(got, t.Effect)
			if t.TimeAdded == nil || t.Key != hubv1.UnreachableTaint {
				return fmt.Sprintf("one is %+v", t)
			}
		}
		return cmp.Diff(want, got)
	})
}

func TestAClusterThatDoesNotAnswerIsTainted(t *testing.T) {
	t.Parallel()
	s := newScene(t, "tainted")
	s.ready("tainted")
	s.tainted()
	links.become(s.name, away(connected("tainted")))
	s.tainted(corev1.TaintEffectNoSchedule)
	since := s.get().Status.Taints[0].TimeAdded
	s.tainted(corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute)
	taints := s.get().Status.Taints
	if !taints[0].TimeAdded.Equal(since) || taints[1].TimeAdded.Sub(since.Time) < grace {
		t.Errorf("after %s the taints are %+v", grace, taints)
	}
	links.become(s.name, connecting) // the state of a link after a restart
	s.settle()
	if diff := cmp.Diff(taints, s.get().Status.Taints); diff != "" {
		t.Errorf("while the link is tried anew, the taints change (-want +got):\n%s", diff)
	}
	links.become(s.name, connected("tainted"))
	s.tainted()
}

func TestAClusterThatAnswersIsNotTainted(t *testing.T) {
	t.Parallel()
	s := newScene(t, "answers")
	s.ready("answers")
	for _, reason := range []string{hubv1.ReasonUnauthorized, hubv1.ReasonCertificateUnknown, hubv1.ReasonThrottled, hubv1.ReasonWatchesStalled, hubv1.ReasonForbidden} {
		state := away(connected("answers"))
		state.Reason = reason
		links.become(s.name, state)
		s.is(hubv1.ConditionReady, metav1.ConditionFalse, reason, "")
		if got := s.get().Status.Taints; len(got) > 0 {
			t.Errorf("%s: tainted %v", reason, got)
		}
	}
	links.become(s.name, away(connected("answers")))
	s.tainted(corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute)
	state := away(connected("answers"))
	state.Reason = hubv1.ReasonUnauthorized
	links.become(s.name, state)
	s.tainted()
}
