package shard

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/multicluster-runtime/pkg/manager/coordinator/sharded/sharder"
)

// peer is one term of one replica, as the replica's peer Lease shows it. A term lasts from the creation of the Lease
// until the Lease expires.
type peer struct {
	id   string
	seat string // the replica's identity, by which members are distributed
	live bool   // false after the peer's Lease has expired
}

// view has the inputs for the decisions of one replica.
type view struct {
	self    string // ID of this replica's term
	peers   []peer // all peers with a Lease, including this replica
	members []string
	fences  map[string]string // holder by member; empty if released
	held    map[string]bool   // members that this replica works on
}

// step is one action of this replica on a member.
type step int

const (
	// hold means that this replica starts to work on the member, because the member's fence (a Lease) names this replica.
	hold step = iota
	// take means that this replica writes its name into the member's fence (a Lease), to take the member.
	take
	// drop means that this replica stops the work on the member, because the member's fence (a Lease) does not name this
	// replica any more.
	drop
	// release means that this replica stops the work on the member, and then removes its name from the member's fence (a
	// Lease).
	release
	// forget means that the member no longer exists, and this replica deletes the member's fence (a Lease).
	forget
)

type action struct {
	step   step
	member string
}

// decide returns the actions of this replica, sorted by member name. decide is called again after every action and
// every change. An action that has failed is therefore returned again.
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

// about returns the action for an existing member. any is false if there is nothing to do. owner is the ID of the term
// of the replica to which the member belongs. A term lasts from the creation of the replica's Lease until the Lease
// expires. owner is empty if no replica is live.
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

// void reports whether no replica works on a member whose fence (a Lease) names this holder. This is so if the holder
// is empty, because the fence was released, or if the peer Lease of the holder was deleted. An expired peer Lease is
// not enough, because its holder could still renew it. The expired Lease must be deleted first.
func void(holder string, peers []peer) bool {
	return holder == "" || !slices.ContainsFunc(peers, func(p peer) bool { return p.id == holder })
}

// liveSeats returns the identities of the live replicas. It also returns the ID of the term of each. A term lasts from
// the creation of the replica's Lease until the Lease expires. If a replica has two terms, the term whose name is last
// in alphabetical order counts.
func liveSeats(peers []peer) (seats []string, terms map[string]string) {
	terms = map[string]string{}
	for _, p := range peers {
		if p.live {
			terms[p.seat] = max(terms[p.seat], p.id)
		}
	}
	return slices.Sorted(maps.Keys(terms)), terms
}

// Owner returns the identity of the replica to which a member belongs. This is the replica for which the hash of the
// replica's and the member's name is highest (rendezvous hashing). The result is empty if there are no replicas. If a
// replica starts or ends, only members of this replica move.
func Owner(member string, replicas []string) string {
	peers := make([]sharder.PeerInfo, len(replicas))
	for i, r := range replicas {
		// The hash function of the library is too weak for names that differ only at their end, such as hub-0 and hub-1.
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
