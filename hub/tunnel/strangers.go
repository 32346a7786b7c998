package tunnel

import (
	"net"
	"net/http"
	"sync"
)

// strangers bounds the connections that have not become a lane yet.
type strangers struct {
	mu     sync.Mutex
	open   map[net.Conn]string // the IP address of each connection
	counts map[string]int      // by IP address
}

func newStrangers() *strangers {
	return &strangers{open: map[net.Conn]string{}, counts: map[string]int{}}
}

// follow is called when the state of a connection changes. It closes a new connection if there are too many.
func (s *strangers) follow(conn net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		if !s.add(conn) {
			_ = conn.Close()
		}
	case http.StateHijacked, http.StateClosed:
		s.remove(conn)
	}
}

func (s *strangers) add(conn net.Conn) bool {
	from, _, err := net.SplitHostPort(conn.RemoteAddr().String())
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= maxStrangers || s.counts[from] >= perAddress {
		return false
	}
	s.open[conn] = from
	s.counts[from]++
	return true
}

func (s *strangers) remove(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from, found := s.open[conn]
	if !found {
		return
	}
	delete(s.open, conn)
	if s.counts[from]--; s.counts[from] == 0 {
		delete(s.counts, from)
	}
}
