package fleet

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// handedOut are the ports returned by FreeAddress: a port without a listener looks free.
var handedOut sync.Map

// FreeAddress returns a loopback address for a server that is started later, and perhaps restarted. The port is below
// the range for outgoing connections (32768 and above on Linux), as in the lab. It never returns the same address
// twice.
func FreeAddress() (string, error) {
	const low, high = 12000, 20000 // the lab's ports are above
	for range 1000 {
		port := low + rand.IntN(high-low)
		if _, taken := handedOut.LoadOrStore(port, true); taken {
			continue
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if probe, err := net.Listen("tcp", address); err == nil {
			return address, probe.Close()
		}
	}
	return "", fmt.Errorf("no free port between %d and %d", low, high)
}
