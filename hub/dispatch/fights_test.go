package dispatch

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	"github.com/hanse-dev/hanse/member"
)

func TestACorrectionWaitsOnlyWhenAFieldIsContested(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "b"}
	drift := member.FieldDrift{Path: ".spec.replicas", Manager: "opponent"}
	tests := map[string]struct {
		corrections []int // seconds from the start to each correction
		at          int
		want        time.Duration
	}{
		"an object that was never corrected is corrected at once":       {},
		"three corrections are drift, not a fight":                      {corrections: []int{0, 1, 2}, at: 3},
		"after the fourth in two minutes the next waits for 30 s":       {corrections: []int{0, 1, 2, 10}, at: 10, want: 30 * time.Second},
		"the wait is over 30 s after the last one":                      {corrections: []int{0, 1, 2, 10}, at: 40},
		"a fight at the calm pace stays a fight":                        {corrections: []int{0, 30, 60, 90}, at: 91, want: 29 * time.Second},
		"corrections of more than two minutes ago are forgotten":        {corrections: []int{0, 1, 2, 3}, at: 124},
		"a few old and a few new ones do not add up to a fight anymore": {corrections: []int{0, 1, 130, 131}, at: 132},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			clock := testclock.NewFakePassiveClock(start)
			f := newCopies(clock)
			for _, at := range tc.corrections {
				clock.SetTime(start.Add(time.Duration(at) * time.Second))
				f.corrected(key, drift)
			}
			clock.SetTime(start.Add(time.Duration(tc.at) * time.Second))
			over, got, _ := f.fought(key)
			if got != tc.want {
				t.Errorf("wait is %s, want %s", got, tc.want)
			}
			if tc.want > 0 && over != drift {
				t.Errorf("the fight is over %v, want %v", over, drift)
			}
		})
	}
}

func TestOnlyPodSecurityLabelsTravelToANamespaceMadeOnDemand(t *testing.T) {
	got := podSecurity(map[string]string{"pod-security.kubernetes.io/enforce": "restricted", "team": "a"})
	if diff := cmp.Diff(map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}, got); diff != "" {
		t.Errorf("unexpected labels (-want +got):\n%s", diff)
	}
}
