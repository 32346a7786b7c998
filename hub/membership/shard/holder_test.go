package shard

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestHolderIsWhatTheReplicaSaysThatTheFenceNames(t *testing.T) {
	c := &Coordinator{book: &book{now: time.Now, leases: map[string]entry{}}}
	notes := map[string]string{"hanse.dev/view-address": "10.0.0.1:8444"}
	c.book.note(newPeerLease("ns", "a", "a", notes, time.Unix(0, 0)))
	c.book.note(newFence("ns", "m1", "a"))
	c.book.note(newFence("ns", "m2", "b")) // the peer Lease of b does not exist
	for member, want := range map[string]map[string]string{"m1": notes, "m2": nil, "m3": nil} {
		if diff := cmp.Diff(want, c.Holder(member)); diff != "" {
			t.Errorf("%s: %s", member, diff)
		}
	}
}

func TestEveryReplicaMustHaveTheAnnotation(t *testing.T) {
	c := &Coordinator{book: &book{now: time.Now, leases: map[string]entry{}}}
	check := func(step string, want bool) {
		t.Helper()
		if got := c.EveryReplica("hanse.dev/sets", "1"); got != want {
			t.Errorf("%s: %t", step, got)
		}
	}
	c.book.note(newFence("ns", "m1", "a"))
	check("no replica is known", false)
	c.book.note(newPeerLease("ns", "a", "a", map[string]string{"hanse.dev/sets": "1"}, time.Unix(0, 0)))
	check("the only replica has it", true)
	older := newPeerLease("ns", "b", "b", map[string]string{"hanse.dev/view-address": "10.0.0.1:8444"}, time.Unix(0, 0))
	c.book.note(older)
	check("another one does not", false)
	c.book.strike(older)
	check("the other one is gone", true)
}
