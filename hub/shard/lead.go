package shard

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// The lead is held for LeadLasts after the last renewal: from then on another process may have taken it. A process that
// waits to lead asks every LeadRetryEvery to 2.2 times that. So a new leader is there within 2 s of one that released
// its Lease, and within 17 s of one that did not.
const (
	LeadLasts       = 13 * time.Second
	LeadRenewWithin = 9 * time.Second
	LeadRetryEvery  = 750 * time.Millisecond
)

// ErrUnsure is why a write was not sent.
var ErrUnsure = errors.New("this process can no longer be sure that it leads or works on this member: nothing is written until its Lease is renewed")

// Lead is the lead as its process knows it. It keeps the process from writing after it lost the lead without noticing.
// A process that was stopped and resumed may have old writes pending, and learns only later that another process leads.
// A process that has never led is not held back.
type Lead struct {
	now     func() time.Time // has a monotonic clock, which goes on while the process is stopped
	lapsed  func() bool      // see LapseWith
	renewed atomic.Pointer[time.Time]
}

// NewLead returns the Lead of a process that does not lead.
func NewLead() *Lead { return &Lead{now: time.Now, lapsed: func() bool { return false }} }

// LapseWith makes the guard refuse writes while lapsed is true: the Lease of this replica has run out. It is to be
// called before anything is written.
func (l *Lead) LapseWith(lapsed func() bool) { l.lapsed = lapsed }

// Renewals wraps the transport of leader election's own client, which writes events, too. A renewal counts from when it
// was sent: no other process can have seen it earlier.
func (l *Lead) Renewals(next http.RoundTripper) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		sent := l.now()
		response, err := next.RoundTrip(r)
		if err == nil && writes(r) && strings.Contains(r.URL.Path, "/leases") && response.StatusCode < http.StatusMultipleChoices {
			l.renewed.Store(&sent)
		}
		return response, err
	})
}

// Guard wraps the transport of every other client of the hub.
func (l *Lead) Guard(next http.RoundTripper) http.RoundTripper {
	return guarded(next, func() bool {
		renewed := l.renewed.Load()
		return (renewed == nil || l.now().Sub(*renewed) < LeadLasts) && !l.lapsed()
	})
}

// Guard wraps the transport of a client of the member: it refuses writes once the hold is over.
func (h *Hold) Guard(next http.RoundTripper) http.RoundTripper { return guarded(next, h.Valid) }

// guarded is a transport that sends a write only while it may.
func guarded(next http.RoundTripper, may func() bool) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		if writes(r) && !may() {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, ErrUnsure)
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
