package report

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"
)

func TestThrottleHoldsForAWindow(t *testing.T) {
	answer := http.StatusTooManyRequests
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(answer) }))
	defer server.Close()
	clock := testclock.NewFakePassiveClock(time.Now())
	th := &throttle{clock: clock}
	client := &http.Client{Transport: th.wrap(http.DefaultTransport)}
	get := func() {
		t.Helper()
		resp, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	if th.active() {
		t.Error("throttled before the first request")
	}
	get()
	if !th.active() {
		t.Error("not throttled after a 429")
	}
	clock.SetTime(clock.Now().Add(throttledWindow))
	if th.active() {
		t.Error("still throttled after a window")
	}
	answer = http.StatusOK
	get()
	if th.active() {
		t.Error("throttled by a good answer")
	}
}
