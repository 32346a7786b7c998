package fleet

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// handedOut keeps a socket open for each port that FreeAddress returned, because a port on which no process listens yet
// looks free.
var handedOut sync.Map

// FreeAddress returns a loopback address for a server that starts later. The port is below the range for outgoing
// connections (32768 and above on Linux), as in the lab. FreeAddress never returns the same address twice. Until this
// process ends, no other process on this machine gets the address.
func FreeAddress() (string, error) {
	const low, high = 12000, 20000 // the lab uses higher ports
	for range 1000 {
		port := low + rand.IntN(high-low)
		// The abstract socket reserves the port. The kernel removes it when the process ends. The lab reserves its
		// ports in the same way.
		hold, err := net.Listen("unix", "@hanse-port-"+strconv.Itoa(port))
		if err != nil {
			continue // another process has reserved the port
		}
		handedOut.Store(port, hold)
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if probe, err := net.Listen("tcp", address); err == nil {
			return address, probe.Close()
		}
	}
	return "", fmt.Errorf("no free port between %d and %d", low, high)
}
