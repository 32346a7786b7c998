package member

import (
	"errors"
	"net/http"
)

// Route says how the hub reaches a member: with a kubeconfig, or through the lanes that an agent of the member opens.
type Route struct {
	// Kubeconfig has the address of the member and the hub's credentials there. It is empty if Tunnel is true.
	Kubeconfig []byte
	// Tunnel is true if an agent of the member connects to the hub. Keys are the fingerprints of the keys by which the hub
	// knows this agent. Without keys, the hub refuses every agent.
	Tunnel bool
	Keys   []string
}

// ErrAgentAway means that no agent of the member is connected to this replica of the hub.
var ErrAgentAway = errors.New("no agent of the member is connected")

// ErrNoKey means that the MemberCluster names no key of an agent.
var ErrNoKey = errors.New("no key of an agent is approved")

// Lane names one of the three connections that an agent opens. A large answer on one lane does not delay the others.
type Lane string

// The lanes of a member.
const (
	LaneRequests Lane = "requests" // single reads and writes
	LaneWatches  Lane = "watches"
	LaneReads    Lane = "reads" // lists, facts, views and logs
)

// Lanes are the connections of one member's agent. The agent passes requests on to its API server, with credentials
// that the hub never gets. An implementation must be comparable with ==, such as a pointer.
type Lanes interface {
	// RoundTrip sends a request through a lane. If the lane is not connected, RoundTrip waits some seconds for it, and
	// then returns ErrAgentAway. Without an approved key, it returns ErrNoKey at once.
	RoundTrip(lane Lane, req *http.Request) (*http.Response, error)
}

// Connection has the address of a member's API server, and the credentials of the hub there. The hub uses nothing else
// to reach the server. If the kubeconfig of a cluster changes, but its Connection is the same, the link to the cluster
// stays.
type Connection struct {
	// Server is the https URL of the API server, without a trailing slash. With Lanes, it is an http URL of no server.
	Server string
	// ServerName is the name in the server's certificate. Default: the host of Server.
	ServerName string
	// CA has certificates in PEM. One of them must have signed the server's certificate. CA is empty only with Lanes.
	CA          string
	Credentials Credentials
	// Lanes carry the requests, instead of network connections that the hub opens to Server. If they are set, Server is
	// only a name, and the hub has neither a CA nor credentials.
	Lanes Lanes
}

// Credentials authenticate the hub to a member: a token, a client certificate, or both.
type Credentials struct {
	Token string
	// Certificate and Key are the hub's client certificate and its private key, in PEM. Either both are set or none.
	Certificate, Key string
}

// String hides the credentials from logs.
func (Credentials) String() string { return "[credentials]" }
