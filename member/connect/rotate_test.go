package connect

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/credential"
)

// settles waits until there are about as many goroutines as before, because those of a test server end a little later.
func settles(t *testing.T, before int) {
	t.Helper()
	eventually(t, "goroutines", func() string {
		if now := runtime.NumGoroutine(); now > before+5 {
			return fmt.Sprintf("%d now, %d before", now, before)
		}
		return ""
	})
}

// readyLink returns a provider with one ready link, which is the connection to a cluster. It also returns the record of
// the calls of Engage, and the Cluster of the link.
func readyLink(t *testing.T, kubeconfig []byte) (*Provider, *aware, *Cluster) {
	t.Helper()
	p := New(quick)
	a := start(t, p)
	p.Ensure("eu", by(kubeconfig), "")
	reaches(t, p, "eu", metav1.ConditionTrue, hubv1.ReasonConnected)
	return p, a, a.all()[0].cluster
}

// inUse returns the credentials and connections (session) that the link's clients use. It returns nil if the link has
// no clients.
func inUse(p *Provider) *session {
	e := p.link("eu").currentEngagement()
	if e == nil {
		return nil
	}
	return e.line.session.Load()
}

func takesUp(t *testing.T, p *Provider, want func(member.Connection) bool) {
	t.Helper()
	eventually(t, "the new credentials", func() string {
		if s := inUse(p); s == nil || !want(s.to) {
			return "are not in use"
		}
		return ""
	})
}

// write sends requests through a client of the cluster without a pause. The returned function stops it and returns the
// numbers of sent and failed requests.
func write(t *testing.T, c *Cluster) (end func() (sent, failed int32)) {
	t.Helper()
	var sent, failed atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := getVersion(t.Context(), c); err != nil {
				t.Log(err)
				failed.Add(1)
			}
			sent.Add(1)
		}
	}()
	return func() (int32, int32) {
		cancel()
		<-done
		return sent.Load(), failed.Load()
	}
}

func TestCredentialsRotateWithoutAFailedRequest(t *testing.T) {
	rounds := 100
	if os.Getenv("HANSE_LONG") != "" {
		rounds = 500
	}
	tests := map[string]struct {
		rounds int
		next   func(t *testing.T, f *fakeCluster, i int) (kubeconfig []byte, used func(member.Connection) bool)
	}{
		"tokens": {rounds, func(t *testing.T, f *fakeCluster, i int) ([]byte, func(member.Connection) bool) {
			t.Helper()
			token := fmt.Sprintf("token-%d", i)
			f.set(func(f *fakeCluster) {
				f.tokens[token] = true
				delete(f.tokens, fmt.Sprintf("token-%d", i-20)) // a token so old that no running request can carry it
			})
			return f.kubeconfig(t, withToken(token)), func(to member.Connection) bool { return to.Credentials.Token == token }
		}},
		"client certificates": {rounds / 5, func(t *testing.T, f *fakeCluster, i int) ([]byte, func(member.Connection) bool) {
			t.Helper()
			certPEM, keyPEM := f.ca.issue(t, fmt.Sprintf("hub-%d", i), time.Now().Add(time.Hour))
			return f.kubeconfig(t, withCertificate(certPEM, keyPEM)), func(to member.Connection) bool { return to.Credentials.Certificate == string(certPEM) }
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFakeCluster(t)
			p, a, c := readyLink(t, f.kubeconfig(t))
			end := write(t, c)
			before := 0
			for i := range tc.rounds {
				kubeconfig, used := tc.next(t, f, i)
				p.Ensure("eu", by(kubeconfig), "cluster-1")
				takesUp(t, p, used)
				if i == 5 { // count only after five rounds of warm-up
					before = runtime.NumGoroutine()
				}
			}
			sent, failed := end()
			if failed > 0 {
				t.Errorf("%d of %d requests failed", failed, sent)
			}
			if len(a.all()) != 1 {
				t.Errorf("the cluster was handed out %d times", len(a.all()))
			}
			settles(t, before)
			s, _ := p.State("eu")
			if s.Ready != metav1.ConditionTrue || s.Credentials != metav1.ConditionTrue {
				t.Errorf("in the end %+v", s)
			}
			if last := inUse(p).to; s.InUse.ID == "" || s.InUse != credential.Of(last.Credentials.Token, last.Credentials.Certificate) {
				t.Errorf("in use are %+v", s.InUse)
			}
		})
	}
}

func TestABadKubeconfigLeavesTheOneInUse(t *testing.T) {
	f := newFakeCluster(t)
	gone := newFakeCluster(t)
	gone.stop()
	tests := map[string]struct {
		kubeconfig []byte
		status     metav1.ConditionStatus
		reason     string
	}{
		"a wrong token":           {f.kubeconfig(t, withToken("wrong")), metav1.ConditionFalse, hubv1.ReasonUnauthorized},
		"something else":          {[]byte("hello"), metav1.ConditionFalse, hubv1.ReasonKubeconfigInvalid},
		"an address without life": {gone.kubeconfig(t), metav1.ConditionUnknown, hubv1.ReasonUnreachable},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, a, c := readyLink(t, f.kubeconfig(t))
			p.Ensure("eu", by(tc.kubeconfig), "cluster-1")
			eventually(t, "the verdict on the kubeconfig", func() string {
				s, _ := p.State("eu")
				if s.Credentials == tc.status && s.CredentialsReason == tc.reason && strings.Contains(s.CredentialsMessage, "stays in use") {
					return ""
				}
				return fmt.Sprintf("is %s %s: %s", s.Credentials, s.CredentialsReason, s.CredentialsMessage)
			})
			if s, _ := p.State("eu"); s.Ready != metav1.ConditionTrue {
				t.Errorf("the link is %s %s: %s", s.Ready, s.Reason, s.Message)
			}
			must(t, getVersion(t.Context(), c))
			p.Ensure("eu", by(f.kubeconfig(t)), "cluster-1")
			eventually(t, "the good kubeconfig again", func() string {
				s, _ := p.State("eu")
				if s.Credentials == metav1.ConditionTrue {
					return ""
				}
				return s.CredentialsMessage
			})
			if len(a.all()) != 1 {
				t.Error("the cluster was handed out anew")
			}
		})
	}
}

func TestAChangedAddressIsConnectedBeforeTheOldOneIsDropped(t *testing.T) {
	old, moved := newFakeCluster(t), newFakeCluster(t)
	moved.setRespond(hang)
	p, a, c := readyLink(t, old.kubeconfig(t))
	p.Ensure("eu", by(moved.kubeconfig(t)), "cluster-1")
	eventually(t, "an attempt at the new address", func() string {
		if s, _ := p.State("eu"); s.CredentialsReason == hubv1.ReasonUnreachable {
			return ""
		}
		return "none yet"
	})
	must(t, getVersion(t.Context(), c))
	if a.all()[0].ctx.Err() != nil {
		t.Error("the old link was dropped first")
	}

	moved.setRespond(nil)
	eventually(t, "the new cluster", func() string {
		if len(a.all()) == 2 {
			return ""
		}
		return "was not handed out"
	})
	if engaged := a.all(); engaged[0].ctx.Err() == nil || engaged[1].ctx.Err() != nil || engaged[1].cluster.Requests.Host != moved.url {
		t.Errorf("handed out: %+v", engaged)
	}
	old.stop()
	must(t, getVersion(t.Context(), a.all()[1].cluster))
	reaches(t, p, "eu", metav1.ConditionTrue, hubv1.ReasonConnected)
}

func TestAnotherClusterBehindANewAddressEndsEverything(t *testing.T) {
	old, other := newFakeCluster(t), newFakeCluster(t)
	other.set(func(f *fakeCluster) { f.id = "cluster-2" })
	p, a, c := readyLink(t, old.kubeconfig(t))
	p.Ensure("eu", by(other.kubeconfig(t)), "cluster-1")
	reaches(t, p, "eu", metav1.ConditionFalse, hubv1.ReasonIdentityChanged)
	if a.all()[0].ctx.Err() == nil || getVersion(t.Context(), c) == nil {
		t.Error("the cluster that joined is still used")
	}
	p.Ensure("eu", by(old.kubeconfig(t)), "cluster-1")
	reaches(t, p, "eu", metav1.ConditionTrue, hubv1.ReasonConnected)
}

func TestARestartedServerIsFoundAgain(t *testing.T) {
	ca := newAuthority(t, "ca")
	certPEM, keyPEM := ca.issue(t, "kube-apiserver", time.Now().Add(time.Hour), loopback)
	f := startFakeCluster(t, ca, certPEM, keyPEM, "127.0.0.1:0")
	p, a, c := readyLink(t, f.kubeconfig(t))
	address := strings.TrimPrefix(f.url, "https://")
	f.stop()
	s := reaches(t, p, "eu", metav1.ConditionFalse, hubv1.ReasonUnreachable)
	if !strings.Contains(s.Message, "last heard") {
		t.Errorf("message %q does not say when it was last heard", s.Message)
	}
	startFakeCluster(t, ca, certPEM, keyPEM, address)
	reaches(t, p, "eu", metav1.ConditionTrue, hubv1.ReasonConnected)
	must(t, getVersion(t.Context(), c))
	if len(a.all()) != 1 {
		t.Error("the cluster was handed out anew")
	}
}

func TestNothingIsLeftOfRemovedLinks(t *testing.T) {
	f := newFakeCluster(t)
	p := New(quick)
	a := start(t, p)
	round := func(i int) {
		p.Ensure("eu", by(f.kubeconfig(t)), "")
		switch i % 3 {
		case 0: // end the link at once, while it connects
		case 1:
			reaches(t, p, "eu", metav1.ConditionTrue, hubv1.ReasonConnected)
		case 2:
			f.setRespond(hang)
			p.Ensure("eu", by(f.kubeconfig(t, withToken("another"))), "")
			f.setRespond(nil)
		}
		p.Remove("eu")
	}
	for i := range 3 {
		round(i)
	}
	settles(t, runtime.NumGoroutine())
	before := runtime.NumGoroutine()
	for i := range 50 {
		round(i)
	}
	settles(t, before)
	for _, engaged := range a.all() {
		if engaged.ctx.Err() == nil {
			t.Error("a removed link's context has not ended")
		}
	}
	eventually(t, "links", func() string {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.links) > 0 || len(p.ending) > 0 {
			return fmt.Sprintf("%d and %d ending ones are left", len(p.links), len(p.ending))
		}
		return ""
	})
}

func TestARecreatedLinkFollowsTheOneBefore(t *testing.T) {
	f := newFakeCluster(t)
	p := New(quick)
	a := start(t, p)
	for range 30 {
		p.Ensure("eu", by(f.kubeconfig(t)), "")
		p.Remove("eu")
	}
	p.Ensure("eu", by(f.kubeconfig(t)), "")
	reaches(t, p, "eu", metav1.ConditionTrue, hubv1.ReasonConnected)
	engaged := a.all()
	for i, e := range engaged {
		if last := i == len(engaged)-1; (e.ctx.Err() == nil) != last {
			t.Errorf("of %d that were handed out, number %d is alive: %t", len(engaged), i, e.ctx.Err() == nil)
		}
	}
}

func TestAnUnusedSessionOfAnotherTokenSharesItsConnections(t *testing.T) {
	ca := newAuthority(t, "ca")
	to := func(server, token string) member.Connection {
		return member.Connection{Server: server, CA: string(ca.pem), Credentials: member.Credentials{Token: token}}
	}
	first, err := openSession(to("https://x", "a"), nil, nil)
	must(t, err)
	defer first.pool.close()
	second, err := openSession(to("https://x", "b"), first, nil)
	must(t, err)
	if first.pool != second.pool {
		t.Error("another token has other connections")
	}
	third, err := openSession(to("https://y", "b"), first, nil)
	must(t, err)
	defer third.pool.close()
	if third.pool == first.pool {
		t.Error("another address has the same connections")
	}
}
