package apply_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/informer"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/apply"
)

func TestRetryAfterIsLeftToTheCaller(t *testing.T) {
	tests := map[string]struct {
		code   int
		reason string
	}{
		"of a server that throttles":   {http.StatusTooManyRequests, hubv1.ReasonThrottled},
		"of a server that is starting": {http.StatusServiceUnavailable, hubv1.ReasonServerError},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				requests.Add(1)
				w.Header().Set("Retry-After", "5")
				http.Error(w, "Too many requests, please try again later.", tc.code)
			}))
			t.Cleanup(server.Close)
			config := &rest.Config{Host: server.URL, QPS: -1}
			config.Wrap(apply.KeepRetryAfter)
			client, err := informer.NewRESTClient(config)
			if err != nil {
				t.Fatal(err)
			}
			w := &world{T: t, ns: "n", applier: apply.New("m1", false, client, resolve, hubUID, nil, ignored)}
			began := time.Now()
			out := w.apply(w.intent(nil, "d1"), failed(tc.reason, member.RetryAfter))
			if out.After != 5*time.Second || requests.Load() != 1 || time.Since(began) > 4*time.Second {
				t.Errorf("after %s, %d requests, took %s", out.After, requests.Load(), time.Since(began))
			}
		})
	}
}
