package shard

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

func TestALeaderThatMayHaveLostItsLeadDoesNotWrite(t *testing.T) {
	type renewal struct {
		at     time.Duration
		status int
		path   string // path of the request; empty: the path of the Lease
	}
	tests := map[string]struct {
		renewals []renewal
		lapsed   bool
		method   string
		path     string // path of the request; empty: the path of a widget
		at       time.Duration
		refused  bool
	}{
		"a process that has never led may write": {method: http.MethodPost, at: time.Hour},
		"a leader writes within its Lease": {
			renewals: []renewal{{status: http.StatusOK}}, method: http.MethodPatch, at: LeadLasts - time.Second,
		},
		"a leader that has not renewed in time does not write": {
			renewals: []renewal{{status: http.StatusOK}}, method: http.MethodPatch, at: LeadLasts, refused: true,
		},
		"nor does it delete": {
			renewals: []renewal{{status: http.StatusOK}}, method: http.MethodDelete, at: time.Hour, refused: true,
		},
		"it still reads": {
			renewals: []renewal{{status: http.StatusOK}}, method: http.MethodGet, at: time.Hour,
		},
		"it still asks for the rights of a user": {
			renewals: []renewal{{status: http.StatusOK}}, method: http.MethodPost, path: "/apis/authorization.k8s.io/v1/subjectaccessreviews", at: time.Hour,
		},
		"a replica whose own Lease has run out still asks who a token is of": {
			lapsed: true, method: http.MethodPost, path: "/apis/authentication.k8s.io/v1/tokenreviews",
		},
		"a renewal lets it write again": {
			renewals: []renewal{{status: http.StatusCreated}, {at: time.Minute, status: http.StatusOK}}, method: http.MethodPatch, at: time.Minute + time.Second,
		},
		"a replica whose own Lease has run out does not write, leader or not": {lapsed: true, method: http.MethodPatch, refused: true},
		"a renewal that was refused does not": {
			renewals: []renewal{{status: http.StatusOK}, {at: time.Minute, status: http.StatusConflict}}, method: http.MethodPatch, at: time.Minute + time.Second, refused: true,
		},
		"an event of leader election renews nothing": {
			renewals: []renewal{{status: http.StatusOK}, {at: time.Minute, status: http.StatusCreated, path: "/apis/events.k8s.io/v1/namespaces/hanse-system/events"}},
			method:   http.MethodPatch, at: time.Minute + time.Second, refused: true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			clock := begin
			l := NewLead()
			l.now = func() time.Time { return clock }
			if tt.lapsed {
				l.replica.term = &term{now: l.now, over: true}
			}
			for _, r := range tt.renewals {
				clock = begin.Add(r.at)
				// A renewed Lease is valid from the sending of the request. A response that takes long does not prolong this time.
				lease := l.Renewals(transport(func(*http.Request) (*http.Response, error) {
					clock = clock.Add(time.Minute)
					return &http.Response{StatusCode: r.status, Body: http.NoBody}, nil
				}))
				if err := send(t, lease, http.MethodPut, cmp.Or(r.path, "/apis/coordination.k8s.io/v1/namespaces/hanse-system/leases/hanse-hub")); err != nil {
					t.Fatal(err)
				}
			}
			clock = begin.Add(tt.at)
			sent := false
			guarded := l.Guard(transport(func(*http.Request) (*http.Response, error) {
				sent = true
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
			}))
			err := send(t, guarded, tt.method, cmp.Or(tt.path, "/apis/test.hanse.dev/v1/widgets/w"))
			if errors.Is(err, ErrUnsure) != tt.refused || sent == tt.refused {
				t.Errorf("error %v, sent %t; want refused %t", err, sent, tt.refused)
			}
		})
	}
}

func send(t *testing.T, over http.RoundTripper, method, path string) error {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "https://hub.example"+path, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	response, err := over.RoundTrip(r)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// leasedReplica is a replica with a term, on a clock of the test, and the guarded transport of its client of the hub.
type leasedReplica struct {
	t     *testing.T
	clock time.Time
	term  *term
	guard http.RoundTripper
	next  func(*http.Request) (*http.Response, error)
	sent  atomic.Int32 // number of writes that reached the server
}

func newLeasedReplica(t *testing.T) *leasedReplica {
	t.Helper()
	d := &leasedReplica{t: t, clock: time.Now()}
	now := func() time.Time { return d.clock }
	d.term = newTerm("a", now, d.clock)
	l := NewLead()
	l.now, l.replica = now, &Coordinator{term: d.term}
	d.guard = l.Guard(transport(func(r *http.Request) (*http.Response, error) {
		if writes(r) {
			d.sent.Add(1)
		}
		return d.next(r)
	}))
	d.next = func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}
	return d
}

// loses reads a response that breaks with err.
func (d *leasedReplica) loses(err error) {
	d.t.Helper()
	next := d.next
	d.next = func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(iotest.ErrReader(err))}, nil
	}
	r, failed := http.NewRequestWithContext(d.t.Context(), http.MethodGet, "https://hub.example/api/v1/pods?watch=1", nil)
	if failed != nil {
		d.t.Fatal(failed)
	}
	response, failed := d.guard.RoundTrip(r)
	if failed != nil {
		d.t.Fatal(failed)
	}
	if _, got := io.ReadAll(response.Body); !errors.Is(got, err) {
		d.t.Fatalf("the body breaks with %v, want %v", got, err)
	}
	if failed := response.Body.Close(); failed != nil {
		d.t.Fatal(failed)
	}
	d.next = next
}

func TestAfterALostConnectionAWriteWaitsForARenewal(t *testing.T) {
	for name, end := range map[string]struct {
		then func(d *leasedReplica)
		want error
	}{
		"a renewal that was sent later lets the write go": {func(d *leasedReplica) { d.term.renew(d.clock.Add(time.Second)) }, nil},
		"the end of the term refuses it":                  {func(d *leasedReplica) { d.term.end() }, ErrUnsure},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newLeasedReplica(t)
				d.loses(io.ErrUnexpectedEOF)
				written := make(chan error)
				go func() { written <- send(t, d.guard, http.MethodPatch, "/apis/test.hanse.dev/v1/widgets/w") }()
				synctest.Wait()
				if d.sent.Load() != 0 {
					t.Error("the write was sent before a renewal")
				}
				d.term.renew(d.clock.Add(-time.Second))
				synctest.Wait()
				if d.sent.Load() != 0 {
					t.Error("a renewal that was sent before the loss let the write go")
				}
				end.then(d)
				if err := <-written; !errors.Is(err, end.want) {
					t.Errorf("the write ends with %v, want %v", err, end.want)
				}
			})
		})
	}
}

func TestOnlyALostConnectionRequiresARenewal(t *testing.T) {
	refused := func(err error) func(*leasedReplica) {
		return func(d *leasedReplica) {
			d.next = func(*http.Request) (*http.Response, error) { return nil, err }
			_ = send(d.t, d.guard, http.MethodGet, "/api/v1/pods")
		}
	}
	for name, tc := range map[string]struct {
		event        func(*leasedReplica)
		needsRenewal bool
	}{
		"a request that gets no connection":       {refused(syscall.ECONNREFUSED), true},
		"a watch that breaks":                     {func(d *leasedReplica) { d.loses(io.ErrUnexpectedEOF) }, true},
		"a watch that this process ends":          {func(d *leasedReplica) { d.loses(context.Canceled) }, false},
		"a request that this process gives up":    {refused(context.Canceled), false},
		"a watch that the server ends, or a list": {func(d *leasedReplica) { _ = send(d.t, d.guard, http.MethodGet, "/api/v1/pods") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			d := newLeasedReplica(t)
			if tc.event(d); d.term.needsRenewal() != tc.needsRenewal {
				t.Errorf("needs a renewal: %t", d.term.needsRenewal())
			}
		})
	}
}

func TestAMemberIsNotWrittenBeforeTheRenewalOrAfterTheHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newLeasedReplica(t)
		h := &Hold{term: d.term}
		member := h.Guard(transport(func(*http.Request) (*http.Response, error) { return d.next(nil) }))
		d.loses(io.ErrUnexpectedEOF)
		written := make(chan error)
		go func() { written <- send(t, member, http.MethodPatch, "/apis/test.hanse.dev/v1/widgets/w") }()
		synctest.Wait()
		select {
		case err := <-written:
			t.Errorf("the write ended before a renewal: %v", err)
		default:
		}
		d.term.renew(d.clock.Add(time.Second))
		if err := <-written; err != nil {
			t.Error(err)
		}
		h.release()
		if err := send(t, member, http.MethodPatch, "/apis/test.hanse.dev/v1/widgets/w"); !errors.Is(err, ErrUnsure) {
			t.Errorf("after the hold, a write ends with %v, want %v", err, ErrUnsure)
		}
	})
}
