package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// known is the only token that the API server of a bare console accepts.
const known = "a-known-token"

// bare returns a console whose API server only says whose a token is. It calls asked before each answer.
func bare(t *testing.T, asked func(ctx context.Context, token string)) (*Console, http.Handler) {
	t.Helper()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"), meta.RESTScopeRoot)
	c, err := New(Options{
		Config: &rest.Config{Host: "https://hub.invalid"}, Mapper: mapper, Logger: logr.Discard(),
		Key: func() ([]byte, error) { return []byte("a key of 32 bytes for test alone"), nil },
	})
	must(t, err)
	c.users.transport = local{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		asked(r.Context(), token)
		w.Header().Set("Content-Type", "application/json")
		if token != known {
			w.WriteHeader(http.StatusUnauthorized)
			_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonUnauthorized, Code: http.StatusUnauthorized})
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = fmt.Fprint(w, `{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "status": {"userInfo": {"username": "alice"}}}`)
	})}
	handler, err := c.Handler()
	must(t, err)
	return c, handler
}

// signsIn sends a sign-in from an address, and returns the status of the answer.
func signsIn(ctx context.Context, handler http.Handler, address, token string) int {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/signin", strings.NewReader(url.Values{"token": {token}}.Encode()))
	r.RemoteAddr = address + ":1234"
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w.Code
}

func TestASignInWithGarbageCostsLittle(t *testing.T) {
	_, handler := bare(t, func(context.Context, string) {})
	const most, signIns = 42 << 10, 1000 // a client of its own would cost 20 KiB more
	try := func() {
		if status := signsIn(t.Context(), handler, "192.0.2.1", "garbage"); status != http.StatusUnauthorized {
			t.Fatalf("the answer is %d", status)
		}
	}
	try()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range signIns {
		try()
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / signIns; each > most {
		t.Errorf("a sign-in allocates %d bytes, want at most %d", each, most)
	} else {
		t.Logf("a sign-in allocates %d bytes", each)
	}
}

func TestAFloodOfSignInsKeepsNoOtherUserWaiting(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	arrived := make(chan struct{}, 1000)
	c, handler := bare(t, func(ctx context.Context, token string) {
		if token != known {
			arrived <- struct{}{}
			<-ctx.Done() // the API server takes its time
		}
	})
	c.waitForSlot = time.Minute
	var flood sync.WaitGroup
	defer flood.Wait()
	defer cancel()
	for range 1000 {
		flood.Go(func() { signsIn(ctx, handler, "192.0.2.1", "garbage") })
	}
	for range signInsPerAddress {
		<-arrived
	}
	soon, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	if status := signsIn(soon, handler, "192.0.2.2", known); status != http.StatusSeeOther {
		t.Errorf("a sign-in from another address: %d", status)
	}
	for user := range maxPages {
		_, leave, ok := c.admitted(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil), session{User: fmt.Sprint("user-", user)})
		if !ok {
			t.Fatal("sign-ins hold the slots of pages")
		}
		defer leave()
	}
	select {
	case <-arrived:
		t.Errorf("one address has more than %d sign-ins at a time", signInsPerAddress)
	default:
	}
}

func TestServiceAccountsOfANamespaceShareTheLimitsOfOneUser(t *testing.T) {
	c, _ := bare(t, func(context.Context, string) {})
	c.waitForSlot = time.Millisecond
	enters := func(user string) bool {
		_, leave, ok := c.admitted(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil), session{User: user})
		if ok {
			t.Cleanup(leave)
		}
		return ok
	}
	admitted := 0
	for _, name := range []string{"a", "b", "c"} {
		for range maxPerUser {
			if enters("system:serviceaccount:shop:" + name) {
				admitted++
			}
		}
	}
	if admitted != maxPerUser {
		t.Errorf("three ServiceAccounts of a namespace hold %d slots, want %d", admitted, maxPerUser)
	}
	for _, other := range []string{"system:serviceaccount:blog:a", "alice", "shop", "namespace/shop"} {
		if !enters(other) {
			t.Errorf("%s gets no slot", other)
		}
	}
	opened := 0
	for i := range 2 * maxStreamsPerUser {
		s := session{User: fmt.Sprint("system:serviceaccount:shop:", i)}
		if _, closed, ok := c.Live.open(s.party(), everywhere); ok {
			opened++
			t.Cleanup(closed)
		}
	}
	if opened != maxStreamsPerUser {
		t.Errorf("the ServiceAccounts of a namespace hold %d streams, want %d", opened, maxStreamsPerUser)
	}
}
