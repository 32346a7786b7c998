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
