package dispatch

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// measured returns the value of a gauge with this label value. For a histogram, it returns the number of observations.
// It returns -1 if the metric has no such series.
func measured(t *testing.T, name, label string) int {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && m.GetLabel()[0].GetValue() == label {
				return int(m.GetHistogram().GetSampleCount()) + int(m.GetGauge().GetValue())
			}
		}
	}
	return -1
}

const appliedIn = "hanse_cluster_apply_duration_seconds"

func TestTheTimeFromAChangeToTheCopyIsMeasuredOnce(t *testing.T) {
	m := takes("measured")
	var refuses atomic.Bool
	m.answer = func(context.Context, string) member.Outcome {
		if refuses.Load() {
			return member.Outcome{Applied: metav1.ConditionFalse, Reason: hubv1.ReasonAdmissionDenied, Retry: member.RetryAfter, After: 10 * time.Millisecond}
		}
		return member.Outcome{Applied: metav1.ConditionTrue, Reason: hubv1.ReasonApplied, Wrote: true}
	}
	w := newWorld(t, m)
	w.engage()
	kind := schema.GroupVersionKind{Group: "test.hanse.dev", Version: "v1", Kind: "Measured"}
	is := func(when string, want int) {
		t.Helper()
		w.eventually(5*time.Second, func() string {
			if got := measured(t, appliedIn, "measured"); got != want || want > 0 && measured(t, "hanse_kind_apply_duration_seconds", "Measured") != want {
				return when + ": the time is not measured as often as wanted"
			}
			return ""
		})
	}
	is("a new queue has the series", 0)
	refuses.Store(true)
	w.create(kind, "web")
	w.reads("measured", "web", hubv1.ReasonAdmissionDenied, "")
	is("a refused copy", 0)
	refuses.Store(false)
	w.reads("measured", "web", hubv1.ReasonApplied, "")
	is("the copy is there", 1)

	w.dispatcher.WakeCluster(t.Context(), "measured")
	w.create(kind, "other") // a new object is written first, so the replay is over or waits
	w.reads("measured", "other", hubv1.ReasonApplied, "")
	is("a replay that writes nothing", 2)
	if got := measured(t, "hanse_member_queue_depth", "measured"); got < 0 {
		t.Error("the queue has no depth")
	}
}

func TestAMemberWithoutAQueueHasNoSeries(t *testing.T) {
	w := newWorld(t, takes("leaving"))
	ctx, cancel := context.WithCancel(t.Context())
	if err := w.dispatcher.Engage(ctx, "leaving"); err != nil {
		t.Fatal(err)
	}
	q := w.dispatcher.queue("leaving")
	all := []string{appliedIn, "hanse_member_queue_depth", "hanse_member_in_flight", "hanse_member_in_flight_limit", "hanse_member_circuit"}
	for _, name := range all {
		w.eventually(5*time.Second, func() string {
			if measured(t, name, "leaving") < 0 {
				return name + " has no series"
			}
			return ""
		})
	}
	cancel()
	<-q.ended
	for _, name := range all {
		if measured(t, name, "leaving") >= 0 {
			t.Errorf("%s still has a series", name)
		}
	}
}

func TestAHoldEndsTheTimeOfAChange(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		state hubv1.TargetState
		o     member.Outcome
		ends  bool
	}{
		"a refused copy goes on":             {hubv1.TargetPresent, outcome(metav1.ConditionFalse, hubv1.ReasonForbidden, ""), false},
		"a suspended copy is held":           {hubv1.TargetPresent, outcome(metav1.ConditionFalse, hubv1.ReasonSuspended, ""), true},
		"a paused copy is held":              {hubv1.TargetPresent, outcome(metav1.ConditionFalse, hubv1.ReasonPaused, ""), true},
		"a copy that waits for an operator":  {hubv1.TargetPresent, outcome(metav1.ConditionFalse, hubv1.ReasonOperatorNotReady, ""), true},
		"a copy that is as wanted was there": {hubv1.TargetPresent, outcome(metav1.ConditionTrue, hubv1.ReasonApplied, ""), true},
		"a withdrawal is no change":          {hubv1.TargetAbsent, outcome(metav1.ConditionFalse, hubv1.ReasonFinalizersRemain, ""), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			q, err := newQueue("held", w.dispatcher.opts, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			r := &run{queue: q, binding: &hubv1.ResourceBinding{}, target: &hubv1.BindingTarget{State: tc.state}, changed: time.Now()}
			r.measure(tc.o)
			if r.changed.IsZero() != tc.ends {
				t.Errorf("the change has ended: %t", r.changed.IsZero())
			}
			r.keepChange()
			if kept := !q.copies.takeChange(r.key).IsZero(); kept == tc.ends {
				t.Errorf("the change is kept: %t", kept)
			}
			if measured(t, appliedIn, "held") > 0 {
				t.Error("a time was measured")
			}
		})
	}
}
