package replicas

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Unlimited is the value of Cluster.Max or Cluster.Room that means that there is no limit.
const Unlimited = math.MaxInt32

// Input contains all inputs of a division of replicas. Divide treats a number below 0 as 0, and a number above
// Unlimited as Unlimited.
type Input struct {
	By       hubv1.DivideBy
	Total    int64
	Clusters []Cluster
	// Unsettled is true if only the capacities of clusters have changed since the last division, and may soon change back.
	// The current shares then stay, if they add up to the total and respect Min and Max.
	Unsettled bool
	// Only the planner of KubeFed uses Key and Rebalance. If clusters are otherwise equal, Key determines their order. If
	// Rebalance is true, the planner ignores the current shares.
	Key       string
	Rebalance bool
}

// Cluster is one cluster among which the replicas are divided.
type Cluster struct {
	Name string
	// Weight is the weight of the cluster. Only the ways of dividing Weight and KubeFed read it.
	Weight int64
	// Min and Max limit the number of replicas of the cluster. If Min is larger than Max, Max applies.
	Min, Max int64
	// Room is the number of replicas that fit on the cluster. Only the ways of dividing Capacity and Pack read it.
	Room int64
	// Held is the current share of the cluster. It is nil if the cluster has no share.
	Held *int64
	// Fixed is true if the cluster must keep its current share.
	Fixed bool
}

// Division is the result of Divide.
type Division struct {
	// Shares has the number of replicas of every cluster, by the name of the cluster.
	Shares map[string]int64
	// Rest is the number of replicas that no cluster gets, because no cluster has room for them.
	Rest int64
}

var errTwice = errors.New("named twice")

// Divide divides the total among the clusters. It returns an error for an unknown way of dividing, and for a cluster
// that is named twice. Every combination of numbers is valid.
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

// ways has the function for each way of dividing. The function sets the share of every slot. A slot is a cluster
// without a fixed share.
var ways = map[hubv1.DivideBy]func(open []slot, total int64, in Input) error{
	hubv1.DivideByWeight:   own(spread),
	hubv1.DivideByCapacity: own(spread),
	hubv1.DivideByPack:     own(pack),
	hubv1.DivideByKubeFed:  kubefed,
}

// own converts a function that needs only the slots and the total, and returns no error, to the type of the functions
// in ways.
func own(by func(open []slot, total int64)) func([]slot, int64, Input) error {
	return func(open []slot, total int64, _ Input) error {
		by(open, total)
		return nil
	}
}

// slot is a cluster without a fixed share, with corrected numbers: no number is below 0 or above Unlimited, and lo <=
// hi. lo and hi are the limits of its share.
type slot struct {
	name             string
	weight           int64
	lo, hi           int64 // minimum and maximum, within the room of the cluster
	minimum, maximum int64 // minimum and maximum of the policy
	held             int64
	share            int64
	exact, spare     int64 // for spread: the exact share rounded down, and the remainder
}

func slotOf(c Cluster, by hubv1.DivideBy) slot {
	s := slot{name: c.Name, weight: clamp(c.Weight), minimum: clamp(c.Min), maximum: clamp(c.Max)}
	s.lo, s.hi = s.minimum, s.maximum
	if c.Held != nil {
		s.held = clamp(*c.Held)
	}
	switch by {
	case hubv1.DivideByCapacity, hubv1.DivideByPack:
		s.weight = clamp(c.Room)
		s.hi = min(s.hi, s.weight)
	}
	s.lo = min(s.lo, s.hi)
	s.minimum = min(s.minimum, s.maximum)
	return s
}

func clamp(n int64) int64 { return max(0, min(n, Unlimited)) }

// stays reports whether the current shares add up to the total and respect the limits Min and Max of each cluster. If a
// cluster has no current share, its share counts as 0.
func stays(open []slot, total int64) bool {
	for _, s := range open {
		if s.held < s.minimum || s.held > s.maximum {
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
