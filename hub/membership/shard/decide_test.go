package shard

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
)

// live and lapsed return replicas with the given names. The Leases of live replicas are valid, and the Lease of a
// lapsed one has expired. The seat, by which members are distributed, equals the name.
func live(names ...string) []peer {
	var out []peer
	for _, n := range names {
		out = append(out, peer{id: n, seat: n, live: true})
	}
	return out
}

func lapsed(name string) peer { return peer{id: name, seat: name} }

// owned returns the name of a member that belongs to the first of the replicas.
func owned(t *testing.T, replicas ...string) string {
	t.Helper()
	for i := range 1000 {
		if m := fmt.Sprintf("member-%d", i); Owner(m, replicas) == replicas[0] {
			return m
		}
	}
	t.Fatalf("no member belongs to %s", replicas[0])
	return ""
}

func TestDecide(t *testing.T) {
	mine, yours := owned(t, "a", "b"), owned(t, "b", "a")
	tests := map[string]struct {
		peers   []peer
		members []string
		fences  map[string]string
		held    []string
		want    []action
	}{
		"a member without a fence is taken by its owner":       {peers: live("a", "b"), members: []string{mine, yours}, want: []action{{take, mine}}},
		"one that was let go is taken":                         {peers: live("a", "b"), members: []string{mine}, fences: map[string]string{mine: ""}, want: []action{{take, mine}}},
		"one whose holder is gone is taken":                    {peers: live("a", "b"), members: []string{mine}, fences: map[string]string{mine: "x"}, want: []action{{take, mine}}},
		"one whose holder lives is waited for":                 {peers: live("a", "b"), members: []string{mine}, fences: map[string]string{mine: "b"}},
		"one whose holder has not renewed is waited for, too":  {peers: append(live("a"), lapsed("b")), members: []string{mine}, fences: map[string]string{mine: "b"}},
		"a replica that has not renewed shares in nothing new": {peers: append(live("a"), lapsed("b")), members: []string{yours}, want: []action{{take, yours}}},
		"a member is worked on once the fence is ours":         {peers: live("a", "b"), members: []string{mine}, fences: map[string]string{mine: "a"}, want: []action{{hold, mine}}},
		"nothing is done about a member that is held":          {peers: live("a", "b"), members: []string{mine}, fences: map[string]string{mine: "a"}, held: []string{mine}},
		"a member that belongs to a replica that came is let go": {
			peers: live("a", "b"), members: []string{yours}, fences: map[string]string{yours: "a"}, held: []string{yours}, want: []action{{release, yours}},
		},
		"so is one that was let go before the fence could be written": {
			peers: live("a", "b"), members: []string{yours}, fences: map[string]string{yours: "a"}, want: []action{{release, yours}},
		},
		"a member whose fence another one has is dropped": {
			peers: live("a", "b"), members: []string{mine}, fences: map[string]string{mine: "b"}, held: []string{mine}, want: []action{{drop, mine}},
		},
		"one whose fence was deleted is dropped before it is taken again": {
			peers: live("a", "b"), members: []string{mine}, held: []string{mine}, want: []action{{drop, mine}},
		},
		"the fence of a member that is gone goes": {
			peers: live("a", "b"), fences: map[string]string{mine: "a", yours: "x"}, held: []string{mine}, want: []action{{forget, mine}, {forget, yours}},
		},
		"that of another replica is left to it":                 {peers: live("a", "b"), fences: map[string]string{mine: "b"}},
		"a replica that is not among the living lets go of all": {peers: live("b"), members: []string{mine}, fences: map[string]string{mine: "a"}, held: []string{mine}, want: []action{{release, mine}}},
		"of two terms of one seat the last one counts": {
			peers: []peer{{id: "a", seat: "s", live: true}, {id: "a2", seat: "s", live: true}}, members: []string{mine}, fences: map[string]string{mine: "a"}, held: []string{mine},
			want: []action{{release, mine}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			v := view{self: "a", peers: tc.peers, members: tc.members, fences: tc.fences, held: map[string]bool{}}
			for _, m := range tc.held {
				v.held[m] = true
			}
			slices.SortFunc(tc.want, func(a, b action) int { return cmpStrings(a.member, b.member) })
			if diff := cmp.Diff(tc.want, decide(v), cmp.AllowUnexported(action{})); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
		})
	}
}

func cmpStrings(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

func TestOnlyTheMembersOfAReplicaThatComesOrGoesMove(t *testing.T) {
	two, three := []string{"hub-0", "hub-1"}, []string{"hub-0", "hub-1", "hub-2"}
	counts := map[string]int{}
	for i := range 300 {
		m := fmt.Sprintf("member-%d", i)
		before, after := Owner(m, two), Owner(m, three)
		counts[after]++
		if after != before && after != "hub-2" {
			t.Errorf("%s moved from %s to %s because hub-2 came", m, before, after)
		}
	}
	for seat, n := range counts {
		if n < 75 {
			t.Errorf("%s has %d of 300 members", seat, n)
		}
	}
}

func TestATermThatHasRunOutStaysOver(t *testing.T) {
	begin := time.Now()
	clock := begin
	term := newTerm("a", func() time.Time { return clock }, begin)
	h := &Hold{term: term}
	at := func(d time.Duration) { clock = begin.Add(d) }

	at(14 * time.Second)
	if !h.Valid() || !term.renew(begin.Add(13*time.Second)) {
		t.Error("the term is over before its Lease has run out")
	}
	at(27 * time.Second)
	if !h.Valid() {
		t.Error("a renewal counts from when it was sent: the term is over too soon")
	}
	at(28 * time.Second)
	if h.Valid() {
		t.Error("the hold is valid although the Lease has run out")
	}
	at(20 * time.Second)
	if term.renew(clock) || h.Valid() {
		t.Error("a term that was over goes on")
	}
}

func TestAHoldThatWasReleasedIsNotValid(t *testing.T) {
	h := &Hold{term: newTerm("a", time.Now, time.Now())}
	h.release()
	if h.Valid() {
		t.Error("it is valid")
	}
}

func TestALeaseRunsOutByTheClockOfWhoSeesIt(t *testing.T) {
	clock := time.Now()
	b := &book{now: func() time.Time { return clock }, leases: map[string]entry{}}
	seen := func(version string) {
		l := newPeerLease("ns", "a", "a", nil, time.Unix(0, 0)) // the time of another clock, which is ignored
		l.ResourceVersion = version
		b.note(l)
	}
	state := func() (alive bool, overdue []*coordinationv1.Lease) {
		peers, overdue, _, _ := b.read()
		return peers[0].live, overdue
	}
	seen("5")
	clock = clock.Add(leaseLasts - time.Second)
	if alive, _ := state(); !alive {
		t.Error("it is taken for dead too soon")
	}
	seen("6")
	clock = clock.Add(leaseLasts - time.Second)
	seen("6") // the same version
	seen("4") // an older version in a late event
	if alive, _ := state(); !alive {
		t.Error("the renewal does not count")
	}
	clock = clock.Add(time.Second)
	if alive, overdue := state(); alive || len(overdue) != 1 {
		t.Errorf("alive %v, %d overdue; want a Lease that has run out", alive, len(overdue))
	}
}
