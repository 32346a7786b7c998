package replicas

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

var everyWay = []hubv1.DivideBy{hubv1.DivideByWeight, hubv1.DivideByCapacity, hubv1.DivideByPack, hubv1.DivideByKubeFed}

func drawInput(t *rapid.T, by hubv1.DivideBy) Input {
	in := Input{By: by, Total: rapid.Int64Range(0, 300).Draw(t, "total"), Rebalance: rapid.Bool().Draw(t, "rebalance"), Key: "shop/web"}
	for i := range rapid.IntRange(0, 9).Draw(t, "clusters") {
		c := Cluster{
			Name: fmt.Sprintf("c%d", i), Weight: rapid.Int64Range(0, 9).Draw(t, "weight"), Min: rapid.Int64Range(-3, 20).Draw(t, "min"),
			Max: rapid.SampledFrom([]int64{0, 3, 30, Unlimited}).Draw(t, "max"), Room: rapid.SampledFrom([]int64{0, 5, 25, 90, Unlimited}).Draw(t, "room"),
		}
		if rapid.Bool().Draw(t, "holds") {
			held := rapid.Int64Range(0, 60).Draw(t, "held")
			c.Held = &held
		}
		in.Clusters = append(in.Clusters, c)
	}
	return in
}

func mustDivide(t *rapid.T, in Input) Division {
	got, err := Divide(in)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// bounds returns the lowest and the highest share that the documentation permits for a cluster.
func bounds(c Cluster, by hubv1.DivideBy) (lo, hi int64) {
	hi = max(0, c.Max)
	if by == hubv1.DivideByCapacity || by == hubv1.DivideByPack {
		hi = min(hi, c.Room)
	}
	lo = min(max(0, c.Min), hi)
	if c.Weight == 0 && (by == hubv1.DivideByWeight || by == hubv1.DivideByKubeFed) {
		hi = lo
	}
	return lo, hi
}

func TestSharesAddUpToTheTotalOrTheRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t, rapid.SampledFrom(everyWay).Draw(t, "by"))
		got := mustDivide(t, in)
		sum, least, room := int64(0), int64(0), int64(0)
		for _, c := range in.Clusters {
			lo, hi := bounds(c, in.By)
			if in.By == hubv1.DivideByKubeFed && !in.Rebalance && c.Weight == 0 && c.Held != nil {
				hi = max(hi, min(*c.Held, max(0, c.Max))) // KubeFed leaves held replicas in place
			}
			share := got.Shares[c.Name]
			if share < 0 || share > hi {
				t.Fatalf("%s has %d and may have %d", c.Name, share, hi)
			}
			sum, least, room = sum+share, least+lo, room+hi
		}
		for _, c := range in.Clusters {
			if lo, _ := bounds(c, in.By); in.Total >= least && got.Shares[c.Name] < lo {
				t.Fatalf("%s has %d and is to have %d at least", c.Name, got.Shares[c.Name], lo)
			}
		}
		if in.By == hubv1.DivideByKubeFed && !in.Rebalance {
			room = min(room, max(sum, roomOf(in))) // a cluster may hold more than its room, see hi
		}
		if sum != min(in.Total, room) || got.Rest != in.Total-sum {
			t.Fatalf("%d of %d with room for %d, rest %d", sum, in.Total, room, got.Rest)
		}
	})
}

func roomOf(in Input) (room int64) {
	for _, c := range in.Clusters {
		_, hi := bounds(c, in.By)
		room += hi
	}
	return room
}

func TestTheOrderOfClustersChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t, rapid.SampledFrom(everyWay).Draw(t, "by"))
		want := mustDivide(t, in)
		in.Clusters = rapid.Permutation(in.Clusters).Draw(t, "order")
		if diff := cmp.Diff(want, mustDivide(t, in)); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestDividingTwiceIsDividingOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t, rapid.SampledFrom(everyWay).Draw(t, "by"))
		want := mustDivide(t, in)
		if diff := cmp.Diff(want, mustDivide(t, holding(in, want))); diff != "" {
			t.Fatal(diff)
		}
	})
}

func holding(in Input, d Division) Input {
	next := in
	next.Clusters = nil
	for _, c := range in.Clusters {
		share := d.Shares[c.Name]
		c.Held = &share
		next.Clusters = append(next.Clusters, c)
	}
	return next
}

// exactShares computes the exact shares in another way than Divide: it finds the level by repeated halving of an
// interval.
func exactShares(in Input) map[string]*big.Rat {
	total := big.NewRat(min(in.Total, roomOf(in)), 1)
	at := func(level *big.Rat) (map[string]*big.Rat, *big.Rat) {
		out, sum := map[string]*big.Rat{}, new(big.Rat)
		for _, c := range in.Clusters {
			lo, hi := bounds(c, in.By)
			weight := c.Weight
			if in.By == hubv1.DivideByCapacity {
				weight = c.Room
			}
			x := new(big.Rat).Mul(level, big.NewRat(weight, 1))
			if least := big.NewRat(lo, 1); x.Cmp(least) < 0 {
				x = least
			}
			if most := big.NewRat(hi, 1); x.Cmp(most) > 0 {
				x = most
			}
			out[c.Name] = x
			sum.Add(sum, x)
		}
		return out, sum
	}
	low, high := new(big.Rat), big.NewRat(1000, 1)
	for range 80 {
		middle := new(big.Rat).Quo(new(big.Rat).Add(low, high), big.NewRat(2, 1))
		if _, sum := at(middle); sum.Cmp(total) < 0 {
			low = middle
		} else {
			high = middle
		}
	}
	out, _ := at(high)
	return out
}

func TestEveryShareIsWithinOneOfItsExactShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t, rapid.SampledFrom([]hubv1.DivideBy{hubv1.DivideByWeight, hubv1.DivideByCapacity}).Draw(t, "by"))
		least := int64(0)
		for _, c := range in.Clusters {
			lo, _ := bounds(c, in.By)
			least += lo
		}
		if in.Total < least {
			t.Skip("there are too few for the least of all")
		}
		got := mustDivide(t, in)
		for name, exact := range exactShares(in) {
			off := new(big.Rat).Sub(exact, big.NewRat(got.Shares[name], 1))
			if away, _ := off.Abs(off).Float64(); away >= 1+1e-9 {
				t.Fatalf("%s has %d, and its exact share is %s", name, got.Shares[name], exact.FloatString(6))
			}
		}
	})
}

// Of all shares that round the exact shares down or up, Divide must return shares that move the fewest replicas. The
// test tries all such shares.
func TestAsFewAsPossibleMove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "clusters")
		in := Input{Total: rapid.Int64Range(0, 40).Draw(t, "total")}
		weights := int64(0)
		for i := range n {
			held := rapid.Int64Range(0, 12).Draw(t, "held")
			c := Cluster{Name: fmt.Sprintf("c%d", i), Weight: rapid.Int64Range(1, 5).Draw(t, "weight"), Max: Unlimited, Held: &held}
			weights += c.Weight
			in.Clusters = append(in.Clusters, c)
		}
		got := moved(in, mustDivide(t, in).Shares)
		for mask := range 1 << n {
			shares, sum := map[string]int64{}, int64(0)
			for i, c := range in.Clusters {
				share := in.Total * c.Weight / weights
				if mask>>i&1 == 1 && in.Total*c.Weight%weights != 0 {
					share++
				}
				shares[c.Name] = share
				sum += share
			}
			if other := moved(in, shares); sum == in.Total && other < got {
				t.Fatalf("%d moved, and %v would move %d", got, shares, other)
			}
		}
	})
}

// moved returns how many new replicas all clusters together must start for these shares.
func moved(in Input, shares map[string]int64) (n int64) {
	for _, c := range in.Clusters {
		n += max(0, shares[c.Name]-*c.Held)
	}
	return n
}

func TestPackingNeedsTheFewestClusters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := Input{By: hubv1.DivideByPack, Total: rapid.Int64Range(0, 60).Draw(t, "total")}
		for i := range rapid.IntRange(1, 6).Draw(t, "clusters") {
			in.Clusters = append(in.Clusters, Cluster{Name: fmt.Sprintf("c%d", i), Max: Unlimited, Room: rapid.Int64Range(0, 20).Draw(t, "room")})
		}
		used := 0
		d := mustDivide(t, in)
		for _, share := range d.Shares {
			if share > 0 {
				used++
			}
		}
		for mask := range 1 << len(in.Clusters) {
			room, count := int64(0), 0
			for i, c := range in.Clusters {
				if mask>>i&1 == 1 {
					room += c.Room
					count++
				}
			}
			if room >= in.Total && count < used {
				t.Fatalf("%d clusters are used and %d would do", used, count)
			}
		}
	})
}

func FuzzDivideIsTotal(f *testing.F) {
	f.Add(uint64(1), int64(10), int64(3), int64(-1), int64(5), uint8(3))
	f.Add(uint64(2), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MinInt64), int64(math.MaxInt64), uint8(200))
	f.Fuzz(func(t *testing.T, seed uint64, total, weight, minimum, maximum int64, count uint8) {
		random := rand.New(rand.NewPCG(seed, seed))
		for _, by := range everyWay {
			in := Input{By: by, Total: total}
			for i := range count {
				held := total / int64(random.IntN(5)+1)
				in.Clusters = append(in.Clusters, Cluster{
					Name: fmt.Sprintf("c%d", i), Weight: weight >> random.IntN(40), Min: minimum >> random.IntN(40), Max: maximum >> random.IntN(40),
					Room: weight >> random.IntN(63), Held: &held, Fixed: random.IntN(9) == 0,
				})
			}
			d, err := Divide(in)
			if err != nil {
				t.Fatal(err)
			}
			sum := int64(0)
			for name, share := range d.Shares {
				if share < 0 || share > Unlimited {
					t.Fatalf("%s: %s has %d", by, name, share)
				}
				sum += share
			}
			if d.Rest < 0 || len(d.Shares) != int(count) {
				t.Fatalf("%s: rest %d, %d shares", by, d.Rest, len(d.Shares))
			}
		}
	})
}
