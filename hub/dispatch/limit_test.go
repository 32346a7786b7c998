package dispatch

import (
	"testing"
	"time"
)

func TestTheLimitFollowsTheAnswers(t *testing.T) {
	// call has the times in seconds at which a call began and ended, and whether it succeeded.
	type call struct {
		began, ended int
		good         bool
	}
	bad := func(began, ended int) call { return call{began: began, ended: ended} }
	good := call{good: true}
	many := func(n int, c call) (out []call) {
		for range n {
			out = append(out, c)
		}
		return out
	}
	tests := map[string]struct {
		calls []call
		want  int
	}{
		"all workers work at first":                              {want: 8},
		"a bad call halves it":                                   {calls: []call{bad(0, 5)}, want: 4},
		"bad calls that were under way together halve it once":   {calls: many(8, bad(0, 5)), want: 4},
		"each further round halves it again":                     {calls: []call{bad(0, 5), bad(5, 10), bad(10, 15)}, want: 1},
		"one call at a time is always left":                      {calls: []call{bad(0, 5), bad(5, 10), bad(10, 15), bad(15, 20), bad(20, 25)}, want: 1},
		"it grows by one with each round of good calls":          {calls: append([]call{bad(0, 5), bad(5, 10), bad(10, 15)}, many(4, good)...), want: 3},
		"it grows back to all workers and no further":            {calls: append([]call{bad(0, 5), bad(5, 10), bad(10, 15)}, many(100, good)...), want: 8},
		"a good call between bad ones does not lift it for long": {calls: []call{bad(0, 5), good, bad(5, 10), good, bad(10, 15)}, want: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLimit(8)
			for _, c := range tc.calls {
				at := now.Add(time.Duration(c.began) * time.Second)
				if c.good {
					l.succeeded(at, at)
				} else {
					l.failed(kind.GroupKind(), at, now.Add(time.Duration(c.ended)*time.Second), false)
				}
				l.failures = 0 // as if a successful call preceded each call
			}
			if int(l.width) != tc.want {
				t.Errorf("the limit is %v, want %d", l.width, tc.want)
			}
		})
	}
}
