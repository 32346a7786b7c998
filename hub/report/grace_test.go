package report

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/member"
)

var (
	linkDown = member.LinkState{Ready: metav1.ConditionFalse, Reason: hubv1.ReasonUnreachable, Message: "refused"}
	linkUp   = member.LinkState{Ready: metav1.ConditionTrue}
)

func TestALinkThatIsDownForAMomentCostsNoWrite(t *testing.T) {
	w := newWorld(t, "Widget")
	w.grace = time.Hour
	w.start()
	o := w.object("web", present("a"), present("b"))
	for _, cluster := range []string{"a", "b"} {
		w.applied(o, cluster, hubv1.HealthHealthy, two)
	}
	w.until("all rows", healthyEverywhere)
	w.quiet()
	bindingWrites, objectWrites := w.writes(&hubv1.ResourceBindingList{}), w.writes(w.objects())

	for range 3 {
		w.fleet.link("b", linkDown)
		w.reporter.WakeCluster("b")
		w.reporter.Wake(w.id("web").BindingKey(), "a") // an event for another reason
		w.quiet()
		w.fleet.link("b", linkUp)
		w.reporter.WakeCluster("b")
		w.applied(o, "b", hubv1.HealthHealthy, two)
		w.quiet()
	}
	if got := []int{bindingWrites(), objectWrites()}; !slices.Equal(got, []int{0, 0}) {
		t.Errorf("writes of binding and object: %v, want none", got)
	}
}

func TestWhatSchedulingSaysOfAClusterThatIsAwayForAMomentWaits(t *testing.T) {
	w := newWorld(t, "Widget")
	w.grace = 5 * time.Second
	w.decisions.scheduled = metav1.Condition{Status: metav1.ConditionTrue, Reason: hubv1.ReasonScheduled, Message: "2 of 3 clusters"}
	w.start()
	o := w.object("web", present("a"), present("b"))
	for _, cluster := range []string{"a", "b"} {
		w.applied(o, cluster, hubv1.HealthHealthy, two)
	}
	w.until("all rows", healthyEverywhere)
	w.quiet()
	bindingWrites := w.writes(&hubv1.ResourceBindingList{})
	notReady := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	notReady.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: metav1.ConditionFalse, Reason: hubv1.ReasonUnreachable}}
	says := func(message string) {
		w.decisions.mu.Lock()
		w.decisions.scheduled.Message = message
		w.decisions.mu.Unlock()
		w.reporter.WakeDecided(w.id("web").BindingKey(), true)
		// After an observation, the next write comes sooner than after a decision.
		w.reporter.Wake(w.id("web").BindingKey(), "a")
		w.quiet()
	}

	begin := time.Now()
	w.reporter.noteReadiness(notReady)
	says("2 of 3 clusters: 1 not ready")
	if n := bindingWrites(); n != 0 && time.Since(begin) < w.grace {
		t.Errorf("%d writes of the binding within the time of grace", n)
	}
	w.until("the decision", func(s *hubv1.BindingStatus) bool {
		return meta.FindStatusCondition(s.Conditions, hubv1.ConditionScheduled).Message == "2 of 3 clusters: 1 not ready"
	})
	w.reporter.noteReadiness(&hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}})
	says("2 of 3 clusters")
	w.until("the decision of before", func(s *hubv1.BindingStatus) bool {
		return meta.FindStatusCondition(s.Conditions, hubv1.ConditionScheduled).Message == "2 of 3 clusters"
	})
}

func TestTheMessageOfADecisionWaitsForTheGraceTimeOfClusters(t *testing.T) {
	clock := testclock.NewFakePassiveClock(time.Now())
	r := &Reporter{opts: Options{Clock: clock, Grace: time.Minute}, unready: map[string]unready{}}
	steps := []struct {
		what  string
		ready metav1.ConditionStatus
		after time.Duration // time since the previous step
		want  time.Duration
	}{
		{"a cluster that is not Ready", metav1.ConditionFalse, 40 * time.Second, 20 * time.Second},
		{"and Ready before scheduling has decided again", metav1.ConditionTrue, 5 * time.Second, 15 * time.Second},
		{"and not Ready again", metav1.ConditionFalse, 5 * time.Second, 10 * time.Second},
		{"and Ready", metav1.ConditionTrue, time.Minute, 0},
		{"and not Ready a minute later", metav1.ConditionFalse, 2 * time.Minute, 0},
		{"and Ready after a long time", metav1.ConditionTrue, 0, 0},
		{"and not Ready at once", metav1.ConditionFalse, 0, time.Minute},
	}
	for _, step := range steps {
		c := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		c.Status.Conditions = []metav1.Condition{{Type: hubv1.ConditionReady, Status: step.ready}}
		r.noteReadiness(c)
		clock.SetTime(clock.Now().Add(step.after))
		if got := max(0, r.graceLeft()); got != step.want {
			t.Errorf("%s: %s left, want %s", step.what, got, step.want)
		}
	}
}

func TestADeletedClusterHasNoGraceTime(t *testing.T) {
	clock := testclock.NewFakePassiveClock(time.Now())
	r := &Reporter{opts: Options{Clock: clock, Grace: time.Minute, Sources: Sources{Links: newFakeFleet()}}, unready: map[string]unready{}, away: map[string]bool{}, lost: map[string]time.Time{}}
	r.noteReadiness(clusterThatIs("a", metav1.ConditionFalse))
	r.ClusterChanged(t.Context(), changes.Cluster{Before: clusterThatIs("a", metav1.ConditionFalse)})
	if left := r.graceLeft(); left > 0 || len(r.unready) > 0 {
		t.Errorf("%s left, %d clusters kept", left, len(r.unready))
	}
}

func TestTheGracePeriodRestartsAfterALinkWasReady(t *testing.T) {
	links, clock := newFakeFleet(), testclock.NewFakePassiveClock(time.Now())
	r := &Reporter{opts: Options{Sources: Sources{Links: links}, Clock: clock, Grace: time.Minute}, away: map[string]bool{}, lost: map[string]time.Time{}}
	steps := []struct {
		what  string
		link  member.LinkState
		after time.Duration // time since the previous step
		want  bool          // whether the rows stay unchanged
	}{
		{"a link that is lost", linkDown, 59 * time.Second, true},
		{"and back in time", linkUp, 2 * time.Second, true},
		{"and lost again", linkDown, 59 * time.Second, true},
		{"for another reason", member.LinkState{Ready: metav1.ConditionFalse, Reason: hubv1.ReasonUnauthorized}, 2 * time.Second, false},
	}
	for _, step := range steps {
		links.link("a", step.link)
		r.WakeCluster("a")
		clock.SetTime(clock.Now().Add(step.after))
		if got := r.inGrace("a"); got != step.want {
			t.Errorf("%s: in grace %v, want %v", step.what, got, step.want)
		}
	}
}

// TestAFailedWatchCountsOnlyIfTheLinkDeliversEvents checks when a failed watch of one kind makes rows Unknown. If the
// whole cluster may be unreachable, the grace time of the link decides instead.
func TestAFailedWatchCountsOnlyIfTheLinkDeliversEvents(t *testing.T) {
	now := time.Now()
	failed := now.Add(-2 * time.Minute)
	tests := map[string]struct {
		failure      *member.WatchFailure
		lastObserved time.Time
		want         bool
	}{
		"the watch works":                                        {nil, now, false},
		"the watch failed within the grace time":                 {&member.WatchFailure{Since: now.Add(-time.Second)}, now, false},
		"the link has delivered no event since the failure":      {&member.WatchFailure{Since: failed}, failed.Add(-time.Second), false},
		"the link has delivered an event since the watch failed": {&member.WatchFailure{Since: failed}, failed.Add(time.Second), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			links := newFakeFleet()
			links.link("a", member.LinkState{Ready: metav1.ConditionTrue, LastObserved: tc.lastObserved})
			r := &run{reporter: &Reporter{opts: Options{Sources: Sources{Links: links}, Grace: time.Minute}}, now: metav1.NewTime(now)}
			if got := r.onlyTheKindFails("a", tc.failure); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
