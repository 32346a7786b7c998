package report

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
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
		w.observe(o, "a", hubv1.HealthHealthy, two) // something else wakes the binding
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

func TestTheTimeOfGraceBeginsAnewWhenALinkWasBack(t *testing.T) {
	links, clock := newFakeFleet(), testclock.NewFakePassiveClock(time.Now())
	r := &Reporter{opts: Options{Links: links, Clock: clock, Grace: time.Minute}, away: map[string]bool{}, lost: map[string]time.Time{}}
	steps := []struct {
		what  string
		link  member.LinkState
		after time.Duration // that much later
		want  bool          // rows stay as they are
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
