package placement

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestWhatMayBeEvicted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput(t)
		d := Decide(in)
		away, all := 0, 0
		of := map[string]*Cluster{}
		for i := range in.Clusters {
			c := &in.Clusters[i]
			of[c.Name] = c
			if !c.Leaving {
				all++
				if !c.Ready {
					away++
				}
			}
		}
		maxAway := in.MaxAway
		if maxAway == 0 {
			maxAway = DefaultMaxAway
		}
		for _, x := range d.Evict {
			c := of[x.Cluster]
			switch {
			case !in.Held[x.Cluster]: // the cluster was evicted by an earlier decision
			case in.Hold[x.Cluster] != "":
				t.Fatalf("%s is evicted, although it is held: %s", x.Cluster, in.Hold[x.Cluster])
			case !c.Draining && c.Ready:
				t.Fatalf("%s is evicted, and is neither drained nor away", x.Cluster)
			case !c.Draining && away*100 > all*maxAway:
				t.Fatalf("%s is evicted while %d of %d clusters are away", x.Cluster, away, all)
			}
		}
	})
}

// Eviction must not reduce the number of clusters that hold an object, unless the replicas are divided. After an
// eviction, at least one reachable cluster must hold the object. A cluster from which the object is not evicted must
// keep it.
func TestEvictionOnlyMoves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput(t)
		if in.Placement.rebalance {
			t.Skip("rebalance was asked for")
		}
		moving := Decide(in)
		kept := in
		kept.Hold = map[string]string{}
		for _, c := range in.Clusters {
			kept.Hold[c.Name] = "not at all"
		}
		staying := Decide(kept)
		if len(staying.Evict) > 0 && len(staying.Evict) != len(evictedBefore(in, staying)) {
			t.Fatalf("although all is held, evicted are %v", staying.Evict)
		}
		if moving.Kept && !staying.Kept && len(takenAway(in, moving)) == 0 {
			t.Fatal("by eviction a constraint is broken")
		}
		if len(takenAway(in, moving)) > 0 && len(in.Placement.constraints) > 0 {
			return // no check: constraints do not count the cluster that loses the object
		}
		left := holders(moving)
		for _, x := range staying.Targets {
			if in.Held[x.Cluster] && !left[x.Cluster] && !evicting(moving)[x.Cluster] && !takenAway(in, moving)[x.Cluster] {
				t.Fatalf("%s is no business of the eviction and loses the object", x.Cluster)
			}
		}
		if len(evictedBefore(in, moving)) == len(moving.Evict) {
			return // no further eviction happens
		}
		answering := 0
		for _, c := range in.Clusters {
			if left[c.Name] && c.Ready {
				answering++
			}
		}
		if answering == 0 || (!in.Divided && len(left)+len(takenAway(in, moving)) < len(staying.Targets)) {
			t.Fatalf("evicted from %v, on %v, of which %d answer; without eviction on %v", moving.Evict, moving.Targets, answering, staying.Targets)
		}
	})
}

// takenAway returns the clusters from which a drain removes the object without a replacement. TakesAway must permit
// this for the drain, and the cluster must not be in in.Hold.
func takenAway(in Input, d Decision) map[string]bool {
	out := map[string]bool{}
	for _, x := range d.Withdraw {
		for _, c := range in.Clusters {
			if c.Name == x.Cluster && x.Reason == hubv1.ReasonDraining && c.Draining && c.TakesAway && in.Hold[c.Name] == "" {
				out[c.Name] = true
			}
		}
	}
	return out
}

func evictedBefore(in Input, d Decision) []string {
	var out []string
	for _, x := range d.Evict {
		if in.Evicting[x.Cluster] {
			out = append(out, x.Cluster)
		}
	}
	return out
}

func TestNothingIsEvictedBeforeItsTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput(t)
		d := Decide(in)
		if d.Again < 0 {
			t.Fatalf("time is to change the decision in %s", d.Again)
		}
		if d.Again == 0 {
			return
		}
		in.Now = in.Now.Add(d.Again - 1)
		if before := Decide(in); len(before.Evict) != len(d.Evict) || len(before.Withdraw) != len(d.Withdraw) {
			t.Fatalf("before its time something is evicted or withdrawn: %+v, then %+v", d, before)
		}
	})
}

func TestAClusterWithoutFailoverKeepsItsObjects(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := genInput(t)
		in.Placement.evictAfter = nil
		for _, x := range in.Placement.tolerations {
			if x.Key == hubv1.UnreachableTaint {
				t.Skip("a toleration says for how long")
			}
		}
		for i := range in.Clusters {
			in.Clusters[i].Draining = false
			in.Clusters[i].Taints = []corev1.Taint{{Key: hubv1.UnreachableTaint, Effect: corev1.TaintEffectNoExecute}}
		}
		d := Decide(in)
		if len(evictedBefore(in, d)) != len(d.Evict) || len(d.Unmoved) > 0 {
			t.Fatalf("evicted are %v, and %v should be", d.Evict, d.Unmoved)
		}
	})
}
