package schedule

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

func TestANodeThatComesAndGoesMovesNothing(t *testing.T) {
	t.Parallel()
	var c capacities
	at := func(after time.Duration, n int64) (believed int64, wait time.Duration) {
		m := cluster("eu", cpus(n))
		m.UID = "eu"
		b, known := c.of(m, now.Add(after))
		if !known {
			t.Fatal("it is not known")
		}
		return b.Allocatable.Cpu().Value(), b.SettlesIn
	}
	steps := []struct {
		after    time.Duration
		says     int64
		believed int64
		wait     time.Duration
		why      string
	}{
		{0, 30, 30, 5 * time.Minute, "the first is taken for the time being"},
		{time.Minute, 40, 40, 5 * time.Minute, "as is the next one, which begins anew"},
		{6 * time.Minute, 40, 40, 0, "then it is settled"},
		{7 * time.Minute, 30, 40, 5 * time.Minute, "a node goes"},
		{9 * time.Minute, 40, 40, 0, "and comes back"},
		{10 * time.Minute, 30, 40, 5 * time.Minute, "and goes again, which begins anew"},
		{14 * time.Minute, 30, 40, time.Minute, "for long"},
		{15 * time.Minute, 30, 30, 0, "and is believed to be gone"},
		{16 * time.Minute, 31, 30, 0, "a little more is nothing"},
		{17 * time.Minute, 60, 30, 5 * time.Minute, "a cluster that grows"},
		{18 * time.Minute, 90, 30, 4 * time.Minute, "and goes on to"},
		{22 * time.Minute, 120, 120, 0, "is believed what it says in the end"},
	}
	for _, s := range steps {
		if believed, wait := at(s.after, s.says); believed != s.believed || wait != s.wait {
			t.Errorf("%s: %d is believed, wait %s; want %d, %s", s.why, believed, wait, s.believed, s.wait)
		}
	}
}

func TestSharesStayWhileCapacityIsUnsettled(t *testing.T) {
	t.Parallel()
	in := inputFor(divided(share("eu", 6), share("sg", 6)), only(policy("web", dividing(hubv1.DivideByCapacity))), nil)
	reported := func(eu, sg int64) []*hubv1.MemberCluster {
		out := []*hubv1.MemberCluster{cluster("eu", cpus(eu)), cluster("sg", cpus(sg))}
		for _, c := range out {
			c.UID = types.UID("uid-of-" + c.Name)
		}
		return out
	}
	var c capacities
	at := func(after time.Duration, size, asks, eu, sg int64) (string, time.Duration) {
		in.Facts.Clusters = reported(eu, sg)
		in.Facts.Placements[0].PlacementSpec().Replicas.Requests[corev1.ResourceCPU] = *resource.NewQuantity(asks, resource.DecimalSI)
		in.Now, in.Capacities = now.Add(after), map[string]decide.Capacity{}
		for _, m := range in.Facts.Clusters {
			in.Capacities[m.Name], _ = c.of(m, in.Now)
		}
		in.Object.Template.Object["spec"] = map[string]any{"size": size}
		p := decide.Decide(in)
		in.Binding = divided(p.Spec.Clusters...)
		in.Binding.BindingSpec().Division = p.Spec.Division
		return shares(p.Spec), p.Again
	}
	steps := []struct {
		after              time.Duration
		size, asks, eu, sg int64
		want               string
		again              time.Duration
		why                string
	}{
		{0, 12, 1, 30, 10, "eu=6 sg=6", 5 * time.Minute, "after a start the shares stay"},
		{time.Minute, 13, 1, 30, 10, "eu=9 sg=4", 4 * time.Minute, "unless the number changes"},
		{2 * time.Minute, 13, 3, 30, 10, "eu=10 sg=3", 3 * time.Minute, "or what one replica asks for"},
		{3 * time.Minute, 12, 1, 30, 10, "eu=9 sg=3", 2 * time.Minute, "and again"},
		{5 * time.Minute, 12, 1, 30, 10, "eu=9 sg=3", 0, "settled"},
		{6 * time.Minute, 12, 1, 10, 10, "eu=9 sg=3", 5 * time.Minute, "nodes go"},
		{8 * time.Minute, 12, 1, 30, 10, "eu=9 sg=3", 0, "and are back"},
		{9 * time.Minute, 12, 1, 10, 10, "eu=9 sg=3", 5 * time.Minute, "and go again"},
		{14 * time.Minute, 12, 1, 10, 10, "eu=6 sg=6", 0, "for good"},
	}
	at(0, 12, 1, 30, 10)
	// The hub restarts: it has no capacities in memory.
	in.Binding.BindingSpec().Clusters, c = divided(share("eu", 6), share("sg", 6)).Spec.Clusters, capacities{}
	for _, s := range steps {
		if got, again := at(s.after, s.size, s.asks, s.eu, s.sg); got != s.want || again != s.again {
			t.Errorf("%s: %q, again in %s; want %q, %s", s.why, got, again, s.want, s.again)
		}
	}
}
