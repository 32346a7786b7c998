package tunnel

import (
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/hanse-dev/hanse/member"
)

// lanes has the connections that the agent of one member has opened. It implements member.Lanes.
type lanes struct {
	logger logr.Logger

	mu      sync.Mutex
	keys    []string
	arrived func()
	closed  bool
	open    map[member.Lane]openLane
	changed chan struct{} // closed when a lane was opened, or when all lanes were closed
}

// arrival is a connection of an agent that has a known key.
type arrival struct {
	lane          member.Lane
	key, instance string
	conn          net.Conn
	from          string // the address of the agent, for the log
}

// openLane is a lane with the HTTP/2 client that uses it.
type openLane struct {
	arrival
	client *http.ClientConn
}

func newLanes(logger logr.Logger) *lanes {
	return &lanes{logger: logger, open: map[member.Lane]openLane{}, changed: make(chan struct{})}
}

// allow sets the keys, and ends the lanes of other keys.
func (l *lanes) allow(keys []string, arrived func()) {
	l.mu.Lock()
	l.keys, l.arrived = slices.Clone(keys), arrived
	var ended []openLane
	for lane, o := range l.open {
		if !slices.Contains(keys, o.key) {
			ended = append(ended, o)
			delete(l.open, lane)
		}
	}
	l.mu.Unlock()
	for _, o := range ended {
		l.logger.Info("Ended a lane, because its key was removed from the MemberCluster", "lane", o.lane, "key", o.key)
		_ = o.client.Close()
	}
	if len(ended) > 0 {
		go arrived() // the caller has locks that arrived takes, too; the link shall not wait for its next probe
	}
}

func (l *lanes) allows(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.closed && slices.Contains(l.keys, key)
}

// standby reports whether another process of the agent has lanes.
func (l *lanes) standby(instance string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.standbyLocked(instance)
}

func (l *lanes) standbyLocked(instance string) bool {
	for _, o := range l.open {
		if o.instance != instance && o.client.Err() == nil {
			return true
		}
	}
	return false
}

// add opens a lane. An earlier lane of the same process is replaced. add returns false if the key was removed, or if
// another process opened a lane, in the meantime.
func (l *lanes) add(a arrival, client *http.ClientConn) bool {
	l.mu.Lock()
	if l.closed || !slices.Contains(l.keys, a.key) || l.standbyLocked(a.instance) {
		l.mu.Unlock()
		return false
	}
	before, replaced := l.open[a.lane]
	l.open[a.lane] = openLane{arrival: a, client: client}
	close(l.changed)
	l.changed = make(chan struct{})
	arrived := l.arrived
	l.mu.Unlock()
	if replaced {
		_ = before.client.Close()
	}
	l.logger.Info("An agent opened a lane", "lane", a.lane, "key", a.key, "instance", a.instance, "from", a.from)
	client.SetStateHook(func(c *http.ClientConn) {
		if err := c.Err(); err != nil {
			l.ended(a, c)
		}
	})
	arrived()
	return true
}

// ended forgets a lane whose connection has ended.
func (l *lanes) ended(a arrival, client *http.ClientConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[a.lane].client == client {
		delete(l.open, a.lane)
		l.logger.Info("The lane of an agent ended", "lane", a.lane, "instance", a.instance)
	}
}

// close ends all lanes. No agent can open a lane afterwards.
func (l *lanes) close() {
	l.mu.Lock()
	open := l.open
	if !l.closed {
		close(l.changed)
	}
	l.closed, l.open, l.keys = true, map[member.Lane]openLane{}, nil
	l.mu.Unlock()
	for _, o := range open {
		_ = o.client.Close()
	}
}

// RoundTrip implements member.Lanes.
func (l *lanes) RoundTrip(lane member.Lane, req *http.Request) (*http.Response, error) {
	client, err := l.client(lane, req)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	return client.RoundTrip(req)
}

// client returns the client of a lane. It waits a while for an agent that is not connected.
func (l *lanes) client(lane member.Lane, req *http.Request) (*http.ClientConn, error) {
	timer := time.NewTimer(laneWait)
	defer timer.Stop()
	for {
		l.mu.Lock()
		o, found := l.open[lane]
		keys, closed, changed := l.keys, l.closed, l.changed
		l.mu.Unlock()
		switch {
		case found && o.client.Err() == nil:
			return o.client, nil
		case closed:
			return nil, member.ErrNotConnected
		case len(keys) == 0:
			return nil, member.ErrNoKey
		}
		select {
		case <-changed:
		case <-timer.C:
			return nil, member.ErrAgentAway
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
}
