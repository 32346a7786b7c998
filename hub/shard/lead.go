package shard

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// The lead is valid for LeadLasts after the last renewal. After that, another process may have taken the lead. A
// waiting process asks at intervals from LeadRetryEvery to 2.2 times LeadRetryEvery, so a new leader follows within 2 s
// of a released Lease, and within 17 s of an abandoned Lease.
const (
	LeadLasts       = 13 * time.Second
	LeadRenewWithin = 9 * time.Second
	LeadRetryEvery  = 750 * time.Millisecond
)

// ErrUnsure is the error of a write that was not sent, because this process may have lost the lead or the member.
var ErrUnsure = errors.New("this process can no longer be sure that it leads or works on this member: nothing is written until its Lease is renewed")

// Lead is the state of this process' own lead. It prevents writes after the process has lost the lead without noticing.
// A process that was stopped and resumed may have old writes pending, and learns only later that another process leads.
// A process that has never led is not restricted.
type Lead struct {
	now     func() time.Time // has a monotonic clock, which runs while the process is stopped
	lapsed  func() bool      // see LapseWith
	renewed atomic.Pointer[time.Time]
}

// NewLead returns the Lead of a process that does not lead.
func NewLead() *Lead { return &Lead{now: time.Now, lapsed: func() bool { return false }} }

// LapseWith makes the guard refuse writes while lapsed returns true, because the Lease of this replica has expired. It
// must be called before the first write.
func (l *Lead) LapseWith(lapsed func() bool) { l.lapsed = lapsed }

// Renewals wraps the transport of leader election's own client, which also writes events. A renewal is valid from the
// time when it was sent, because no other process can have seen it earlier.
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

// Guard wraps the transport of every other client of the hub. It refuses writes after the lead was lost.
func (l *Lead) Guard(next http.RoundTripper) http.RoundTripper {
	return guarded(next, func() bool {
		renewed := l.renewed.Load()
		return (renewed == nil || l.now().Sub(*renewed) < LeadLasts) && !l.lapsed()
	})
}

// Guard wraps the transport of a client of the member. It refuses writes after the end of the hold.
func (h *Hold) Guard(next http.RoundTripper) http.RoundTripper { return guarded(next, h.Valid) }

// guarded returns a transport that sends a write only while may returns true.
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

// writes reports whether a request may change an object. Reviews of tokens and of rights are POST requests that store
// nothing. A replica that ends still needs such reviews to answer the webhook and views.
func writes(r *http.Request) bool {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	review := strings.HasPrefix(r.URL.Path, "/apis/authorization.k8s.io/") || strings.HasPrefix(r.URL.Path, "/apis/authentication.k8s.io/")
	return !reads && !review
}

type transport func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// CancelRequest is called by an http.Client after its timeout, in addition to the end of the request's context, which
// ends the request. Without this method client-go logs a warning for each timeout.
func (t transport) CancelRequest(*http.Request) {}
