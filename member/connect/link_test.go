package connect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/member"
)

// aware records the clusters that the provider passed to Engage.
type aware struct {
	mu      sync.Mutex
	engaged []handed
}

type handed struct {
	ctx     context.Context
	name    string
	cluster *Cluster
}

func (a *aware) engage(ctx context.Context, name string, c *Cluster) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.engaged = append(a.engaged, handed{ctx, name, c})
	return nil
}

func (a *aware) all() []handed {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]handed(nil), a.engaged...)
}

var quick = Options{
	Logger:        funcr.New(func(string, string) {}, funcr.Options{}),
	ProbeInterval: 50 * time.Millisecond, ProbeTimeout: 500 * time.Millisecond, FactsInterval: 50 * time.Millisecond,
}

// start runs a provider until the test ends.
func start(t *testing.T, p *Provider) *aware {
	t.Helper()
	a := &aware{}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- p.Start(ctx, a.engage) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			must(t, err)
		case <-time.After(5 * time.Second):
			t.Error("the provider has not ended 5 s after its context")
		}
	})
	return a
}

func reaches(t *testing.T, p *Provider, name string, ready metav1.ConditionStatus, reason string) member.LinkState {
	t.Helper()
	var s member.LinkState
	eventually(t, fmt.Sprintf("link %s shall be %s %s", name, ready, reason), func() string {
		s, _ = p.State(name)
		if s.Ready == ready && s.Reason == reason {
			return ""
		}
		return fmt.Sprintf("it is %s %s: %s", s.Ready, s.Reason, s.Message)
	})
	return s
}

func getVersion(ctx context.Context, c *Cluster) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Requests.Host+"/version", nil)
	if err != nil {
		return err
	}
	requests, err := rest.HTTPClientFor(c.Requests)
	if err != nil {
		return err
	}
	resp, err := requests.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

func TestALinkBecomesReadyAndIsHandedOutOnce(t *testing.T) {
	f := newFakeCluster(t)
	p := New(quick)
	changes := atomic.Int32{}
	p.OnChange(func(string) { changes.Add(1) })
	p.Ensure("eu", by(f.kubeconfig(t)), "") // before Start
	if s, ok := p.State("eu"); !ok || s.Ready != metav1.ConditionUnknown || s.Reason != hubv1.ReasonConnecting {
		t.Errorf("before the first try the link is %+v", s)
	}
	a := start(t, p)

	s := reaches(t, p, "eu", metav1.ConditionTrue, hubv1.ReasonConnected)
	if s.Credentials != metav1.ConditionTrue || s.Facts.ClusterID != "cluster-1" || s.LastObserved.IsZero() {
		t.Errorf("ready, but %+v", s)
	}
	eventually(t, "facts", func() string {
		s, _ := p.State("eu")
		return cmp.Diff("v1.36.3", s.Facts.Kubernetes)
	})
	p.Ensure("eu", by(f.kubeconfig(t)), "cluster-1")
	p.Ensure("eu", by(f.kubeconfig(t)), "cluster-1")
	before := changes.Load()
	observed := s.LastObserved
	eventually(t, "more probes", func() string {
		if s, _ := p.State("eu"); s.LastObserved.After(observed.Add(500 * time.Millisecond)) {
			return ""
		}
		return "none yet"
	})
	if changes.Load() != before {
		t.Errorf("%d changes were told while nothing changed", changes.Load()-before)
	}
	engaged := a.all()
	if len(engaged) != 1 || engaged[0].name != "eu" || engaged[0].cluster.ID != "cluster-1" {
		t.Fatalf("handed out: %+v", engaged)
	}
	must(t, getVersion(t.Context(), engaged[0].cluster))

	reported := changes.Load()
	p.Remove("eu")
	if changes.Load() == reported {
		t.Error("nobody is told that there is no link any more")
	}
	<-engaged[0].ctx.Done()
	if err := getVersion(t.Context(), engaged[0].cluster); !errors.Is(err, member.ErrNotConnected) {
		t.Errorf("a request after Remove: %v", err)
	}
	if _, ok := p.State("eu"); ok {
		t.Error("there is still a state")
	}
}

// Each fault occurs twice: at the first attempt, and after the link was ready. At the end of each case, the fault ends.
func TestAFaultIsNamed(t *testing.T) {
	tests := map[string]struct {
		respond     http.HandlerFunc
		revoke      bool
		reason      string
		words       string
		credentials metav1.ConditionStatus // the condition after the link was ready
	}{
		"no answer": {respond: hang, reason: hubv1.ReasonUnreachable, words: "does not answer", credentials: metav1.ConditionTrue},
		"requests are answered, watches are not": {
			respond: func(w http.ResponseWriter, req *http.Request) {
				if req.URL.Query().Get("watch") == "true" {
					w.WriteHeader(http.StatusOK)
					_ = http.NewResponseController(w).Flush()
					<-req.Context().Done()
					return
				}
				serveCluster(w, req, "cluster-1", nil)
			},
			reason: hubv1.ReasonWatchesStalled, words: "watch", credentials: metav1.ConditionTrue,
		},
		"a revoked token": {revoke: true, reason: hubv1.ReasonUnauthorized, words: "run hansectl rotate NAME --member-kubeconfig FILE", credentials: metav1.ConditionFalse},
		"missing rights": {
			respond: func(w http.ResponseWriter, _ *http.Request) {
				sendStatus(w, http.StatusForbidden, `namespaces is forbidden: User "hanse" cannot watch`)
			},
			reason: hubv1.ReasonForbidden, words: "hanse-member", credentials: metav1.ConditionTrue,
		},
		"too many requests": {
			respond: func(w http.ResponseWriter, _ *http.Request) { sendStatus(w, http.StatusTooManyRequests, "slow down") },
			reason:  hubv1.ReasonThrottled, words: "429", credentials: metav1.ConditionTrue,
		},
		"an error that quotes the token": {
			respond: func(w http.ResponseWriter, req *http.Request) {
				sendStatus(w, http.StatusInternalServerError, "etcd is away; you sent "+req.Header.Get("Authorization"))
			},
			reason: hubv1.ReasonUnreachable, words: "etcd is away", credentials: metav1.ConditionTrue,
		},
		"a web page": {
			respond: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>welcome</html>") },
			reason:  hubv1.ReasonUnreachable, words: "does not answer like a Kubernetes API server", credentials: metav1.ConditionTrue,
		},
		"another namespace than asked for": {
			respond: func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, `{"type":"ADDED","object":{"metadata":{"name":"default","uid":"x"}}}`)
			},
			reason: hubv1.ReasonUnreachable, words: "does not answer like a Kubernetes API server", credentials: metav1.ConditionTrue,
		},
		"an answer without end": {
			respond: func(w http.ResponseWriter, _ *http.Request) {
				for chunk := bytes.Repeat([]byte(" "), 1<<16); ; {
					if _, err := w.Write(chunk); err != nil {
						return
					}
				}
			},
			reason: hubv1.ReasonUnreachable, words: "https://", credentials: metav1.ConditionTrue,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFakeCluster(t)
			fault := func(f *fakeCluster) { f.respond, f.tokens[fakeToken] = tc.respond, !tc.revoke }
			cure := func(f *fakeCluster) { f.respond, f.tokens[fakeToken] = nil, true }
			f.set(fault)
			p := New(quick)
			a := start(t, p)
			p.Ensure("eu", by(f.kubeconfig(t)), "")
			check := func(s member.LinkState) {
				t.Helper()
				if !strings.Contains(s.Message, tc.words) {
					t.Errorf("message %q does not hold %q", s.Message, tc.words)
				}
				if strings.Contains(s.Message+s.CredentialsMessage, fakeToken) {
					t.Errorf("the token is in a message: %s", s.Message)
				}
			}
			check(reaches(t, p, "eu", metav1.ConditionFalse, tc.reason))
			f.set(cure)
			reaches(t, p, "eu", metav1.ConditionTrue, hubv1.ReasonConnected)
			f.set(fault)
			s := reaches(t, p, "eu", metav1.ConditionFalse, tc.reason)
			check(s)
			if s.Credentials != tc.credentials {
				t.Errorf("credentials are %s %s", s.Credentials, s.CredentialsReason)
			}
			f.set(cure)
			reaches(t, p, "eu", metav1.ConditionTrue, hubv1.ReasonConnected)
			if len(a.all()) != 1 || a.all()[0].ctx.Err() != nil {
				t.Error("the cluster was handed out anew although only the link was away")
			}
		})
	}
}

func TestAConnectionThatCannotBeMadeIsNamed(t *testing.T) {
	f := newFakeCluster(t)
	other := newAuthority(t, "some-other-ca")
	gone := newFakeCluster(t)
	gone.stop()
	expiredCert, expiredKey := f.ca.issue(t, "kube-apiserver", time.Now().Add(-time.Hour), loopback)
	expired := startFakeCluster(t, f.ca, expiredCert, expiredKey, "127.0.0.1:0")
	oldCert, oldKey := f.ca.issue(t, "hub", time.Now().Add(-time.Hour))
	foreignCert, foreignKey := other.issue(t, "hub", time.Now().Add(time.Hour))
	tests := map[string]struct {
		kubeconfig []byte
		reason     string
		words      []string
	}{
		"nobody listens": {gone.kubeconfig(t), hubv1.ReasonUnreachable, []string{gone.url, "refuses connections"}},
		"another CA": {
			f.kubeconfig(t, func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.CertificateAuthorityData = other.pem }),
			hubv1.ReasonCertificateUnknown, []string{"unknown authority", "some-other-ca"},
		},
		"another name": {
			f.kubeconfig(t, func(c *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) { c.TLSServerName = "api.example.com" }),
			hubv1.ReasonCertificateUnknown, []string{"another name", "api.example.com"},
		},
		"an expired server certificate":  {expired.kubeconfig(t), hubv1.ReasonCertificateUnknown, []string{"expired"}},
		"an expired client certificate":  {f.kubeconfig(t, withCertificate(oldCert, oldKey)), hubv1.ReasonUnauthorized, []string{"certificate"}},
		"a client certificate of nobody": {f.kubeconfig(t, withCertificate(foreignCert, foreignKey)), hubv1.ReasonUnauthorized, []string{"certificate"}},
		"a refused kubeconfig": {
			f.kubeconfig(t, func(_ *clientcmdapi.Cluster, u *clientcmdapi.AuthInfo) { u.TokenFile = "/x" }), hubv1.ReasonKubeconfigRefused, []string{"tokenFile"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := New(quick)
			start(t, p)
			p.Ensure("eu", by(tc.kubeconfig), "")
			s := reaches(t, p, "eu", metav1.ConditionFalse, tc.reason)
			for _, words := range tc.words {
				if !strings.Contains(s.Message, words) {
					t.Errorf("message %q does not hold %q", s.Message, words)
				}
			}
			p.Ensure("eu", by(f.kubeconfig(t)), "")
			reaches(t, p, "eu", metav1.ConditionTrue, hubv1.ReasonConnected)
		})
	}
}

func TestOneProbeInVainIsNotAnOutage(t *testing.T) {
	f := newFakeCluster(t)
	p := New(quick)
	outages := atomic.Int32{}
	p.OnChange(func(name string) {
		if s, _ := p.State(name); s.Ready == metav1.ConditionFalse {
			outages.Add(1)
		}
	})
	start(t, p)
	p.Ensure("eu", by(f.kubeconfig(t)), "")
	reaches(t, p, "eu", metav1.ConditionTrue, hubv1.ReasonConnected)
	failed := make(chan struct{})
	once := sync.Once{}
	f.setRespond(func(w http.ResponseWriter, req *http.Request) {
		first := false
		if req.URL.Query().Get("watch") == "true" {
			once.Do(func() { first = true })
		}
		if first {
			sendStatus(w, http.StatusInternalServerError, "a hiccup")
			close(failed)
			return
		}
		serveCluster(w, req, "cluster-1", nil)
	})
	<-failed
	at := time.Now()
	eventually(t, "the next good probe", func() string {
		if s, _ := p.State("eu"); s.LastObserved.After(at.Add(300 * time.Millisecond)) {
			return ""
		}
		return "none yet"
	})
	if outages.Load() > 0 {
		t.Error("the link was said to be away")
	}
}

func TestLastObservedIsTheTimeOfTheLastWatchEvent(t *testing.T) {
	for name, c := range map[string]struct {
		fault  func(http.ResponseWriter, *http.Request)
		reason string
	}{
		"a watch that is held back counts no more, though requests are answered": {reason: hubv1.ReasonWatchesStalled, fault: func(w http.ResponseWriter, req *http.Request) {
			if req.URL.Query().Get("watch") == "true" {
				<-req.Context().Done()
				return
			}
			serveCluster(w, req, "cluster-1", nil)
		}},
		"a fault is an answer and delivers nothing": {reason: hubv1.ReasonUnreachable, fault: func(w http.ResponseWriter, _ *http.Request) {
			sendStatus(w, http.StatusInternalServerError, "broken")
		}},
		"another cluster behind the address was not heard": {reason: hubv1.ReasonIdentityChanged, fault: func(w http.ResponseWriter, req *http.Request) {
			serveCluster(w, req, "cluster-2", nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeCluster(t)
			p := New(quick)
			start(t, p)
			p.Ensure("eu", by(f.kubeconfig(t)), "")
			reaches(t, p, "eu", metav1.ConditionTrue, hubv1.ReasonConnected)
			f.setRespond(c.fault)
			broken := time.Now()
			s := reaches(t, p, "eu", metav1.ConditionFalse, c.reason)
			// The limit allows for one probe that was already running.
			if s.LastObserved.IsZero() || s.LastObserved.After(broken.Add(300*time.Millisecond)) {
				t.Errorf("it broke at %s and was heard at %s", broken, s.LastObserved)
			}
			eventually(t, "another probe in vain", func() string {
				if time.Since(broken) > 2*quick.ProbeInterval+2*quick.ProbeTimeout {
					return ""
				}
				return "not yet"
			})
			if now, _ := p.State("eu"); !now.LastObserved.Equal(s.LastObserved) {
				t.Errorf("probes in vain moved the time from %s to %s", s.LastObserved, now.LastObserved)
			}
		})
	}
}

func TestAnEventOfAnyWatchSetsLastObserved(t *testing.T) {
	f := newFakeCluster(t)
	p := New(quick)
	a := start(t, p)
	p.Ensure("eu", by(f.kubeconfig(t)), "")
	reaches(t, p, "eu", metav1.ConditionTrue, hubv1.ReasonConnected)
	deliver := make(chan struct{})
	f.setRespond(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != "/api/v1/configmaps" {
			<-req.Context().Done() // from now on, the watches of probes deliver nothing
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = http.NewResponseController(w).Flush()
		<-deliver
		_, _ = io.WriteString(w, `{"type":"BOOKMARK","object":{}}`+"\n")
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
	})
	c := a.all()[0].cluster
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.Watches.Host+"/api/v1/configmaps?watch=true", nil)
	must(t, err)
	resp, err := c.Watches.Transport.RoundTrip(req)
	must(t, err)
	defer func() { _ = resp.Body.Close() }()
	before := time.Now()
	close(deliver)
	_, err = resp.Body.Read(make([]byte, 64))
	must(t, err)
	s := reaches(t, p, "eu", metav1.ConditionFalse, hubv1.ReasonUnreachable)
	if s.LastObserved.Before(before) || s.LastObserved.After(before.Add(time.Second)) {
		t.Errorf("an event came at %s, and the cluster was heard at %s", before, s.LastObserved)
	}
}

func TestAnotherClusterEndsEverything(t *testing.T) {
	f := newFakeCluster(t)
	p := New(quick)
	a := start(t, p)
	p.Ensure("eu", by(f.kubeconfig(t)), "cluster-1")
	reaches(t, p, "eu", metav1.ConditionTrue, hubv1.ReasonConnected)

	f.set(func(f *fakeCluster) { f.id = "cluster-2" })
	s := reaches(t, p, "eu", metav1.ConditionFalse, hubv1.ReasonIdentityChanged)
	if !strings.Contains(s.Message, "cluster-2") || !strings.Contains(s.Message, "cluster-1") {
		t.Errorf("message %q does not name both clusters", s.Message)
	}
	first := a.all()[0]
	if first.ctx.Err() == nil {
		t.Error("the consumers were not told")
	}
	if err := getVersion(t.Context(), first.cluster); !errors.Is(err, member.ErrNotConnected) {
		t.Errorf("a client that is out still reaches the other cluster: %v", err)
	}
	if p.link("eu").currentEngagement() != nil {
		t.Error("the cluster is still handed out")
	}
	f.set(func(f *fakeCluster) { f.id = "cluster-1" })
	reaches(t, p, "eu", metav1.ConditionTrue, hubv1.ReasonConnected)
	if engaged := a.all(); len(engaged) != 2 || engaged[1].ctx.Err() != nil {
		t.Errorf("after the return: %+v", engaged)
	}
}

func TestTheExpectedClusterIsTheOnlyOneThatIsUsed(t *testing.T) {
	f := newFakeCluster(t)
	p := New(quick)
	a := start(t, p)
	p.Ensure("eu", by(f.kubeconfig(t)), "the-one-that-joined")
	reaches(t, p, "eu", metav1.ConditionFalse, hubv1.ReasonIdentityChanged)
	if len(a.all()) > 0 {
		t.Error("it was handed out")
	}
}

func TestAClusterCannotClaimToBeTheHub(t *testing.T) {
	f := newFakeCluster(t)
	f.set(func(f *fakeCluster) { f.id = "hub-1" })
	var asked atomic.Int32
	f.setRespond(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != "/api/v1/namespaces" { // only the probe's watch, which returns the identity, is changed
			asked.Add(1)
		}
		serveCluster(w, req, "hub-1", nil)
	})
	options := quick
	options.HubID = "hub-1"
	p := New(options)
	a := start(t, p)
	p.Ensure("hostile", by(f.kubeconfig(t)), "")
	s := reaches(t, p, "hostile", metav1.ConditionFalse, hubv1.ReasonClusterIDClaimed)
	if !strings.Contains(s.Message, "spec.hub: true") || s.Facts.ClusterID != "" {
		t.Errorf("the state is %+v", s)
	}
	if len(a.all()) > 0 || asked.Load() > 0 {
		t.Errorf("it was handed out %d times, and asked %d questions", len(a.all()), asked.Load())
	}
	p.Ensure("hub", by(f.kubeconfig(t)), "hub-1") // the administrator declares that this member is the hub
	reaches(t, p, "hub", metav1.ConditionTrue, hubv1.ReasonConnected)

	f.set(func(f *fakeCluster) { f.respond, f.id = nil, "cluster-1" })
	p.Ensure("hostile", by(f.kubeconfig(t, withToken(fakeToken))), "")
	reaches(t, p, "hostile", metav1.ConditionTrue, hubv1.ReasonConnected)
	s = reaches(t, p, "hub", metav1.ConditionFalse, hubv1.ReasonIdentityChanged)
	if !strings.Contains(s.Message, "is not the hub, although spec.hub is true") {
		t.Errorf("message %q", s.Message)
	}
	f.set(func(f *fakeCluster) { f.id = "hub-1" })
	reaches(t, p, "hostile", metav1.ConditionFalse, hubv1.ReasonIdentityChanged)
}

func TestAClusterThatHangsCostsNobodyElse(t *testing.T) {
	slow := newFakeCluster(t)
	slow.setRespond(hang)
	f := newFakeCluster(t)
	options := quick
	options.ProbeTimeout = 10 * time.Second
	p := New(options)
	start(t, p)
	for i := range 20 {
		p.Ensure(fmt.Sprintf("slow-%d", i), by(slow.kubeconfig(t)), "")
	}
	at := time.Now()
	p.Ensure("eu", by(f.kubeconfig(t)), "")
	reaches(t, p, "eu", metav1.ConditionTrue, hubv1.ReasonConnected)
	if took := time.Since(at); took > 3*time.Second {
		t.Errorf("it took %s", took)
	}
	// A running attempt does not delay a new kubeconfig.
	at = time.Now()
	p.Ensure("slow-3", by(f.kubeconfig(t)), "")
	reaches(t, p, "slow-3", metav1.ConditionTrue, hubv1.ReasonConnected)
	if took := time.Since(at); took > 3*time.Second {
		t.Errorf("with another kubeconfig it took %s", took)
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	var asked atomic.Int32
	elsewhere := newFakeCluster(t)
	elsewhere.setRespond(func(w http.ResponseWriter, _ *http.Request) { asked.Add(1); w.WriteHeader(http.StatusNoContent) })
	f := newFakeCluster(t)
	f.setRespond(func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, elsewhere.url+req.URL.Path, http.StatusTemporaryRedirect)
	})
	p := New(quick)
	start(t, p)
	p.Ensure("eu", by(f.kubeconfig(t)), "")
	reaches(t, p, "eu", metav1.ConditionFalse, hubv1.ReasonUnreachable)
	if asked.Load() > 0 || elsewhere.denied > 0 {
		t.Error("the redirect was followed")
	}
}

func TestAProviderIsStartedOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := New(quick)
	must(t, p.Start(ctx, (&aware{}).engage))
	if err := p.Start(ctx, (&aware{}).engage); err == nil {
		t.Error("it was started twice")
	}
}
