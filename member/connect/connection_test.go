package connect

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// fakeTunnels passes the requests of lanes on to a fake cluster, as an agent does.
type fakeTunnels struct {
	to    *fakeCluster
	agent http.RoundTripper

	mu      sync.Mutex
	keys    []string
	arrived func()
	away    bool
	lanes   map[member.Lane]int // number of requests
	closed  bool
}

// Open implements Tunnels.
func (f *fakeTunnels) Open(_ string, keys []string, arrived func()) member.Lanes {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.keys, f.arrived = keys, arrived
	return f
}

// Close implements Tunnels.
func (f *fakeTunnels) Close(string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}

// RoundTrip implements member.Lanes.
func (f *fakeTunnels) RoundTrip(lane member.Lane, req *http.Request) (*http.Response, error) {
	f.mu.Lock()
	f.lanes[lane]++
	keys, away := f.keys, f.away
	f.mu.Unlock()
	switch {
	case len(keys) == 0:
		return nil, member.ErrNoKey
	case away:
		return nil, member.ErrAgentAway
	}
	if req.Header.Get("Authorization") != "" {
		return nil, errors.New("the hub sent credentials")
	}
	out := req.Clone(req.Context())
	out.URL.Scheme, out.URL.Host = "https", strings.TrimPrefix(f.to.url, "https://")
	out.Header.Set("Authorization", "Bearer "+fakeToken)
	return f.agent.RoundTrip(out)
}

func (f *fakeTunnels) become(away bool) {
	f.mu.Lock()
	f.away = away
	arrived := f.arrived
	f.mu.Unlock()
	if !away {
		arrived()
	}
}

// TestAMemberIsReachedThroughTheLanesOfItsAgent starts without a key and an agent, and ends with a removed link.
func TestAMemberIsReachedThroughTheLanesOfItsAgent(t *testing.T) {
	f := newFakeCluster(t)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(f.ca.pem)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	t.Cleanup(transport.CloseIdleConnections)
	tunnels := &fakeTunnels{to: f, agent: transport, away: true, lanes: map[member.Lane]int{}}
	options := quick
	options.Tunnels = tunnels
	p := New(options)
	a := start(t, p)
	p.Ensure("eu", member.Route{Tunnel: true}, "")
	reaches(t, p, "eu", metav1.ConditionFalse, hubv1.ReasonPendingApproval)
	p.Ensure("eu", member.Route{Tunnel: true, Keys: []string{"SHA256:x"}}, "")
	tunnels.become(true)
	reaches(t, p, "eu", metav1.ConditionFalse, hubv1.ReasonAgentAway)
	tunnels.become(false)
	s := reaches(t, p, "eu", metav1.ConditionTrue, hubv1.ReasonConnected)
	if s.Facts.ClusterID != "cluster-1" || s.InUse.ID != "" || s.Credentials != metav1.ConditionTrue || s.CredentialsMessage != keysTaken {
		t.Errorf("the state is %+v", s)
	}
	eventually(t, "the lanes", func() string {
		tunnels.mu.Lock()
		defer tunnels.mu.Unlock()
		if tunnels.lanes[member.LaneWatches] > 0 && tunnels.lanes[member.LaneReads] > 0 {
			return ""
		}
		return fmt.Sprintf("requests on lanes: %v", tunnels.lanes)
	})
	tunnels.become(true)
	reaches(t, p, "eu", metav1.ConditionFalse, hubv1.ReasonAgentAway)
	tunnels.become(false)
	reaches(t, p, "eu", metav1.ConditionTrue, hubv1.ReasonConnected)
	if len(a.all()) != 1 {
		t.Errorf("an agent that came back made a new cluster: %d", len(a.all()))
	}

	client := &http.Client{Transport: a.all()[0].cluster.Watches.Transport}
	watch, err := client.Get(a.all()[0].cluster.Watches.Host + watchKubeSystem)
	must(t, err)
	p.Remove("eu")
	if _, err := io.ReadAll(watch.Body); err == nil {
		t.Error("a watch outlives its link")
	}
	must(t, watch.Body.Close())
	resp, err := client.Get("http://eu/version")
	if err == nil {
		_ = resp.Body.Close()
	}
	if !errors.Is(err, member.ErrNotConnected) {
		t.Errorf("a request after the end of the link gives %v", err)
	}
	if !tunnels.closed {
		t.Error("the lanes are still open")
	}
}

func TestAHubThatListensForNoAgentsSaysSo(t *testing.T) {
	p := New(quick)
	start(t, p)
	p.Ensure("eu", member.Route{Tunnel: true, Keys: []string{"SHA256:x"}}, "")
	reaches(t, p, "eu", metav1.ConditionFalse, hubv1.ReasonTunnelOff)
}

func TestCredentialsAreNotPrinted(t *testing.T) {
	to := member.Connection{Credentials: member.Credentials{Token: "secret", Key: "secret"}}
	for _, format := range []string{"%v", "%+v", "%s"} {
		if text := fmt.Sprintf(format, to); strings.Contains(text, "secret") {
			t.Errorf("%s prints %s", format, text)
		}
	}
}
