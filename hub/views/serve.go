package views

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"k8s.io/client-go/util/cert"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// These annotations are on a replica's Lease. Other replicas and hansectl read them to connect to the replica and to
// check its certificate.
const (
	// AddressAnnotation has the host:port of the replica.
	AddressAnnotation = hubv1.Prefix + "view-address"
	// CertificateAnnotation has the SHA-256 digest of the replica's certificate, in hexadecimal digits.
	CertificateAnnotation = hubv1.Prefix + "view-certificate"
)

// Server serves a View over TLS, with a self-signed certificate.
type Server struct {
	listener    net.Listener
	certificate tls.Certificate
	advertised  string
	// Handler handles the requests to the Server. It must be set before Start.
	Handler http.Handler
}

// Listen opens the port of the Server. host is the host name or IP address by which other replicas reach this Server.
// If host is empty, the listening address is used. If address is "0" or empty, requests about members are turned off,
// and Listen returns nil.
func Listen(address, host string) (*Server, error) {
	if address == "" || address == "0" {
		return nil, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listening for views of members: %w", err)
	}
	bound, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return nil, fmt.Errorf("reading the address for views of members: %w", errors.Join(err, l.Close()))
	}
	if host == "" {
		host = bound
	}
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("making a certificate for views of members: %w", errors.Join(err, l.Close()))
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate for views of members: %w", errors.Join(err, l.Close()))
	}
	return &Server{listener: l, certificate: pair, advertised: net.JoinHostPort(host, port)}, nil
}

// Annotations returns the annotations of the replica's Lease: the address and the certificate's digest. They are nil if
// requests about members are turned off.
func (s *Server) Annotations() map[string]string {
	if s == nil {
		return nil // no server, because views are turned off
	}
	return map[string]string{AddressAnnotation: s.advertised, CertificateAnnotation: digest(s.certificate.Certificate[0])}
}

// HolderOf returns the replica whose Lease has these annotations.
func HolderOf(annotations map[string]string) Holder {
	return Holder{Address: annotations[AddressAnnotation], Certificate: annotations[CertificateAnnotation]}
}

// Start implements manager.Runnable.
func (s *Server) Start(ctx context.Context) error {
	server := &http.Server{
		Handler: s.Handler, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{s.certificate}},
		// The empty map in TLSNextProto turns HTTP/2 off, so that a connection has one request at a time.
		TLSNextProto:   map[string]func(*http.Server, *tls.Conn, http.Handler){},
		MaxHeaderBytes: 64 << 10, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: answerWithin, WriteTimeout: 2 * answerWithin, IdleTimeout: 90 * time.Second,
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	ended := context.AfterFunc(ctx, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = server.Shutdown(ctx) // clients of unfinished requests retry with another replica
		_ = server.Close()
	})
	defer ended()
	if err := server.ServeTLS(s.listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving views of members: %w", err)
	}
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable. It returns false, because every replica serves.
func (s *Server) NeedLeaderElection() bool { return false }

// digest returns the SHA-256 digest of a certificate, or of the body of a request, in hexadecimal digits.
func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

var errUnknownCertificate = errors.New("the server has no certificate that a replica of the hub names in its Lease")

func isOneOf(state tls.ConnectionState, certificates []string) error {
	if len(state.PeerCertificates) == 0 || !slices.Contains(certificates, digest(state.PeerCertificates[0].Raw)) {
		return errUnknownCertificate
	}
	return nil
}
