package fleet

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// handedOut are the ports that FreeAddress gave away: one that is not listened on yet looks free.
var handedOut sync.Map

// FreeAddress is one of loopback for a server that is started later, and perhaps again: below the range from which
// kernels take ports for outgoing connections (32768 and above on Linux), as the lab does, and no two alike.
func FreeAddress() (string, error) {
	const low, high = 12000, 20000 // the lab's are above
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
