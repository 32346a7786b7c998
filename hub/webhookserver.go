package hub

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// webhookEndsWithin is the time in which API servers that keep asking leave a replica that ends.
const webhookEndsWithin = time.Second

// webhookServer tells API servers to leave before it ends. http.Server.Shutdown closes a connection between two
// requests without a word, and an API server whose request is on its way refuses the user's policy. So each answer
// closes its connection first: with HTTP/2, that is a GOAWAY frame, after which clients open another one (RFC 9113,
// section 6.8). The Service leads it to another replica.
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

// Register serves a handler at a path.
func (s *webhookServer) Register(path string, next http.Handler) {
	s.Server.Register(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.ending.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	}))
}
