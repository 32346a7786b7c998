package replicas

import (
	"cmp"
	"slices"
)

// pack fills one slot after the other. What slots hold stays where it is as far as it fits: those that hold the most are filled first, then
// those with the most room, and the ones that hold the least are emptied first.
func pack(open []slot, total int64) {
	slices.SortFunc(open, func(a, b slot) int {
		return cmp.Or(cmp.Compare(b.held, a.held), cmp.Compare(b.hi, a.hi), cmp.Compare(a.name, b.name))
	})
	for i := range open {
		s := &open[i]
		s.share = max(s.lo, min(s.held, s.hi))
		total -= s.share
	}
	for i := 0; i < len(open) && total > 0; i++ {
		more := min(total, open[i].hi-open[i].share)
		open[i].share += more
		total -= more
	}
	// Too many: first what is above the lower bounds goes, then, if these alone are too much, the rest.
	for _, floor := range []func(slot) int64{func(s slot) int64 { return s.lo }, func(slot) int64 { return 0 }} {
		for i := len(open) - 1; i >= 0 && total < 0; i-- {
			less := min(-total, open[i].share-floor(open[i]))
			open[i].share -= less
			total += less
		}
	}
}
