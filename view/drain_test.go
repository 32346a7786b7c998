package view

import (
	"testing"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestTheProgressOfADrain(t *testing.T) {
	tests := map[string]struct {
		status *hubv1.DrainStatus
		state  string
		end    DrainEnd
	}{
		"before the hub has looked": {nil, "waiting for the hub to process the drain", DrainGoesOn},
		"while objects move": {
			&hubv1.DrainStatus{Total: 14, Remaining: 12, Moving: 10, Message: "10 objects are moving"},
			"2 of 14 objects moved; 10 objects are moving", DrainGoesOn,
		},
		"one is blocked and one moves": {&hubv1.DrainStatus{Total: 3, Remaining: 3, Moving: 1, Blocked: 1, Staying: 1}, "0 of 3 objects moved", DrainGoesOn},
		"all that is left is blocked or stays": {
			&hubv1.DrainStatus{Total: 3, Remaining: 2, Blocked: 1, Staying: 1, Message: "1 object cannot go"}, "1 of 3 objects moved; 1 object cannot go", DrainBlocked,
		},
		"all that is left is wanted on every cluster": {
			&hubv1.DrainStatus{Total: 14, Remaining: 14, Staying: 14, Message: "14 objects stay"}, "0 of 14 objects moved; 14 objects stay", DrainStaying,
		},
		"all were moved":           {&hubv1.DrainStatus{Total: 1}, "drained: 1 of 1 object moved", DrainDone},
		"there were none":          {&hubv1.DrainStatus{}, "drained: there were no objects to move", DrainDone},
		"an older hub has counted": {&hubv1.DrainStatus{Remaining: 2, Moving: 2}, "2 objects left", DrainGoesOn},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			m := &hubv1.MemberCluster{Spec: hubv1.MemberClusterSpec{Drain: &hubv1.DrainPolicy{}}, Status: hubv1.MemberClusterStatus{Drain: tc.status}}
			state, end := DrainProgress(m)
			if state != tc.state || end != tc.end {
				t.Errorf("got %q, %v; want %q, %v", state, end, tc.state, tc.end)
			}
		})
	}
	evicting := &hubv1.MemberCluster{
		Spec:   hubv1.MemberClusterSpec{Drain: &hubv1.DrainPolicy{Evict: true}},
		Status: hubv1.MemberClusterStatus{Drain: &hubv1.DrainStatus{Total: 3, Remaining: 1, Staying: 1, Evicted: 1}},
	}
	if state, end := DrainProgress(evicting); state != "1 of 3 objects moved, 1 evicted until the drain ends" || end != DrainGoesOn {
		t.Errorf("of a drain that evicts got %q, %v", state, end)
	}
}
