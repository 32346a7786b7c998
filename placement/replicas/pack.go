package replicas

import (
	"cmp"
	"slices"
)

// pack fills one cluster (slot) after the other. Each cluster keeps its current replicas, up to its maximum. Further
// replicas first go to the clusters with the most current replicas. Among clusters with equally many, they first go to
// the one with the highest maximum. If there are too many replicas, the clusters with the fewest current replicas lose
// them first. If the total is below the sum of the minimums, each cluster gets at most its minimum.
func pack(open []slot, total int64) {
	least := int64(0)
	for _, s := range open {
		least += s.lo
	}
	for i := range open {
		s := &open[i]
		if least > total {
			s.lo, s.hi = 0, s.lo
		}
		s.share = max(s.lo, min(s.held, s.hi))
	}
	slices.SortFunc(open, func(a, b slot) int {
		return cmp.Or(cmp.Compare(b.held, a.held), cmp.Compare(b.hi, a.hi), cmp.Compare(a.name, b.name))
	})
	for _, s := range open {
		total -= s.share
	}
	for i := range open {
		more := max(0, min(total, open[i].hi-open[i].share))
		open[i].share += more
		total -= more
	}
	for i := len(open) - 1; i >= 0 && total < 0; i-- {
		less := min(-total, open[i].share-open[i].lo)
		open[i].share -= less
		total += less
	}
}
