package member

import (
	"context"
	"net"
)

// Connection has the address of a member's API server, and the credentials of the hub there. The hub uses nothing else
// to reach the server. If the kubeconfig of a cluster changes, but its Connection is the same, the link to the cluster
// stays.
type Connection struct {
	// Server is the https URL of the API server, without a trailing slash.
	Server string
	// ServerName is the name in the server's certificate. Default: the host of Server.
	ServerName string
	// CA has certificates in PEM. One of them must have signed the server's certificate. CA is never empty.
	CA          string
	Credentials Credentials
	// Dial opens the network connections to Server. The default opens TCP connections from the hub.
	Dial Dialer
}

// Credentials authenticate the hub to a member: a token, a client certificate, or both.
type Credentials struct {
	Token string
	// Certificate and Key are the hub's client certificate and its private key, in PEM. Either both are set or none.
	Certificate, Key string
}

// String hides the credentials from logs.
func (Credentials) String() string { return "[credentials]" }

// Dialer opens network connections. Its implementation must be comparable with ==, such as a pointer.
type Dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}
