package hub

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// The lead is held for leaseLasts after the last renewal: from then on another process may have taken it. A process
// that waits to lead asks every retryEvery to 2.2 times that, so that a new leader is there within 2 s of one that says
// goodbye, and within 17 s of one that does not.
const (
	leaseLasts  = 13 * time.Second
	renewWithin = 9 * time.Second
	retryEvery  = 750 * time.Millisecond
)

var errFenced = errors.New("this process can no longer be sure that it leads or works on this member: nothing is written until its Lease is renewed")

// fence keeps a process from writing that led once and does not know that it no longer does: one that was stopped and
// resumed has writes at hand that it decided on long ago, and learns only later that another process leads. A process
// that has never led writes nothing but what any replica may.
type fence struct {
	now     func() time.Time // has a monotonic clock, which goes on while the process is stopped
	lapsed  func() bool      // the Lease that shows that this replica lives has run out; set before anything is written
	renewed atomic.Pointer[time.Time]
}

// renewals wraps the transport of leader election's own client, which writes events, too. A renewal counts from when it
// was sent: no other process can have seen it earlier.
func (f *fence) renewals(next http.RoundTripper) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		sent := f.now()
		response, err := next.RoundTrip(r)
		if err == nil && writes(r) && strings.Contains(r.URL.Path, "/leases") && response.StatusCode < http.StatusMultipleChoices {
			f.renewed.Store(&sent)
		}
		return response, err
	})
}

// guard wraps the transport of every other client of the hub.
func (f *fence) guard(next http.RoundTripper) http.RoundTripper {
	return guarded(next, func() bool {
		renewed := f.renewed.Load()
		return (renewed == nil || f.now().Sub(*renewed) < leaseLasts) && !f.lapsed()
	})
}

// guarded is a transport that sends a write only while it may.
func guarded(next http.RoundTripper, may func() bool) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		if writes(r) && !may() {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, errFenced)
		}
		return next.RoundTrip(r)
	})
}

func writes(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

type transport func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// CancelRequest is called by an http.Client whose time-out is over, beside the end of the request's context, which is
// what ends the request. Without it client-go logs a warning for each.
func (t transport) CancelRequest(*http.Request) {}
