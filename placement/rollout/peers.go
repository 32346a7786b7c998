package rollout

import (
	"cmp"
	"slices"
	"sort"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Progress is the progress of one object's rollout. The rollouts of the other objects of the placement read it, because
// some of their steps wait for this object.
type Progress struct {
	// Object names the object, as "kind namespace/name".
	Object string
	// Began is the time at which the object's last change began.
	Began time.Time
	// Passed is the number of waves that the object's last change has passed.
	Passed int
	// Moving is true if a cluster has got the revision that it shall get, and has neither passed the healthGate nor failed
	// yet.
	Moving bool
	// Done is true if no change of the object is in progress.
	Done bool
	// Failed is true if the object's last change has failed, even if it was rolled back since then.
	Failed bool
	// Revision is the failed revision if Failed is true. Otherwise it is the revision that the clusters get.
	Revision int64
	// Since is the time at which the current state of the rollout began. For a failed change, it is the time of the
	// failure.
	Since time.Time
}

// Peers has the progress of all objects of a placement, except the object that Step decides on. The zero value has no
// objects.
type Peers struct {
	all    *progresses
	object string
}

// progresses has the progress of all objects of a placement. The Peers of these objects share one progresses.
type progresses struct {
	open   []Progress // objects that are not Done, sorted by Began
	least  []lowest   // least[i] is the lowest number in open[:i+1]
	moving map[string]bool
	latest time.Time  // the start of the latest change of all objects
	failed []Progress // the first two failed objects, because Peers excludes one object
}

// lowest has the name of the object that has passed the fewest waves, and this number of waves (passed). other is the
// fewest number of waves that any other object has passed.
type lowest struct {
	object        string
	passed, other int
}

// many is a number that is larger than the number of waves of any policy.
const many = 1 << 30

// NewPeers returns Peers with the progress of all objects of a placement. Callers then use the method Without to leave
// out the object that Step decides on.
func NewPeers(all []Progress) Peers {
	p := &progresses{moving: map[string]bool{}}
	for _, one := range all {
		p.latest = latest(p.latest, one.Began)
		if !one.Done {
			p.open = append(p.open, one)
		}
		if one.Moving {
			p.moving[one.Object] = true
		}
		if one.Failed {
			p.failed = append(p.failed, one)
		}
	}
	slices.SortFunc(p.open, func(a, b Progress) int { return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.Object, b.Object)) })
	slices.SortFunc(p.failed, func(a, b Progress) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Object, b.Object)) })
	p.failed = slices.Clip(p.failed[:min(2, len(p.failed))])
	low := lowest{passed: many, other: many}
	for _, one := range p.open {
		if one.Passed < low.passed {
			low = lowest{object: one.Object, passed: one.Passed, other: low.passed}
		} else {
			low.other = min(low.other, one.Passed)
		}
		p.least = append(p.least, low)
	}
	return Peers{all: p}
}

// Without returns the same peers without the object of this name. It does not copy the progress of the objects.
func (p Peers) Without(object string) Peers { return Peers{all: p.all, object: object} }

// LeastPassed returns the lowest number of waves that any peer, another object of the placement, has passed. It looks
// only at peers whose change is in progress and began at or before the time until. The result is limit if there is no
// such peer, or if the number is larger than limit.
func (p Peers) LeastPassed(until time.Time, limit int) int {
	if p.all == nil {
		return limit
	}
	n := sort.Search(len(p.all.open), func(i int) bool { return p.all.open[i].Began.After(until) })
	if n == 0 {
		return limit
	}
	low := p.all.least[n-1]
	if low.object == p.object {
		return min(low.other, limit)
	}
	return min(low.passed, limit)
}

// Moving returns the number of peers, the other objects of the placement, for which Progress.Moving is true.
func (p Peers) Moving() int {
	if p.all == nil {
		return 0
	}
	n := len(p.all.moving)
	if p.all.moving[p.object] {
		n--
	}
	return n
}

// latest returns the start of the latest change of all objects of the placement.
func (p Peers) latest() time.Time {
	if p.all == nil {
		return time.Time{}
	}
	return p.all.latest
}

// Failed returns the progress of the peer, another object of the placement, whose change failed first. failed is false
// if no peer has failed.
func (p Peers) Failed() (first Progress, failed bool) {
	if p.all == nil {
		return Progress{}, false
	}
	for _, one := range p.all.failed {
		if one.Object != p.object {
			return one, true
		}
	}
	return Progress{}, false
}

// ProgressOf returns the progress of an object, computed from the state that its binding stores.
func ProgressOf(p *hubv1.RolloutPolicy, stored *hubv1.BindingRollout) Progress {
	s := newStep(Input{Policy: p, Before: stored})
	s.at = s.position()
	progress := s.progress()
	progress.Moving = !progress.Done && (stored.Phase == hubv1.RolloutProgressing || stored.Phase == hubv1.RolloutRollingBack)
	return progress
}
