package connect

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hanse-dev/hanse/member"
)

// tunnel is a Dialer that connects to one address, whatever address the caller asks for.
type tunnel struct {
	to    string
	dials atomic.Int32
}

// DialContext implements member.Dialer.
func (t *tunnel) DialContext(ctx context.Context, network, _ string) (net.Conn, error) {
	t.dials.Add(1)
	return (&net.Dialer{}).DialContext(ctx, network, t.to)
}

func TestAClusterWithoutAnAddressIsReachedThroughADialer(t *testing.T) {
	f := newFakeCluster(t)
	to, fault := parseKubeconfig(f.kubeconfig(t))
	if fault != nil {
		t.Fatal(fault)
	}
	through := &tunnel{to: strings.TrimPrefix(to.Server, "https://")}
	to.Server, to.ServerName, to.Dial = "https://eu.invalid", expectedName(to), through
	s, err := openSession(to, nil, nil)
	must(t, err)
	t.Cleanup(s.pool.close)
	id, err := probe(t.Context(), newLine(s), to.Server, quick.ProbeTimeout)
	if err != nil || id != "cluster-1" || through.dials.Load() == 0 {
		t.Errorf("got ID %q through %d connections: %v", id, through.dials.Load(), err)
	}
	other, same := to, to
	other.Dial = &tunnel{}
	if other == to || same != to {
		t.Error("connections are not told apart by their dialers")
	}
}

func TestCredentialsAreNotPrinted(t *testing.T) {
	to := member.Connection{Credentials: member.Credentials{Token: "secret", Key: "secret"}}
	for _, format := range []string{"%v", "%+v", "%s"} {
		if text := fmt.Sprintf(format, to); strings.Contains(text, "secret") {
			t.Errorf("%s prints %s", format, text)
		}
	}
}
