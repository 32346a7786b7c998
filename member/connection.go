package member

import (
	"context"
	"net"
)

// Connection is how the hub reaches the API server of a member. There is no other way. Two equal connections are the
// same link.
type Connection struct {
	// Server is the https URL of the API server, without a trailing slash.
	Server string
	// ServerName is the name in the server's certificate. Default: the host of Server.
	ServerName string
	// CA has certificates in PEM. One of them must have signed the server's certificate. It is never empty.
	CA          string
	Credentials Credentials
	// Dial opens the network connections to Server. Default: TCP from the hub.
	Dial Dialer
}

// Credentials authenticate the hub to a member: a token, a client certificate, or both.
type Credentials struct {
	Token string
	// Certificate and Key are PEM; both are set or neither.
	Certificate, Key string
}

// String hides the credentials from logs.
func (Credentials) String() string { return "[credentials]" }

// Dialer opens network connections. It is a pointer or another type whose values can be compared with ==.
type Dialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}
