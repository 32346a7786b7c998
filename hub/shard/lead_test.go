package shard

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"testing"
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
			l := &Lead{now: func() time.Time { return clock }, lapsed: func() bool { return tt.lapsed }}
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
