package hub

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/hanse-dev/hanse/test/apiserver"
)

func TestTheHubWaitsForItsAPIServer(t *testing.T) {
	apiserver.Needed(t)
	config := serve(t, &envtest.Environment{})

	t.Run("until it answers", func(t *testing.T) {
		var refused atomic.Int32
		config := rest.CopyConfig(config)
		config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if refused.Add(1) <= 2 {
				return nil, errors.New("refused by the test")
			}
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}
		id, err := awaitHub(t.Context(), config)
		if err != nil || id == "" || refused.Load() < 3 {
			t.Errorf("%q, %v after %d connections", id, err, refused.Load())
		}
	})
	t.Run("but not if it keeps saying no", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		_, err := awaitHub(ctx, rest.AnonymousClientConfig(config))
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "kube-system") {
			t.Errorf("%v, want what the server said", err)
		}
	})
	t.Run("nor when it is asked to end", func(t *testing.T) {
		config := rest.CopyConfig(config)
		ctx, cancel := context.WithCancel(t.Context())
		config.Dial = func(context.Context, string, string) (net.Conn, error) {
			cancel()
			return nil, errors.New("refused by the test")
		}
		if _, err := awaitHub(ctx, config); err == nil {
			t.Error("no error")
		}
	})
}
