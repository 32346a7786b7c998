package replicas

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Unlimited is a Max or Room that bounds nothing.
const Unlimited = math.MaxInt32

// Input is everything that a division depends on. Numbers below 0 count as 0, those above Unlimited as Unlimited.
type Input struct {
	By       hubv1.DivideBy
	Total    int64
	Clusters []Cluster
	// Unsettled says that only capacities differ, and may be a passing thing: shares that are a division of the total as
	// they are stay.
	Unsettled bool
	// Key and Rebalance are for KubeFed: who comes first among equals, and whether shares that are held count.
	Key       string
	Rebalance bool
}

// Cluster is one of those between which replicas are divided.
type Cluster struct {
	Name string
	// Weight is for Weight and KubeFed.
	Weight int64
	// Min and Max bound the share. Max wins.
	Min, Max int64
	// Room is how many replicas fit, for Capacity and Pack.
	Room int64
	// Held is the share until now; nil if the cluster has none.
	Held *int64
	// Fixed keeps the share that is held, whatever the rest says.
	Fixed bool
}

// Division is the result.
type Division struct {
	// Shares has an entry for every cluster.
	Shares map[string]int64
	// Rest is how many replicas of the total have no room.
	Rest int64
}

var errTwice = errors.New("named twice")

// Divide divides the total. The error says that the input makes no sense; it never depends on numbers.
func Divide(in Input) (Division, error) {
	by, known := ways[cmp.Or(in.By, hubv1.DivideByWeight)]
	if !known {
		return Division{}, fmt.Errorf("dividing replicas: unknown way to divide %q", in.By)
	}
	total := clamp(in.Total)
	out := Division{Shares: make(map[string]int64, len(in.Clusters))}
	var open []slot
	for _, c := range in.Clusters {
		if _, twice := out.Shares[c.Name]; twice {
			return Division{}, fmt.Errorf("dividing replicas: cluster %q: %w", c.Name, errTwice)
		}
		s := slotOf(c, in.By)
		if c.Fixed {
			out.Shares[c.Name] = s.held
			total = max(0, total-s.held)
			continue
		}
		out.Shares[c.Name] = 0
		open = append(open, s)
	}
	slices.SortFunc(open, func(a, b slot) int { return cmp.Compare(a.name, b.name) })
	if in.Unsettled && stays(open, total) {
		by = own(keep)
	}
	if err := by(open, total, in); err != nil {
		return Division{}, err
	}
	for _, s := range open {
		out.Shares[s.name] = s.share
		total -= s.share
	}
	out.Rest = total
	return out, nil
}

// ways to give every slot its share.
var ways = map[hubv1.DivideBy]func(open []slot, total int64, in Input) error{
	hubv1.DivideByWeight:   own(spread),
	hubv1.DivideByCapacity: own(spread),
	hubv1.DivideByPack:     own(pack),
	hubv1.DivideByKubeFed:  kubefed,
}

// own is a way that needs no more than the slots and the total, and does not fail.
func own(by func(open []slot, total int64)) func([]slot, int64, Input) error {
	return func(open []slot, total int64, _ Input) error {
		by(open, total)
		return nil
	}
}

// slot is a cluster with numbers that can be relied on: 0 <= lo <= hi, and none above Unlimited.
type slot struct {
	name         string
	weight       int64
	lo, hi       int64 // with the room
	least, most  int64 // as stated
	held         int64
	share        int64
	exact, spare int64 // of spread: the exact share rounded down, and the remainder
}

func slotOf(c Cluster, by hubv1.DivideBy) slot {
	s := slot{name: c.Name, weight: clamp(c.Weight), least: clamp(c.Min), most: clamp(c.Max)}
	s.lo, s.hi = s.least, s.most
	if c.Held != nil {
		s.held = clamp(*c.Held)
	}
	switch by {
	case hubv1.DivideByCapacity, hubv1.DivideByPack:
		s.weight = clamp(c.Room)
		s.hi = min(s.hi, s.weight)
	}
	s.lo = min(s.lo, s.hi)
	s.least = min(s.least, s.most)
	return s
}

func clamp(n int64) int64 { return max(0, min(n, Unlimited)) }

// stays says whether the held shares divide the total as they are, within the stated bounds. A cluster that has no
// share waits for one.
func stays(open []slot, total int64) bool {
	for _, s := range open {
		if s.held < s.least || s.held > s.most {
			return false
		}
		total -= s.held
	}
	return total == 0
}

func keep(open []slot, _ int64) {
	for i := range open {
		open[i].share = open[i].held
	}
}
