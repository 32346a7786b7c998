package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
)

func TestEvictionsHaveARate(t *testing.T) {
	t.Parallel()
	var l limits
	l.opts = Failover{Grace: time.Minute, PerSecond: 4}.WithDefaults()
	if got := l.settling(now); got != time.Minute {
		t.Errorf("a hub that does not lead believes what it sees after %s", got)
	}
	l.begin(now.Add(-40 * time.Second))
	if got := l.settling(now); got != 20*time.Second {
		t.Errorf("after 40 s, a leader believes what it sees after %s", got)
	}
	if got := l.settling(now.Add(time.Hour)); got != 0 {
		t.Errorf("after an hour, a leader believes what it sees after %s", got)
	}
	id := func(n int) key { return key{Name: fmt.Sprint(n)} }
	for n := range 12 {
		want := max(0, time.Duration(n-3)*250*time.Millisecond)
		if got := l.evictionIn(id(n), now); got != want {
			t.Errorf("object %d will have to wait for %s, want %s", n, got, want)
		}
		if got := l.reserve(id(n), now); got != want {
			t.Errorf("object %d is to wait for %s, want %s", n, got, want)
		}
	}
	if got := l.reserve(id(11), now.Add(time.Second)); got != time.Second {
		t.Errorf("an object that asks again is to wait for %s", got)
	}
	l.decided(id(11), decide.Claims{EvictionWaits: true}, true)
	l.decided(id(10), decide.Claims{Evicted: []string{"eu"}}, false) // the write failed
	l.decided(id(9), decide.Claims{Evicted: []string{"eu"}}, true)
	l.decided(id(8), decide.Claims{}, true)
	if _, kept := l.reserved[id(11)]; !kept || len(l.reserved) != 10 {
		t.Errorf("kept are %v", l.reserved)
	}
	if got := l.reserve(id(20), now.Add(time.Hour)); got != 0 {
		t.Errorf("after a pause an object is to wait for %s", got)
	}
}

func TestEvictionsGrowWithTheFleet(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ set, placed, want int }{
		"a few objects":                    {0, 500, 10},
		"ten thousand objects":             {0, 10_000, 100},
		"an option of the user is a limit": {5, 10_000, 5},
	} {
		l := limits{opts: Failover{PerSecond: tc.set}.WithDefaults(), placed: func() int { return tc.placed }}
		for n := range tc.want {
			if wait := l.reserve(key{Name: fmt.Sprint(n)}, now); wait != 0 {
				t.Fatalf("%s: object %d waits for %s", name, n, wait)
			}
		}
		if l.reserve(key{Name: "further"}, now) == 0 {
			t.Errorf("%s: more than %d objects move in a second", name, tc.want)
		}
	}
}

// The test decides on two objects with the same limits. By these limits, only one of the two objects may leave the
// cluster now.
func TestAnObjectIsDecidedAgainIfAnotherTookItsPlace(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change  func(*hubv1.MemberCluster)
		entries []string // entries of the object whose decision was made later
		claims  decide.Claims
	}{
		"in the rate of evictions": {lost(time.Hour), []string{"eu"}, decide.Claims{EvictionWaits: true}},
		"in a drain": {func(c *hubv1.MemberCluster) {
			c.Spec.Drain = &hubv1.DrainPolicy{MaxUnavailable: ptr.To[int32](1)}
		}, []string{"eu"}, decide.Claims{FullDrains: []string{"eu"}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := limits{opts: Failover{PerSecond: 1}.WithDefaults()}
			l.drains.wake = func(key) {}
			l.begin(now.Add(-time.Hour))
			objects := [2]decide.Input{}
			for i := range objects {
				in := inputFor(bound(present("eu")), failingOver(1), []*hubv1.MemberCluster{cluster("eu", tc.change), cluster("sg"), cluster("us")})
				in.Object.ID.Name = fmt.Sprint("web-", i)
				in.Limits = l.of(in)
				objects[i] = in
			}
			for i, in := range objects {
				p := decide.Decide(in)
				if got, want := entriesOf(p.Spec), "[~eu "; !strings.HasPrefix(fmt.Sprint(got), want) {
					t.Fatalf("object %d leaves too late: %v", i, got)
				}
				if got := l.claim(in, p.Claims); got != (i == 0) {
					t.Fatalf("the claim of object %d is free: %t", i, got)
				}
			}
			slower := objects[1]
			slower.Limits = l.of(slower)
			p := decide.Decide(slower)
			if diff := cmp.Diff(tc.entries, entriesOf(p.Spec)) + cmp.Diff(tc.claims, p.Claims); diff != "" {
				t.Errorf("the second decision of the slower object (-want +got):\n%s", diff)
			}
			if !l.claim(slower, p.Claims) {
				t.Error("the wait of the slower object is not as it knew")
			}
		})
	}
}
