package shard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// The lead (the right to act as the leader) is valid for LeadLasts after the last renewal of the Lease. After that,
// another process may have become the leader. A waiting process tries again after LeadRetryEvery to 2.2 times
// LeadRetryEvery. A new leader therefore follows within 2 s of a released Lease, and within 17 s of an abandoned one.
const (
	LeadLasts       = 13 * time.Second
	LeadRenewWithin = 9 * time.Second
	LeadRetryEvery  = 750 * time.Millisecond
)

// ErrUnsure is the error of a write that was not sent. This process may not be the leader any more, or may have lost
// the member.
var ErrUnsure = errors.New("the Lease of this process may have expired: the process writes nothing until the Lease is renewed")

// Lead knows whether this process is still the leader. It prevents writes of a process that has lost the lead without
// noticing. A process that was stopped and resumed may have pending writes, and may notice only later that another
// process leads. A process that has never led is not restricted.
type Lead struct {
	now     func() time.Time // has a monotonic clock, which runs while the process is stopped
	replica *Coordinator     // see Of
	renewed atomic.Pointer[time.Time]
}

// NewLead returns the Lead of a process that does not lead.
func NewLead() *Lead { return &Lead{now: time.Now, replica: &Coordinator{}} }

// Of sets the coordinator of this replica. Call Of before the first request.
func (l *Lead) Of(replica *Coordinator) { l.replica = replica }

// Renewals wraps the transport of the client that leader election uses. It records the time at which the last renewal
// of a Lease was sent. Other processes see the renewal later, so they never count the Lease as expired earlier than
// this process. Requests for other kinds, such as events, do not count.
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

// Guard wraps the transport of every other client of the hub. It refuses writes after the process has lost the lead, or
// after the Lease of this replica has expired. After a connection was lost, writes wait until the replica is sure that
// the hub was not restored from a backup in the meantime: see Coordinator.RequireRenewal.
func (l *Lead) Guard(next http.RoundTripper) http.RoundTripper {
	return guarded(l.reportingLosses(next), func(ctx context.Context) error {
		if err := l.replica.sure(ctx); err != nil {
			return err
		}
		if renewed := l.renewed.Load(); renewed != nil && l.now().Sub(*renewed) >= LeadLasts {
			return ErrUnsure
		}
		return nil
	})
}

// reportingLosses returns a transport that reports each lost connection to the replica.
func (l *Lead) reportingLosses(next http.RoundTripper) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		switch {
		case err != nil:
			l.lost(err)
		case r.Method == http.MethodGet: // only the response to a watch or a list is read for a while
			response.Body = &body{ReadCloser: response.Body, failed: l.lost}
		}
		return response, err
	})
}

func (l *Lead) lost(err error) {
	if !errors.Is(err, context.Canceled) {
		l.replica.RequireRenewal()
	}
}

// body calls failed if the connection is lost while the body is read.
type body struct {
	io.ReadCloser
	failed func(error)
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.failed(err)
	}
	return n, err
}

// guarded returns a transport that sends a write only if may returns nil. It sends reads in any case.
func guarded(next http.RoundTripper, may func(context.Context) error) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		if writes(r) {
			if err := may(r.Context()); err != nil {
				if r.Body != nil {
					_ = r.Body.Close()
				}
				return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err)
			}
		}
		return next.RoundTrip(r)
	})
}

// writes reports whether a request may change an object. A TokenReview or SubjectAccessReview is a POST request, but
// stores nothing, so it does not count. A replica that shuts down still needs these reviews to answer the admission
// webhook and the API that shows the objects on members.
func writes(r *http.Request) bool {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	review := strings.HasPrefix(r.URL.Path, "/apis/authorization.k8s.io/") || strings.HasPrefix(r.URL.Path, "/apis/authentication.k8s.io/")
	return !reads && !review
}

type transport func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// CancelRequest does nothing. http.Client calls it after a timeout, when the request's context has already ended the
// request. Without this method, client-go logs a warning for each timeout.
func (t transport) CancelRequest(*http.Request) {}
