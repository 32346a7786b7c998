package report

import (
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// throttle notes when the hub's API server last answered 429. client-go repeats such requests by itself and would hide
// it.
type throttle struct {
	clock clock.PassiveClock
	last  atomic.Int64 // unix nanoseconds
}

// active is true until a window has passed without a 429.
func (t *throttle) active() bool {
	return t.clock.Now().Sub(time.Unix(0, t.last.Load())) < throttledWindow
}

// wrap is a transport wrapper for a rest.Config.
func (t *throttle) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err == nil && resp.StatusCode == http.StatusTooManyRequests {
			t.last.Store(t.clock.Now().UnixNano())
		}
		return resp, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
