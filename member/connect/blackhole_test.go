package connect

import (
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// blackHole is a proxy that forwards connections to a server. After close, the connections that were open deliver
// nothing, although they stay open; new connections are forwarded.
type blackHole struct {
	address string
	age     atomic.Int64 // connections that were opened in an earlier age deliver nothing
}

func newBlackHole(t *testing.T, server string) *blackHole {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	h := &blackHole{address: listener.Addr().String()}
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", server)
			if err != nil {
				_ = in.Close()
				continue
			}
			age := h.age.Load()
			go h.forward(in, out, age)
			go h.forward(out, in, age)
		}
	}()
	return h
}

func (h *blackHole) forward(from, to net.Conn, age int64) {
	defer func() { _ = from.Close(); _ = to.Close() }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if h.age.Load() != age {
			_, _ = io.Copy(io.Discard, from) // reads and drops the data until the client closes the connection
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// TestAConnectionThatDiesSilentlyIsReplaced shows that a link becomes ready again on a new connection if the old one is
// dead without any error. The same clients continue to work.
func TestAConnectionThatDiesSilentlyIsReplaced(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes the 15 s after which an unanswered ping ends a connection")
	}
	t.Parallel()
	f := newFakeCluster(t)
	hole := newBlackHole(t, strings.TrimPrefix(f.url, "https://"))
	p, a, c := readyLink(t, f.kubeconfig(t, func(cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
		cluster.Server = "https://" + hole.address
	}))
	must(t, getVersion(t.Context(), c))
	hole.age.Add(1)
	reaches(t, p, "eu", metav1.ConditionFalse, hubv1.ReasonUnreachable)
	reaches(t, p, "eu", metav1.ConditionTrue, hubv1.ReasonConnected)
	must(t, getVersion(t.Context(), c))
	if len(a.all()) != 1 {
		t.Error("the cluster was handed out anew")
	}
}
