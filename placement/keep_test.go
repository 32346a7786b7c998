package placement

import (
	"testing"

	"pgregory.net/rapid"
)

// Clusters in Keep must hold the object after the decision. Clusters that keep the object in a decision without Keep
// must also keep it. New clusters get the object only if numberOfClusters and the constraints then still allow this.
func TestWhatIsKeptCountsForTheSpread(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput(t)
		would := Decide(in)
		in.Keep = map[string]bool{}
		for _, r := range would.Withdraw {
			if in.Held[r.Cluster] && rapid.Bool().Draw(t, "keep") {
				in.Keep[r.Cluster] = true
			}
		}
		d := Decide(in)
		targets, moving := holders(d), evicting(d)
		for name := range in.Keep {
			if !targets[name] && !moving[name] {
				t.Fatalf("%s is kept and loses the object", name)
			}
		}
		if len(in.Keep) == 0 || len(in.Placement.groups) > 0 || would.Kept {
			return // Kept: without the kept clusters, the spread is impossible
		}
		if len(takenAway(in, d)) > 0 && len(in.Placement.constraints) > 0 {
			return // no check: constraints do not count the cluster that loses the object
		}
		for _, x := range would.Targets {
			if in.Held[x.Cluster] && !targets[x.Cluster] && !moving[x.Cluster] && !takenAway(in, d)[x.Cluster] {
				t.Fatalf("%s loses the object because others keep it", x.Cluster)
			}
		}
		fresh := 0
		for _, x := range d.Targets {
			if !in.Held[x.Cluster] && !in.Evicting[x.Cluster] {
				fresh++
			}
		}
		if n := in.Placement.number; n > 0 && fresh > 0 && len(d.Targets) > n {
			t.Fatalf("%d clusters hold the object, %d of them new; numberOfClusters is %d", len(d.Targets), fresh, n)
		}
	})
}
