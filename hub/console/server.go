package console

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Server serves a Console in every replica.
type Server struct {
	// Address is the host:port to listen on.
	Address string
	Console *Console
	// GetCertificate returns the certificate for TLS. If it is nil, the server uses no TLS.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
}

// Start implements manager.Runnable.
func (s *Server) Start(ctx context.Context) error {
	handler, err := s.Console.Handler()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", s.Address)
	if err != nil {
		return fmt.Errorf("listening for the console: %w", err)
	}
	server := &http.Server{
		Handler: handler, MaxHeaderBytes: 32 << 10, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: readWithin, IdleTimeout: 90 * time.Second,
		// The stream of an open page ends when this replica stops. The browser then connects to another replica.
		BaseContext: func(net.Listener) context.Context { return ctx },
		TLSConfig:   &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.GetCertificate},
	}
	ended := context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = server.Shutdown(ctx)
		_ = server.Close()
	})
	defer ended()
	if s.GetCertificate != nil {
		err = server.ServeTLS(listener, "", "")
	} else {
		err = server.Serve(listener)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the console: %w", err)
	}
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable. It returns false, because every replica serves.
func (s *Server) NeedLeaderElection() bool { return false }
