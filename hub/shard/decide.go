package shard

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/multicluster-runtime/pkg/manager/coordinator/sharded/sharder"
)

// peer is one term of one replica, as its Lease shows it.
type peer struct {
	id   string
	seat string // the replica's identity, by which members are shared out
	live bool   // false once its Lease has run out; it is void when the Lease is gone
}

// view is the input of one replica's decision.
type view struct {
	self    string // ID of its term
	peers   []peer // every one that has a Lease, its own included
	members []string
	fences  map[string]string // holder by member; empty if it was let go
	held    map[string]bool   // what this replica works on
}

// step is one thing to do about a member.
type step int

const (
	// hold: the fence is ours, and so is the member.
	hold step = iota
	// take: write the fence.
	take
	// drop: another replica has the fence; end the work.
	drop
	// release: end the work, then let go of the fence.
	release
	// forget: there is no such member any more; delete the fence.
	forget
)

type action struct {
	step   step
	member string
}

// decide returns what to do, by member name. It is called again after every step and every change, so that a step that
// failed is decided on anew.
func decide(v view) []action {
	var out []action
	seats, terms := liveSeats(v.peers)
	isMember := make(map[string]bool, len(v.members))
	for _, m := range v.members {
		isMember[m] = true
		if s, any := about(v, m, terms[Owner(m, seats)]); any {
			out = append(out, action{s, m})
		}
	}
	for m := range v.held {
		if !isMember[m] && v.fences[m] != v.self {
			out = append(out, action{drop, m})
		}
	}
	for m, holder := range v.fences {
		if !isMember[m] && (holder == v.self || void(holder, v.peers)) {
			out = append(out, action{forget, m})
		}
	}
	slices.SortFunc(out, func(a, b action) int { return strings.Compare(a.member, b.member) })
	return out
}

// about returns the action for an existing member. owner is the term that it belongs to, empty if no replica is alive.
func about(v view, member, owner string) (s step, any bool) {
	holder, fenced := v.fences[member]
	ours := fenced && holder == v.self
	switch {
	case v.held[member] && !ours:
		return drop, true
	case ours && owner == v.self:
		return hold, !v.held[member]
	case ours:
		return release, owner != ""
	}
	return take, owner == v.self && void(holder, v.peers)
}

// void says that no replica works under a fence: it was released, or the Lease of its holder is gone. One that has
// merely run out may be renewed in this moment; it is deleted first.
func void(holder string, peers []peer) bool {
	return holder == "" || !slices.ContainsFunc(peers, func(p peer) bool { return p.id == holder })
}

// liveSeats are the seats that members are shared among, and the term of each: the last by name, should a seat have
// two.
func liveSeats(peers []peer) (seats []string, terms map[string]string) {
	terms = map[string]string{}
	for _, p := range peers {
		if p.live {
			terms[p.seat] = max(terms[p.seat], p.id)
		}
	}
	return slices.Sorted(maps.Keys(terms)), terms
}

// Owner is the one of the replicas, by their identities, that a member belongs to; empty if there is none. It is that
// with the highest hash of both, so that a replica that comes or goes moves only its own members.
func Owner(member string, replicas []string) string {
	peers := make([]sharder.PeerInfo, len(replicas))
	for i, r := range replicas {
		// The sharder's hash hardly tells names apart that differ at their end only, such as hub-0 and hub-1.
		sum := sha256.Sum256([]byte(r))
		peers[i] = sharder.PeerInfo{ID: hex.EncodeToString(sum[:]), Weight: 1}
	}
	hash := sharder.NewHRW()
	i := slices.IndexFunc(peers, func(p sharder.PeerInfo) bool { return hash.ShouldOwn(member, peers, p) })
	if i < 0 {
		return ""
	}
	return replicas[i]
}
