package shard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/hub/store/clusters"
	"github.com/hanse-dev/hanse/test/apiserver"
)

var hubConfig *rest.Config

func TestMain(m *testing.M) { os.Exit(apiserver.Run(m, apiserver.Hub(), &hubConfig)) }

// world is a hub with members and replicas in one process.
type world struct {
	t         *testing.T
	client    client.Client
	cache     cache.Cache
	namespace string
	members   []string

	mu       sync.Mutex
	replicas map[string]*replica
}

type replica struct {
	*Coordinator
	name string
	down atomic.Bool // the replica does not reach the API server
	// loses is a prefix of Lease names. The replica gets no answer to its writes of such Leases, and after the first one
	// its watch delivers no events.
	loses atomic.Pointer[string]
	deaf  atomic.Bool
	// past is an earlier state of a Lease. The API server answers as if it was restored when the Lease had this state.
	past  atomic.Pointer[coordinationv1.Lease]
	stop  func()
	ended chan struct{}
	err   error // the error of Run after its end
}

func newWorld(t *testing.T, members int) *world {
	t.Helper()
	apiserver.Needed(t)
	s := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(s), hubv1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(hubConfig, client.Options{Scheme: s})
	if err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shard-"}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, client: c, namespace: ns.Name, replicas: map[string]*replica{}}
	if w.cache, err = cache.New(hubConfig, cache.Options{Scheme: s}); err != nil {
		t.Fatal(err)
	}
	go func() { _ = w.cache.Start(t.Context()) }()
	for i := range members {
		w.join(fmt.Sprintf("%s-%02d", ns.Name, i))
	}
	return w
}

func (w *world) join(name string) {
	w.t.Helper()
	m := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Spec.AllowedNamespaces.From = hubv1.NamespacesFromAll
	m.Spec.Connection.Type = hubv1.ConnectionDirect
	m.Spec.Connection.Direct = &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: "none", Key: "kubeconfig"}}
	if err := w.client.Create(w.t.Context(), m); err != nil {
		w.t.Fatal(err)
	}
	w.members = append(w.members, name)
	w.t.Cleanup(func() { _ = w.client.Delete(context.WithoutCancel(w.t.Context()), m) })
}

// start runs one more replica until the replica's stop is called or the test ends.
func (w *world) start(name string) *replica {
	w.t.Helper()
	r := &replica{name: name}
	config := rest.CopyConfig(hubConfig)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			if r.down.Load() {
				return nil, errors.New("cut off by the test")
			}
			return r.badly(next, req)
		})
	})
	c, err := New(Options{
		Config: config, Namespace: w.namespace, Identity: name, Members: clusters.New(w.cache),
		HangUp: func(string) {},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	feed := changes.NewFeed()
	feed.Clusters.On(changes.Added|changes.Deleted, c.ClusterChanged)
	if err := feed.Watch(w.t.Context(), w.cache); err != nil {
		w.t.Fatal(err)
	}
	c.OnChange(func(member string) { w.alone(r, member) })
	r.Coordinator = c
	ctx, cancel := context.WithCancel(w.t.Context())
	r.ended = make(chan struct{})
	go func() {
		defer close(r.ended)
		r.err = c.Run(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		})
	}()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if <-r.ended; r.err != nil && !r.down.Load() {
			w.t.Errorf("%s: %v", name, r.err)
		}
	})
	w.t.Cleanup(r.stop)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.replicas[name] = r
	return r
}

// badly sends a request, and drops the requests or answers that the test selects.
func (r *replica) badly(next http.RoundTripper, req *http.Request) (*http.Response, error) {
	if past := r.past.Load(); past != nil && strings.HasSuffix(req.URL.Path, "/leases/"+past.Name) {
		switch req.Method {
		case http.MethodPut:
			return answers(http.StatusConflict, &apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, past.Name, errors.New("restored")).ErrStatus)
		case http.MethodGet:
			return answers(http.StatusOK, past)
		}
	}
	prefix := r.loses.Load()
	loses := prefix != nil && req.Method == http.MethodPut && strings.Contains(req.URL.Path, "/leases/"+*prefix)
	if loses {
		r.deaf.Store(true) // set before the request, so that the watch does not show this write
	}
	resp, err := next.RoundTrip(req)
	switch {
	case err != nil:
	case loses:
		_ = resp.Body.Close()
		return nil, errors.New("the answer is lost by the test")
	case req.URL.Query().Get("watch") != "":
		resp.Body = &muffled{ReadCloser: resp.Body, ctx: req.Context(), by: r}
	}
	return resp, err
}

func answers(code int, object any) (*http.Response, error) {
	body, err := json.Marshal(object)
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}, err
}

// muffled is the response to a watch of the replica by. It delivers no events while by.deaf is true.
type muffled struct {
	io.ReadCloser
	ctx context.Context
	by  *replica
}

// Read implements io.Reader.
func (m *muffled) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	if m.by.deaf.Load() {
		<-m.ctx.Done()
		return 0, m.ctx.Err()
	}
	return n, err
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// alone checks that no other replica works on a member that a replica has just taken.
func (w *world) alone(r *replica, member string) {
	if !r.Holds(member) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, other := range w.replicas {
		if other != r && other.Holds(member) {
			w.t.Errorf("%s took %s, on which %s still works", r.name, member, other.name)
		}
	}
}

// shared waits until each of these replicas holds exactly the members that belong to it. It returns how long that took.
func (w *world) shared(within time.Duration, names ...string) time.Duration {
	w.t.Helper()
	begin := time.Now()
	var last error
	err := wait.PollUntilContextTimeout(w.t.Context(), 20*time.Millisecond, within, true, func(context.Context) (bool, error) {
		last = nil
		for _, m := range w.members {
			for _, r := range w.replicas {
				if owner := Owner(m, names); r.Holds(m) != (r.name == owner) {
					last = fmt.Errorf("%s: %s holds it: %v; it belongs to %s", m, r.name, r.Holds(m), owner)
				}
			}
		}
		return last == nil, nil
	})
	if err != nil {
		w.t.Fatalf("after %s: %v", within, last)
	}
	return time.Since(begin)
}

// fences returns the resourceVersion of each fence by name. A fence is the Lease of a member, which names the replica
// that works on the member.
func (w *world) fences() map[string]string {
	w.t.Helper()
	var list coordinationv1.LeaseList
	if err := w.client.List(w.t.Context(), &list, client.InNamespace(w.namespace), client.MatchingLabels{leaseLabel: fenceLease}); err != nil {
		w.t.Fatal(err)
	}
	out := map[string]string{}
	for _, l := range list.Items {
		out[l.Name] = l.ResourceVersion
	}
	return out
}

func TestReplicasShareTheMembersAndTakeOver(t *testing.T) {
	w := newWorld(t, 30)
	w.start("a")
	w.shared(5*time.Second, "a")
	b := w.start("b")
	w.shared(5*time.Second, "a", "b")
	before := w.fences()
	w.start("c")
	w.shared(5*time.Second, "a", "b", "c")
	two, three := []string{"a", "b"}, []string{"a", "b", "c"}
	for _, m := range w.members {
		if moved := Owner(m, two) != Owner(m, three); !moved && w.fences()[fencePrefix+m] != before[fencePrefix+m] {
			t.Errorf("the fence of %s was written although it did not move", m)
		}
	}

	go b.stop()
	if took := w.shared(5*time.Second, "a", "c"); took > 2*time.Second {
		t.Errorf("taking over from a replica that said goodbye took %s", took)
	}
	quiet := w.fences()
	w.join(w.namespace + "-late")
	w.shared(5*time.Second, "a", "c")
	for name, version := range w.fences() {
		if old, ok := quiet[name]; ok && old != version {
			t.Errorf("%s was written although its member did not move", name)
		}
	}
}

func TestAReplicaThatIsCutOffIsReplacedAndEnds(t *testing.T) {
	w := newWorld(t, 10)
	w.start("a")
	b := w.start("b")
	w.shared(5*time.Second, "a", "b")
	b.down.Store(true)
	took := w.shared(25*time.Second, "a")
	t.Logf("taking over from a replica that was cut off took %s", took.Round(100*time.Millisecond))
	if took > 17*time.Second {
		t.Errorf("taking over took %s", took)
	}
	select {
	case <-b.ended:
	case <-time.After(15 * time.Second):
		t.Fatal("it goes on, with what it knew before it was cut off")
	}
	if !errors.Is(b.err, ErrLapsed) || b.current().valid() {
		t.Errorf("it ended with %v, want %v", b.err, ErrLapsed)
	}
	w.start("b")
	w.shared(5*time.Second, "a", "b")
}

// Replica a releases members, but gets no answer, and its watch then delivers no events. The fences (Leases of the
// members) in its cache still name replica a. It must not take the members back.
func TestAReleaseWithoutAnAnswerIsNotTakenBack(t *testing.T) {
	w := newWorld(t, 10)
	a := w.start("a")
	w.shared(5*time.Second, "a")
	a.loses.Store(ptr.To(fencePrefix))
	w.start("b")
	w.shared(5*time.Second, "a", "b")
	begin := time.Now()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		for _, m := range w.members {
			if Owner(m, []string{"a", "b"}) == "b" && a.Holds(m) {
				return false, fmt.Errorf("%s was taken back", m)
			}
		}
		return time.Since(begin) > leaseLasts+3*pace.RetryAfter, nil
	})
	if err != nil {
		t.Error(err)
	}
	w.shared(5*time.Second, "a", "b")
}

func TestARenewalWithoutAnAnswerDoesNotEndAReplica(t *testing.T) {
	w := newWorld(t, 1)
	a := w.start("a")
	w.shared(5*time.Second, "a")
	a.loses.Store(ptr.To(peerPrefix))
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 2*renewEvery, true, func(context.Context) (bool, error) {
		return a.deaf.Load(), nil
	})
	if err != nil {
		t.Fatal("it renews nothing")
	}
	a.loses.Store(nil)
	select {
	case <-a.ended:
		t.Errorf("it ended: %v", a.err)
	case <-time.After(leaseLasts + renewEvery):
	}
}

func TestAReplicaEndsAtOnceWhenItsHubWasRestored(t *testing.T) {
	w := newWorld(t, 3)
	a := w.start("a")
	w.shared(5*time.Second, "a")
	lease := a.book.get(peerPrefix + a.current().id)
	lease.TypeMeta = metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 2*renewEvery, true, func(context.Context) (bool, error) {
		return hubv1.Older(lease.ResourceVersion, a.book.get(lease.Name).ResourceVersion), nil
	})
	if err != nil {
		t.Fatal("it renews nothing")
	}
	a.past.Store(lease)
	begin := time.Now()
	a.RequireRenewal()
	select {
	case <-a.ended:
	case <-time.After(leaseLasts):
		t.Fatal("it goes on")
	}
	if took := time.Since(begin); !errors.Is(a.err, ErrRestored) || took > renewEvery/2 {
		t.Errorf("it ended after %s with %v, want %v at once", took, a.err, ErrRestored)
	}
	a.down.Store(true) // its end was no failure of the test
}

// The watch of a replica goes through an API server that is behind. A late answer alone does not show that the hub was
// restored.
func TestAnAPIServerThatIsBehindEndsNoReplica(t *testing.T) {
	w := newWorld(t, 1)
	a := w.start("a")
	w.shared(5*time.Second, "a")
	old := a.book.get(peerPrefix + a.current().id)
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 3*renewEvery, true, func(context.Context) (bool, error) {
		a.leaseChanged(old)
		return hubv1.Older(old.ResourceVersion, a.book.get(old.Name).ResourceVersion), nil
	})
	if err != nil {
		t.Fatal("it renews nothing")
	}
	a.leaseChanged(old)
	a.RequireRenewal()
	if err := a.sure(t.Context()); err != nil || !a.current().valid() {
		t.Errorf("it ended: %v", err)
	}
}

func TestAMemberThatLeavesTakesItsFenceAlong(t *testing.T) {
	w := newWorld(t, 3)
	w.start("a")
	w.shared(5*time.Second, "a")
	gone := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: w.members[0]}}
	if err := w.client.Delete(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 5*time.Second, true, func(context.Context) (bool, error) {
		_, there := w.fences()[fencePrefix+gone.Name]
		return !there && !w.replicas["a"].Holds(gone.Name), nil
	})
	if err != nil {
		t.Error("the fence of a member that is gone is still there")
	}
}

func TestAnIdentityThatMakesNoNameIsRefused(t *testing.T) {
	for _, identity := range []string{"A_B", "a.b", "a-name-that-is-longer-than-forty-characters"} {
		if _, err := New(Options{Config: &rest.Config{}, Identity: identity}); err == nil {
			t.Errorf("%q is taken", identity)
		}
	}
}
