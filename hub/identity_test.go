package hub

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/test/apiserver"
)

func TestTheHubWaitsForItsAPIServer(t *testing.T) {
	apiserver.Needed(t)
	hub, other := serve(t, apiserver.Hub()), serve(t, &envtest.Environment{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	t.Run("until it answers", func(t *testing.T) {
		var refused atomic.Int32
		config := rest.CopyConfig(hub)
		config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if refused.Add(1) <= 2 {
				return nil, errors.New("refused by the test")
			}
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}
		id, err := awaitWithin(ctx, config, metav1.NamespaceDefault, 0)
		if err != nil || id.UID == "" || refused.Load() < 3 {
			t.Errorf("%q, %v after %d connections", id.UID, err, refused.Load())
		}
	})
	t.Run("and serves the hub's kinds", func(t *testing.T) {
		config := rest.CopyConfig(other)
		install := sync.OnceFunc(func() { // after the first request, like a new hub without definitions
			_, err := envtest.InstallCRDs(other, envtest.CRDInstallOptions{Paths: apiserver.Hub().CRDDirectoryPaths})
			if err != nil {
				t.Error(err)
			}
		})
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if strings.HasPrefix(r.URL.Path, "/apis") {
					defer install()
				}
				return next.RoundTrip(r)
			})
		})
		if id, err := awaitWithin(ctx, config, metav1.NamespaceDefault, awaitYes); err != nil || id.UID == "" {
			t.Errorf("%q, %v", id.UID, err)
		}
	})
	t.Run("but not if it keeps saying no", func(t *testing.T) {
		_, err := awaitWithin(ctx, rest.AnonymousClientConfig(hub), metav1.NamespaceDefault, pace.RetryAfter)
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "kube-system") {
			t.Errorf("%v, want what the server said", err)
		}
	})
	t.Run("nor if it is no hub", func(t *testing.T) {
		_, err := awaitWithin(ctx, serve(t, &envtest.Environment{}), metav1.NamespaceDefault, pace.RetryAfter)
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "chart hanse-hub") {
			t.Errorf("%v, want that the definitions are missing", err)
		}
	})
	t.Run("nor when it is asked to end", func(t *testing.T) {
		config := rest.CopyConfig(hub)
		ctx, cancel := context.WithCancel(ctx)
		config.Dial = func(context.Context, string, string) (net.Conn, error) {
			cancel()
			return nil, errors.New("refused by the test")
		}
		if id, err := awaitIdentity(ctx, config, metav1.NamespaceDefault); err != nil || id.UID != "" || ctx.Err() == nil {
			t.Errorf("%q, %v, want neither", id.UID, err)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
