package connect

import (
	"context"
	"io"
	"net"
	"net/http"

	"github.com/hanse-dev/hanse/member"
)

// Tunnels keeps the lanes that the agents of members open to this replica of the hub.
type Tunnels interface {
	// Open lets agents with one of the keys open the lanes of a cluster, and ends lanes with other keys. arrived is called
	// after a lane was opened; it must not block. A later call for the cluster returns the same lanes.
	Open(cluster string, keys []string, arrived func()) member.Lanes
	// Close ends the lanes of a cluster. Agents of the cluster are refused until Open is called again.
	Close(cluster string)
}

// NewLane makes an HTTP/2 client on a connection that an agent has opened, with the limits of all connections to
// members.
func NewLane(ctx context.Context, conn net.Conn) (*http.ClientConn, error) {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true) // conn is encrypted already
	transport := &http.Transport{
		Protocols: protocols, HTTP2: http2(), MaxResponseHeaderBytes: maxHeader, DisableCompression: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil },
	}
	return transport.NewClientConn(ctx, "http", "agent:80")
}

// poolOfLanes returns a pool whose requests go through the lanes of an agent. The lanes do not end with the pool.
func poolOfLanes(lanes member.Lanes) *pool {
	life, end := context.WithCancel(context.Background()) // it ends with the pool
	on := func(lane member.Lane) roundTripper { return &laneTransport{lanes: lanes, lane: lane, life: life} }
	return &pool{requests: on(member.LaneRequests), watches: on(member.LaneWatches), reads: on(member.LaneReads), endLanes: end}
}

// laneTransport sends requests through one lane. They are aborted when life ends.
type laneTransport struct {
	lanes member.Lanes
	lane  member.Lane
	life  context.Context
}

// RoundTrip implements http.RoundTripper.
func (t *laneTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(t.life, cancel)
	end := func() { stop(); cancel() }
	resp, err := t.lanes.RoundTrip(t.lane, req.WithContext(ctx))
	if err != nil {
		ended := t.life.Err() != nil
		end()
		if ended {
			return nil, errLineClosed
		}
		return nil, err
	}
	resp.Body = &endingBody{ReadCloser: resp.Body, end: end}
	return resp, nil
}

// CloseIdleConnections does nothing: an unused lane stays open.
func (t *laneTransport) CloseIdleConnections() {}

// endingBody is the body of an answer that ends the context of its request when it is closed.
type endingBody struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (b *endingBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
