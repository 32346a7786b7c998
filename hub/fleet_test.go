package hub

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// fakeLinks has one link at most.
type fakeLinks struct {
	member.Links
	state *member.LinkState
}

func (f *fakeLinks) State(string) (member.LinkState, bool) {
	if f.state == nil {
		return member.LinkState{}, false
	}
	return *f.state, true
}

// watching is a member whose watches can be restarted.
type watching struct {
	member.Cluster
	restarts int
}

func (w *watching) Restart() { w.restarts++ }

func TestTheWatchesOfAMemberThatIsBackAreResumed(t *testing.T) {
	back, other := &watching{}, &watching{}
	f := &fleet{members: map[string]member.Cluster{"back": back, "other": other}}
	f.resume("back")
	f.resume("unknown")
	if back.restarts != 1 || other.restarts != 0 {
		t.Errorf("restarts: %d of the one that is back, %d of the other", back.restarts, other.restarts)
	}
	if _, ok := any(&memberCluster{}).(interface{ Restart() }); !ok {
		t.Error("a member cluster has no watches to restart")
	}
}

func TestLinkLog(t *testing.T) {
	up := &member.LinkState{Ready: metav1.ConditionTrue, Reason: hubv1.ReasonConnected}
	down := &member.LinkState{Ready: metav1.ConditionFalse, Reason: hubv1.ReasonUnreachable}
	denied := &member.LinkState{Ready: metav1.ConditionFalse, Reason: hubv1.ReasonUnauthorized}
	tests := map[string]struct {
		before       []*member.LinkState // nil: there is no link
		now          *member.LinkState
		moved, ready bool
	}{
		"the first that is heard of a link is news":              {now: up, moved: true, ready: true},
		"a link that stays as it was has not moved":              {before: []*member.LinkState{up}, now: up, ready: true},
		"one that is lost has moved":                             {before: []*member.LinkState{up}, now: down, moved: true},
		"one that is down for another reason has moved":          {before: []*member.LinkState{down}, now: denied, moved: true},
		"one that was ended has moved":                           {before: []*member.LinkState{up}, moved: true},
		"one that was ended and made anew is news, though up":    {before: []*member.LinkState{up, nil}, now: up, moved: true, ready: true},
		"one that was ended and made anew is news, also if down": {before: []*member.LinkState{down, nil}, now: down, moved: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			links := &fakeLinks{}
			l := &linkLog{links: links, last: map[string]string{}}
			for _, s := range tc.before {
				links.state = s
				l.moved("eu")
			}
			links.state = tc.now
			if moved, ready := l.moved("eu"); moved != tc.moved || ready != tc.ready {
				t.Errorf("moved %v, ready %v; want %v, %v", moved, ready, tc.moved, tc.ready)
			}
		})
	}
}
