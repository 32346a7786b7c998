package replicas

import (
	"cmp"
	"slices"
)

// spread gives every cluster (slot) a part of the total by weight, within its limits. A cluster with weight 0 gets only
// its minimum. If the total is below the sum of the minimums, each cluster gets at most its minimum, by weight, and
// clusters with weight 0 come last.
func spread(open []slot, total int64) {
	least, room := int64(0), int64(0)
	for i := range open {
		if open[i].weight == 0 {
			open[i].hi = open[i].lo
		}
		least += open[i].lo
		room += open[i].hi
	}
	total = min(total, room)
	if total >= least {
		fill(open, total)
		return
	}
	heavy, light, need := []slot{}, []slot{}, int64(0)
	for _, s := range open {
		s.hi, s.lo = s.lo, 0
		if s.weight == 0 {
			s.weight = 1
			light = append(light, s)
			continue
		}
		need += s.hi
		heavy = append(heavy, s)
	}
	fill(heavy, min(total, need))
	fill(light, total-min(total, need))
	copy(open, heavy)
	copy(open[len(heavy):], light)
}

// fill gives each slot, a cluster without a fixed share, the share level * weight, but no less than its lower limit and
// no more than its upper limit. It finds the level at which the shares add up to the total. The total must lie between
// the sum of the lower limits and the sum of the upper limits. Every slot whose limits differ must have a weight.
func fill(open []slot, total int64) {
	level, per := levelOf(open, total) // the level is the fraction level/per
	left := total
	for i := range open {
		s := &open[i]
		product := level * s.weight
		s.exact, s.spare = product/per, product%per
		switch {
		case s.exact < s.lo:
			s.exact, s.spare = s.lo, 0
		case s.exact >= s.hi:
			s.exact, s.spare = s.hi, 0
		}
		s.share = s.exact
		left -= s.exact
	}
	roundUp(open, left)
}

// roundUp gives one more replica to each of some clusters (slots) whose exact share is not a whole number. It gives
// left replicas in total. Clusters that would otherwise lose a current replica come first, and then clusters with the
// largest remainders.
func roundUp(open []slot, left int64) {
	var due []*slot
	for i := range open {
		if open[i].spare > 0 {
			due = append(due, &open[i])
		}
	}
	slices.SortFunc(due, func(a, b *slot) int {
		return cmp.Or(first(a.held > a.exact, b.held > b.exact), cmp.Compare(b.spare, a.spare), cmp.Compare(a.name, b.name))
	})
	for _, s := range due[:min(left, int64(len(due)))] {
		s.share++
	}
}

// first compares two values for sorting: true comes before false.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// edge is a level at which the share of a slot leaves its lower limit or reaches its upper limit. A share is level *
// weight within these limits. The level is the fraction at/weight.
type edge struct {
	slot  *slot
	at    int64
	upper bool
}

// levelOf returns, as the fraction level/per, the level at which the shares of the clusters (slots) add up to the
// total. While the level rises from 0, the share of a slot first stays at its lower limit, then is level * weight, and
// then stays at its upper limit. At an edge, a share leaves or reaches a limit. Between two edges, no share leaves or
// reaches a limit. There, the sum of the shares is a linear function of the level. No product exceeds 2^62, because
// levels and weights are at most 2^31.
func levelOf(open []slot, total int64) (level, per int64) {
	var edges []edge
	standing, growing := int64(0), int64(0) // sum of the shares at a limit; total weight of the growing slots
	for i := range open {
		s := &open[i]
		standing += s.lo
		if s.hi > s.lo {
			edges = append(edges, edge{s, s.lo, false}, edge{s, s.hi, true})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.at*b.slot.weight, b.at*a.slot.weight), first(!a.upper, !b.upper))
	})
	for _, e := range edges {
		missing := total - standing
		switch {
		case growing == 0 && missing <= 0:
			return e.at, e.slot.weight
		case growing > 0 && e.at >= (missing*e.slot.weight+growing-1)/growing:
			return missing, growing
		case e.upper:
			growing -= e.slot.weight
			standing += e.slot.hi
		default:
			growing += e.slot.weight
			standing -= e.slot.lo
		}
	}
	return 0, 1 // no slot can grow, so the limits determine all shares
}
