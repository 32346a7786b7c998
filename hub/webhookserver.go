package hub

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// webhookEndsWithin is how long a replica that shuts down still serves, so that API servers close their connections.
const webhookEndsWithin = time.Second

// webhookServer makes API servers close their connections before it ends. http.Server.Shutdown closes an idle
// connection without notice. An API server that has just sent a request on this connection then refuses the policy of a
// user. During the shutdown, each answer of a webhookServer closes its connection. With HTTP/2, the server sends a
// GOAWAY frame, after which clients open a new connection (RFC 9113, section 6.8). The Service directs the new
// connection to another replica.
type webhookServer struct {
	webhook.Server
	ending atomic.Bool
}

// Start implements manager.Runnable.
func (s *webhookServer) Start(ctx context.Context) error {
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	left := context.AfterFunc(ctx, func() {
		s.ending.Store(true)
		time.AfterFunc(webhookEndsWithin, end)
	})
	defer left()
	return s.Server.Start(serving)
}

// Register adds a handler at a path.
func (s *webhookServer) Register(path string, next http.Handler) {
	s.Server.Register(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.ending.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	}))
}
