package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/hanse-dev/hanse/lab/namespaces"
	"github.com/hanse-dev/hanse/lab/topology"
)

// State is the part of a lab that the supervisor stores in a file, so that its next start has the same clusters at the
// same addresses.
type State struct {
	// PID is the process id of the running supervisor, as the machine outside the namespaces sees it.
	PID      int               `json:"pid"`
	Topology topology.Topology `json:"topology"`
	Ports    map[string]int    `json:"ports"`

	// Network is the N in the lab's network 10.N.0.0/16. It is 0 if the lab has no real nodes.
	Network int `json:"network,omitempty"`
	// Slots maps the name of each cluster with a real node to the third number of the node's IP addresses.
	Slots map[string]int `json:"slots,omitempty"`
}

// ReadState returns the state in a lab's folder. If the folder has none, the state is empty.
func ReadState(dir string) (State, error) {
	var s State
	data, err := os.ReadFile(stateFile(dir))
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("reading the state of the lab: %w", err)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("reading the state of the lab in %s: %w", stateFile(dir), err)
	}
	return s, nil
}

func stateFile(dir string) string { return filepath.Join(dir, "state.json") }

// ledger is the State in memory and the path of its file.
type ledger struct {
	dir string

	mu    sync.Mutex
	state State
	held  map[int]net.Listener // reservations of ports that this process chose
}

func openLedger(dir string, own *namespaces.Lab) (*ledger, error) {
	state, err := ReadState(dir)
	if err != nil {
		return nil, err
	}
	if state.Ports == nil {
		state.Ports = map[string]int{}
	}
	if state.Slots == nil {
		state.Slots = map[string]int{}
	}
	l := &ledger{dir: dir, state: state, held: map[int]net.Listener{}}
	return l, l.change(func(s *State) {
		s.PID = os.Getpid()
		if own != nil {
			s.PID, s.Network = own.PID, own.Number
		}
	})
}

// slot returns the third number of the IP addresses of a cluster's real node. If the state has no number for the
// cluster, slot records the first free number.
func (l *ledger) slot(name string) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slot, ok := l.state.Slots[name]; ok {
		return slot, nil
	}
	taken := slices.Collect(maps.Values(l.state.Slots))
	for slot := 1; slot < 255; slot++ {
		if !slices.Contains(taken, slot) {
			return slot, l.changeLocked(func(s *State) { s.Slots[name] = slot })
		}
	}
	return 0, fmt.Errorf("cluster %q: the lab has 254 real nodes already", name)
}

// pid returns the supervisor's process id outside of the lab's namespaces.
func (l *ledger) pid() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.PID
}

// change calls f on the state and then writes the file atomically.
func (l *ledger) change(f func(*State)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changeLocked(f)
}

func (l *ledger) changeLocked(f func(*State)) error {
	f(&l.state)
	data, err := json.MarshalIndent(l.state, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the state of the lab: %w", err)
	}
	partial := stateFile(l.dir) + ".partial"
	if err := os.WriteFile(partial, data, 0o600); err != nil {
		return fmt.Errorf("writing the state of the lab: %w", err)
	}
	return os.Rename(partial, stateFile(l.dir))
}

// port returns the recorded port for a purpose. If there is none, it records a free port.
func (l *ledger) port(purpose string) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if port, ok := l.state.Ports[purpose]; ok {
		return port, nil
	}
	taken := map[int]bool{}
	for _, port := range l.state.Ports {
		taken[port] = true
	}
	port, hold, err := freePort(taken)
	if err != nil {
		return 0, fmt.Errorf("choosing a port for %s: %w", purpose, err)
	}
	l.held[port] = hold
	return port, l.changeLocked(func(s *State) { s.Ports[purpose] = port })
}

// forget removes the ports of a cluster or an etcd from the state, and for a cluster also its number in State.Slots.
// prefix is the name of the cluster, or StorePurpose followed by the name of the etcd.
func (l *ledger) forget(prefix string) error {
	return l.change(func(s *State) {
		delete(s.Slots, prefix)
		for purpose, port := range s.Ports {
			if strings.HasPrefix(purpose, prefix+"/") {
				delete(s.Ports, purpose)
				if hold := l.held[port]; hold != nil {
					_ = hold.Close()
					delete(l.held, port)
				}
			}
		}
	})
}

// freePort returns a free port below the kernel's range for outgoing connections, so that a killed component finds its
// port free when it starts again. No other lab on this machine gets this port until hold is closed.
func freePort(taken map[int]bool) (port int, hold net.Listener, err error) {
	low, high := 20000, 30000
	if first := firstEphemeral(); first > 12000 && first < high {
		low, high = first-10000, first
	}
	for range 1000 {
		port := low + rand.IntN(high-low)
		if taken[port] {
			continue
		}
		hold, err := reserve(port)
		if err != nil {
			continue
		}
		probe, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, hold, probe.Close()
		}
		_ = hold.Close()
	}
	return 0, nil, fmt.Errorf("no free port between %d and %d", low, high)
}

// reserve reserves the port by an abstract socket, and fails if another process has reserved it. The kernel removes the
// socket with its process. Like the port, the reservation is valid in one network namespace. Package fleet reserves its
// ports in the same way.
func reserve(port int) (net.Listener, error) {
	return net.Listen("unix", "@hanse-port-"+strconv.Itoa(port))
}

// firstEphemeral returns the first port of the kernel's range for outgoing connections. It is 0 if the range cannot be
// read.
func firstEphemeral() int {
	data, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	fields := strings.Fields(string(data))
	if err != nil || len(fields) == 0 {
		return 0
	}
	first, err := strconv.Atoi(fields[0])
	if err != nil {
		return 0
	}
	return first
}
