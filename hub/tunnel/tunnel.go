// Package tunnel accepts the lanes that agents of members open to this replica of the hub. A lane is a connection on
// which the hub sends requests to the agent, which passes them on to its API server.
//
//   - An agent is known by its key alone: the MemberCluster has its fingerprint. All others get the same answer, even
//     if there is no such MemberCluster.
//   - Strangers cost little: at most maxStrangers connections wait for a handshake, each for a few seconds.
//   - The lanes of a member belong to one process of its agent. Another process with the same key waits until they end.
//   - When a key is removed from a MemberCluster, or this replica stops working on the member, its lanes end.
package tunnel

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/handshake"
)

const (
	strangerTimeout = 5 * time.Second // time for the handshake and the request of an agent
	maxStrangers    = 256             // connections without a key that the hub knows
	perAddress      = 16              // of these, from one IP address
	maxHeader       = 8 << 10
	maxInstance     = 64
	// laneWait is how long a request waits for a lane, so that an agent that comes back at once loses no request.
	laneWait = 3 * time.Second
)

// Options of a Server.
type Options struct {
	// Address is host:port at which agents connect.
	Address string
	// Certificate has the hub's key, whose fingerprint agents know.
	Certificate tls.Certificate
	// NewLane makes an HTTP/2 client on the connection of a lane.
	NewLane func(context.Context, net.Conn) (*http.ClientConn, error)
	Logger  logr.Logger
}

// Server listens for agents, and keeps the lanes of the members on which this replica works.
type Server struct {
	// Apply records agents that ask for their approval. It is set before Start. nil: agents cannot ask.
	Apply Apply

	options  Options
	listener net.Listener

	mu      sync.Mutex
	members map[string]*lanes
}

// Listen opens the port for agents. Start serves it.
func Listen(o Options) (*Server, error) {
	listener, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("listening for agents of members: %w", err)
	}
	return &Server{options: o, listener: listener, members: map[string]*lanes{}}, nil
}

// Address returns the host:port at which the server listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Open implements connect.Tunnels.
func (s *Server) Open(cluster string, keys []string, arrived func()) member.Lanes {
	s.mu.Lock()
	l := s.members[cluster]
	if l == nil {
		l = newLanes(s.options.Logger.WithValues("cluster", cluster))
		s.members[cluster] = l
	}
	s.mu.Unlock()
	l.allow(keys, arrived)
	return l
}

// Close implements connect.Tunnels.
func (s *Server) Close(cluster string) {
	s.mu.Lock()
	l := s.members[cluster]
	delete(s.members, cluster)
	s.mu.Unlock()
	if l != nil {
		l.close()
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica works on members.
func (s *Server) NeedLeaderElection() bool { return false }

// Start accepts agents until ctx ends. It then ends all lanes.
func (s *Server) Start(ctx context.Context) error {
	bound := newStrangers()
	server := &http.Server{
		Handler: http.HandlerFunc(s.serve), ConnState: bound.follow, ErrorLog: log.New(discard{}, "", 0), MaxHeaderBytes: maxHeader,
		ReadTimeout: strangerTimeout, ReadHeaderTimeout: strangerTimeout, WriteTimeout: strangerTimeout, IdleTimeout: strangerTimeout,
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{s.options.Certificate}, NextProtos: []string{"http/1.1"},
			// The certificate only carries the key of the agent. The handshake proves that the agent has the private key.
			ClientAuth: tls.RequireAnyClientCert, SessionTicketsDisabled: true,
		},
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	server.SetKeepAlivesEnabled(false) // one request for each connection
	s.options.Logger.Info("Listening for agents of members", "address", s.Address(), "key", handshake.Fingerprint(s.options.Certificate.Leaf))
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	err := server.ServeTLS(s.listener, "", "")
	s.mu.Lock()
	members := s.members
	s.members = map[string]*lanes{}
	s.mu.Unlock()
	for _, l := range members {
		l.close()
	}
	if ctx.Err() == nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving agents of members: %w", err)
	}
	return nil
}

// serve answers the request of an agent for a lane.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	name, known := strings.CutSuffix(r.TLS.ServerName, handshake.ServerSuffix)
	lane, asked := strings.CutPrefix(r.URL.Path, handshake.LanePath)
	instance := r.Header.Get(handshake.InstanceHeader)
	key := handshake.Fingerprint(r.TLS.PeerCertificates[0])
	switch {
	case known && r.Method == http.MethodPost && r.URL.Path == handshake.JoinPath:
		s.join(w, r, name, key)
		return
	case !known || !asked || r.Method != http.MethodPost || !isLane(member.Lane(lane)):
		http.Error(w, "this port is for agents of members only", http.StatusNotFound)
		return
	case r.Header.Get("Upgrade") != handshake.Protocol:
		http.Error(w, "the hub speaks "+handshake.Protocol+": use a version of hanse-member that does, too", http.StatusUpgradeRequired)
		return
	case instance == "" || len(instance) > maxInstance:
		http.Error(w, "the header "+handshake.InstanceHeader+" has 1 to 64 characters", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	l := s.members[name]
	s.mu.Unlock()
	if l == nil || !l.allows(key) {
		http.Error(w, fmt.Sprintf("KeyUnknown: this replica of the hub works on no MemberCluster %s with the key %s in spec.connection.tunnel.keys", name, key), http.StatusForbidden)
		return
	}
	if l.standby(instance) {
		http.Error(w, "Standby: another agent with this key is connected", http.StatusConflict)
		return
	}
	conn, err := hijack(w)
	if err != nil {
		return
	}
	s.take(l, arrival{lane: member.Lane(lane), key: key, instance: instance, conn: conn, from: r.RemoteAddr})
}

func isLane(l member.Lane) bool {
	return l == member.LaneRequests || l == member.LaneWatches || l == member.LaneReads
}

var errEarly = errors.New("the agent sent data before the answer")

// hijack answers the request for a lane, and takes the connection over from package net/http.
func hijack(w http.ResponseWriter) (net.Conn, error) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, err
	}
	if buffered.Reader.Buffered() > 0 {
		_ = conn.Close()
		return nil, errEarly
	}
	answer := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + handshake.Protocol + "\r\n\r\n"
	err = conn.SetDeadline(time.Now().Add(strangerTimeout))
	if err == nil {
		_, err = conn.Write([]byte(answer))
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// take makes a lane of a connection.
func (s *Server) take(l *lanes, a arrival) {
	ctx, cancel := context.WithTimeout(context.Background(), strangerTimeout) // the lane outlives the request
	defer cancel()
	client, err := s.options.NewLane(ctx, plainConn{a.conn})
	if err != nil {
		_ = a.conn.Close()
		return
	}
	if !l.add(a, client) {
		_ = client.Close()
	}
}

// plainConn hides that the connection is one of package tls. Otherwise, net/http looks for HTTP/2 in its handshake.
type plainConn struct{ net.Conn }

// discard drops the lines that package net/http logs about strangers. They have no bound.
type discard struct{}

// Write implements io.Writer.
func (discard) Write(p []byte) (int, error) { return len(p), nil }
