package preview

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

// decisions are the final decisions on the clusters of each object, with a change of the hub's objects and without the
// change.
type decisions struct {
	before, after decide.Fleet
	was, is       *decide.Settlement           // was is nil if the bindings have the decisions without the change
	places        map[hubv1.ObjectIdentity]int // index in before of each object
}

// decided makes the decisions for all objects of a fleet (objects, policies and clusters) without a change, and with
// it. The decisions with the change start from the final state without the change. The difference therefore excludes
// work that the hub has to do anyway.
func decided(ctx context.Context, before, after decide.Fleet, tell func(decided, of int)) (*decisions, error) {
	was, err := before.Settle(ctx, tell)
	if err != nil {
		return nil, fmt.Errorf("deciding on the fleet as it is: %w", err)
	}
	is, err := after.From(was).Settle(ctx, tell)
	if err != nil {
		return nil, fmt.Errorf("deciding on the changed fleet: %w", err)
	}
	return compared(before, after, was, is), nil
}

// next compares two sets of decisions: the decisions that the bindings record, and the final decisions of the hub for
// the same objects, policies and clusters.
func next(ctx context.Context, fleet decide.Fleet, tell func(decided, of int)) (*decisions, error) {
	is, err := fleet.Settle(ctx, tell)
	if err != nil {
		return nil, fmt.Errorf("deciding on the fleet as it is: %w", err)
	}
	return compared(fleet, fleet, nil, is), nil
}

func compared(before, after decide.Fleet, was, is *decide.Settlement) *decisions {
	d := &decisions{before: before, after: after, was: was, is: is, places: make(map[hubv1.ObjectIdentity]int, len(before.Objects))}
	for i, object := range before.Objects {
		d.places[object.Identity()] = i
	}
	return d
}

// pair is one object with two decisions: the one without the change and the one with it.
type pair struct {
	Object Object
	// Old is the object without the change, and New is the object with it. Old is nil if the hub does not have the object
	// yet.
	Old, New *decide.FleetObject
	// Before is the outcome of the decision without the change, and After is the outcome with it. The field Binding of an
	// outcome is nil if the object has no binding.
	Before, After decide.Outcome
	// HeldBefore and Held are the clusters that hold a copy by the decision without the change and with it.
	HeldBefore, Held     map[string]hubv1.BindingTarget
	Gained, Lost, Stayed []string

	before, after int // indexes of the object in both fleets
}

// pairs returns all objects that exist with the change, sorted by namespace, kind and name.
func (d *decisions) pairs() iter.Seq[pair] {
	order := make([]int, len(d.after.Objects))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return compareObjects(objectOf(d.after.Objects[a].Identity()), objectOf(d.after.Objects[b].Identity()))
	})
	return func(yield func(pair) bool) {
		for _, i := range order {
			if !yield(d.pair(i)) {
				return
			}
		}
	}
}

func compareObjects(a, b Object) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Name, b.Name))
}

func (d *decisions) pair(i int) pair {
	p := pair{Object: objectOf(d.after.Objects[i].Identity()), New: &d.after.Objects[i], After: d.is.Outcomes[i], after: i}
	if j, ok := d.places[p.New.Identity()]; ok {
		p.Old, p.before = &d.before.Objects[j], j
		if p.Before = recorded(p.Old.Binding); d.was != nil {
			p.Before = d.was.Outcomes[j]
		}
	}
	p.HeldBefore, p.Held = targetsOf(p.Before.Binding), targetsOf(p.After.Binding)
	for _, name := range slices.Sorted(maps.Keys(p.HeldBefore)) {
		if _, ok := p.Held[name]; ok {
			p.Stayed = append(p.Stayed, name)
		} else {
			p.Lost = append(p.Lost, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Held)) {
		if _, ok := p.HeldBefore[name]; !ok {
			p.Gained = append(p.Gained, name)
		}
	}
	return p
}

// recorded returns the decision that a binding has recorded.
func recorded(b hubv1.BindingObject) decide.Outcome {
	o := decide.Outcome{Binding: b}
	if b == nil {
		return o
	}
	for _, c := range b.BindingStatus().Conditions {
		if c.Type == hubv1.ConditionScheduled {
			o.Scheduled = c
		}
	}
	return o
}

func targetsOf(b hubv1.BindingObject) map[string]hubv1.BindingTarget {
	out := map[string]hubv1.BindingTarget{}
	if b == nil {
		return out
	}
	for _, t := range b.BindingSpec().Clusters {
		if t.State == hubv1.TargetPresent {
			out[t.Name] = t
		}
	}
	return out
}

// moves reports whether a cluster gains or loses the copy, or whether its number of replicas changes.
func (p pair) moves() bool { return !sameTargets(p.HeldBefore, p.Held) }

func sameTargets(a, b map[string]hubv1.BindingTarget) bool {
	return maps.EqualFunc(a, b, func(a, b hubv1.BindingTarget) bool {
		return shareOf(a) == shareOf(b) && (a.Replicas == nil) == (b.Replicas == nil)
	})
}

// shares returns the clusters whose number of replicas changes, and the number of replicas that move to other clusters.
func (p pair) shares() (out []Share, moved int64) {
	if !divided(p.Before.Binding) || !divided(p.After.Binding) {
		return nil, 0
	}
	var fewer, more int64
	for _, name := range slices.Sorted(slices.Values(slices.Concat(p.Stayed, p.Lost, p.Gained))) {
		s := Share{Cluster: name, Before: shareOf(p.HeldBefore[name]), After: shareOf(p.Held[name])}
		if s.Before != s.After {
			fewer, more = fewer+max(0, s.Before-s.After), more+max(0, s.After-s.Before)
			out = append(out, s)
		}
	}
	return out, min(fewer, more)
}

// newShares returns the numbers of replicas on the clusters that get a new copy. It returns nil if the replicas are not
// divided.
func (p pair) newShares() []Share {
	if !divided(p.After.Binding) {
		return nil
	}
	out := make([]Share, 0, len(p.Gained))
	for _, name := range p.Gained {
		out = append(out, Share{Cluster: name, After: shareOf(p.Held[name])})
	}
	return out
}

func divided(b hubv1.BindingObject) bool { return b != nil && b.BindingSpec().Division != nil }

func shareOf(t hubv1.BindingTarget) int64 {
	if t.Replicas == nil {
		return 0
	}
	return int64(*t.Replicas)
}

// noRoom returns the number of an object's replicas for which no cluster has room, before and after the change.
func (d *decisions) noRoom(p pair) (before, after int64) {
	if p.Old != nil && d.was != nil {
		before = roomless(d.was, p.before)
	}
	return before, roomless(d.is, p.after)
}

func roomless(s *decide.Settlement, i int) int64 {
	if !divided(s.Outcomes[i].Binding) {
		return 0
	}
	if d := s.Replay(i).Division; d != nil {
		return d.Result.Rest
	}
	return 0
}

// restless returns a note for each object on which the decisions do not settle: each decision leads to another one.
func (d *decisions) restless() []string {
	var out []string
	for i, o := range d.is.Outcomes {
		if o.Restless {
			out = append(out, objectOf(d.after.Objects[i].Identity()).String()+" gets no final decision: each decision leads to another one")
		}
	}
	slices.Sort(out)
	return out
}

// underway returns the number of objects whose clusters or replicas will change even without the change that the plan
// examines. The hub has not carried out earlier decisions on these objects yet. underway returns 0 if no object has a
// binding, and for the decisions of next.
func (d *decisions) underway() int {
	n, bound := 0, false
	if d.was == nil {
		return 0
	}
	for i, o := range d.before.Objects {
		bound = bound || o.Binding != nil
		if !sameTargets(targetsOf(o.Binding), targetsOf(d.was.Outcomes[i].Binding)) {
			n++
		}
	}
	if !bound {
		return 0
	}
	return n
}
