package membership

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestTheCapacityOfAClusterAtMostDoublesInAnHour(t *testing.T) {
	t.Parallel()
	type step struct {
		after   time.Duration
		reports string
		counts  string
		says    string // the reported amount, if it counts less
		why     string
	}
	for name, tc := range map[string]struct {
		own   string // cpu of spec.capacity
		was   string // cpu of the status that an older hub wrote
		steps []step
	}{
		"a member that invents capacity": {steps: []step{
			{0, "10", "10", "", "the first amount counts at once"},
			{time.Minute, "100", "20", "100", "twice as much at once"},
			{2 * time.Minute, "100", "20", "100", "and no more within the hour"},
			{60 * time.Minute, "100", "20", "100", "which begins with the growth"},
			{61 * time.Minute, "100", "40", "100", "then twice as much again"},
			{121 * time.Minute, "100", "80", "100", "and again"},
			{181 * time.Minute, "100", "100", "", "until the reported amount counts"},
		}},
		"a cluster whose nodes are away for some time": {steps: []step{
			{0, "10", "10", "", "the first amount"},
			{time.Hour, "0", "0", "", "a smaller amount counts at once"},
			{2 * time.Hour, "10", "10", "", "and so does the amount from before"},
			{3 * time.Hour, "30", "20", "30", "which is the base of its growth"},
		}},
		"a cluster that has no nodes at first": {steps: []step{
			{0, "0", "0", "", "nothing"},
			{time.Minute, "50", "50", "", "the first amount counts at once"},
		}},
		"a cluster that grows in small steps": {steps: []step{
			{0, "10", "10", "", "the first amount"},
			{50 * time.Minute, "15", "15", "", "a step"},
			{100 * time.Minute, "20", "20", "", "a step"},
			{110 * time.Minute, "40", "20", "40", "twice as much as before the first step"},
			{160 * time.Minute, "40", "40", "", "an hour after the last step"},
		}},
		"a cluster whose admin has set a capacity": {own: "60", steps: []step{
			{0, "10", "10", "", "the first amount"},
			{time.Minute, "50", "50", "", "grows at once"},
			{2 * time.Minute, "70", "60", "70", "up to the limit of the admin"},
			{5 * time.Hour, "70", "60", "70", "for good"},
		}},
		"a cluster that an older version of the hub knew": {was: "10", steps: []step{
			{0, "100", "20", "100", "grows from the known amount"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &hubv1.MemberCluster{}
			if tc.own != "" {
				c.Spec.Capacity = cpus(tc.own)
			}
			if tc.was != "" {
				c.Status.Capacity, c.Status.Allocatable = cpus(tc.was), cpus(tc.was)
			}
			for _, s := range tc.steps {
				count(c, member.Facts{Capacity: cpus(s.reports), Allocatable: cpus(s.reports)}, noon.Add(s.after))
				counts, reported := c.Status.Capacity.Cpu().String(), ""
				if q, cut := c.Status.CapacityGrowth.Reported[corev1.ResourceCPU]; cut {
					reported = q.String()
				}
				if allocatable := c.Status.Allocatable.Cpu().String(); counts != s.counts || allocatable != s.counts || reported != s.says {
					t.Errorf("after %s, %s: %s (allocatable %s) counts of %q, want %s of %q", s.after, s.why, counts, allocatable, reported, s.counts, s.says)
				}
			}
		})
	}
}

func TestNoCapacityMoreThanDoublesWithinAnHour(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type point struct {
			at     time.Time
			counts corev1.ResourceList
		}
		c, now, seen := &hubv1.MemberCluster{}, noon, map[corev1.ResourceName]bool{}
		var points []point
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(1, 90).Draw(t, "minutes")) * time.Minute)
			list := corev1.ResourceList{}
			for i := range 3 {
				amount := rapid.SampledFrom([]string{"0", "1", "2", "3", "5", "8", "100", "1e20", "-1"}).Draw(t, "amount")
				list[corev1.ResourceName(fmt.Sprintf("example.com/r%d", i))] = resource.MustParse(amount)
			}
			count(c, member.Facts{Capacity: list, Allocatable: list}, now)
			for name, amount := range c.Status.Capacity {
				if amount.Cmp(list[name]) > 0 {
					t.Fatalf("%s of %s counts, more than was reported", amount.String(), name)
				}
				if !seen[name] {
					continue
				}
				// The largest amount that counted before the last hour, or first within it.
				most := resource.Quantity{}
				for _, p := range points {
					before := p.counts[name]
					if before.Cmp(most) > 0 && (now.Sub(p.at) >= growthWindow || most.IsZero()) {
						most = before
					}
				}
				most.Add(most)
				if amount.Cmp(most) > 0 {
					t.Fatalf("at %s, %s of %s counts, more than %s: %v", now, amount.String(), name, most.String(), points)
				}
			}
			for name, amount := range c.Status.Capacity {
				seen[name] = seen[name] || amount.Sign() > 0
			}
			points = append(points, point{now, c.Status.Capacity})
		}
	})
}

func TestTheLimitOfTheGrowthIsBoundedAndSeldomWritten(t *testing.T) {
	t.Parallel()
	c := &hubv1.MemberCluster{}
	for i := range 200 {
		name := corev1.ResourceName(fmt.Sprintf("example.com/invented%d", i))
		list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), name: resource.MustParse("1")}
		count(c, member.Facts{Capacity: list, Allocatable: list}, noon.Add(time.Duration(i)*time.Minute))
	}
	if n := len(c.Status.CapacityGrowth.Base); n != hubv1.MaxResources {
		t.Errorf("the base has %d resources, want %d", n, hubv1.MaxResources)
	}
	before := c.Status.DeepCopy()
	steady := member.Facts{Capacity: before.Capacity, Allocatable: before.Allocatable}
	count(c, steady, noon.Add(300*time.Hour))
	if got, want := c.Status.CapacityGrowth.Since, before.CapacityGrowth.Since; got != want {
		t.Errorf("without growth, since is %s, want %s", got, want)
	}
	if before.CapacityGrowth.Since != metav1.NewTime(noon) {
		t.Errorf("since is %s, want the time of the first report", before.CapacityGrowth.Since)
	}
}
