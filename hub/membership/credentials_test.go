package membership

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/pace"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/credential"
)

// later is how many nanoseconds the reconciler's clock is ahead of the real clock.
var later atomic.Int64

// using returns the state of a link that uses these credentials.
func using(cluster string, inUse credential.Credential) member.LinkState {
	s := connected(cluster + "-id")
	s.InUse = inUse
	return s
}

// fakeIssuer issues and revokes tokens of one cluster.
type fakeIssuer struct {
	mu      sync.Mutex
	issued  int
	revoked []string // Secret and UID of each revoked token
	err     error
	token   string // the issued token; empty: a valid token
}

var issuers sync.Map

func issuer(cluster string) *fakeIssuer {
	i, _ := issuers.LoadOrStore(cluster, &fakeIssuer{})
	return i.(*fakeIssuer)
}

func (i *fakeIssuer) Issue(_ context.Context, life time.Duration) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.err != nil {
		return "", i.err
	}
	i.issued++
	if i.token != "" {
		return i.token, nil
	}
	return tokenOf(credential.TokenSecrets[i.issued%2], fmt.Sprintf("uid-%d", i.issued), time.Now().Add(time.Duration(later.Load())), life), nil
}

func (i *fakeIssuer) Revoke(_ context.Context, secret, uid string) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.err != nil {
		return i.err
	}
	i.revoked = append(i.revoked, secret+" "+uid)
	return nil
}

func (i *fakeIssuer) set(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
}

func (i *fakeIssuer) saw() (issued int, revoked []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.issued, slices.Clone(i.revoked)
}

// tokenOf returns a token in the form that API servers use, without a valid signature.
func tokenOf(secret, uid string, issued time.Time, life time.Duration) string {
	return "e30." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil,
		`{"iat":%d,"exp":%d,"kubernetes.io":{"namespace":"hanse-system","serviceaccount":{"name":"hanse"},"secret":{"name":%q,"uid":%q}}}`,
		issued.Unix(), issued.Add(life).Unix(), secret, uid)) + ".c2ln"
}

func kubeconfigOf(t *testing.T, token string) string {
	t.Helper()
	raw, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: "https://203.0.113.7:6443", CertificateAuthorityData: []byte("ca")}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// joined returns a scene, which is a cluster with its Secret. The Secret has the label of hansectl and a token with
// this lifetime.
func joined(t *testing.T, name string, life time.Duration, edits ...func(*hubv1.MemberCluster)) (s scene, inUse credential.Credential) {
	t.Helper()
	s = newScene(t, name)
	token := tokenOf("hanse-token-a", "uid-a", time.Now(), life)
	inUse = credential.Of(token, "")
	s.secret(kubeconfigOf(t, token))
	s.must(hub.Patch(t.Context(), s.stored(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"app.kubernetes.io/managed-by":"hansectl"}}}`))))
	s.join(edits...)
	s.uses(inUse)
	return s, inUse
}

func (s scene) stored() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: s.name}}
}

func (s scene) uses(c credential.Credential) {
	s.Helper()
	s.eventually("status.credentials.id "+c.ID, func() string {
		if got := s.get().Status.Credentials; got == nil || got.ID != c.ID {
			return fmt.Sprintf("it is %+v", got)
		}
		return ""
	})
}

// replaces waits until the cluster's status has other credentials than before, and returns the status of the new ones.
func (s scene) replaces(before credential.Credential) *hubv1.CredentialsStatus {
	s.Helper()
	s.eventually("other credentials", func() string {
		if got := s.get().Status.Credentials; got.ID == before.ID {
			return "they are the same"
		}
		return ""
	})
	return s.get().Status.Credentials
}

// ahead sets the reconciler's clock ahead until the end of the test.
func (s scene) ahead(d time.Duration) {
	later.Store(int64(d))
	s.Cleanup(func() { later.Store(0) })
	reconciler.Wake(s.name)
}

func (s scene) without(conditionType string) {
	s.Helper()
	s.eventually("no condition "+conditionType, func() string {
		if c := meta.FindStatusCondition(s.get().Status.Conditions, conditionType); c != nil {
			return "it is " + c.Message
		}
		return ""
	})
}

var forbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts/token"}, "hanse", errors.New("canary"))

func TestATokenIsRenewedInTimeAndItsPredecessorRevoked(t *testing.T) {
	s, first := joined(t, "renewed", 30*24*time.Hour)
	if got := s.get().Status.Credentials; !got.ExpireTime.Time.Equal(first.Expires) || got.TokenSecret == nil || *got.TokenSecret != (hubv1.TokenSecret{Name: "hanse-token-a", UID: "uid-a"}) {
		t.Errorf("status.credentials is %+v", got)
	}
	s.unchanged("a fresh token", func() { s.ahead(18 * 24 * time.Hour) })
	if issued, _ := issuer(s.name).saw(); issued > 0 {
		t.Error("a fresh token was renewed")
	}

	s.ahead(20 * 24 * time.Hour)
	second := s.replaces(first)
	if _, revoked := issuer(s.name).saw(); !slices.Equal(revoked, []string{"hanse-token-a uid-a"}) {
		t.Errorf("revoked: %q", revoked)
	}
	if left := second.ExpireTime.Sub(first.Expires); left < 19*24*time.Hour {
		t.Errorf("it expires %s after the first", left)
	}
	s.without(hubv1.ConditionCredentialsExpireSoon)
	if w, _ := links.wanted(s.name); credentialOf([]byte(w.kubeconfig)).ID != second.ID {
		t.Error("the link is not that of the new token")
	}
	s.unchanged("a renewed token", func() { reconciler.Wake(s.name) })
	if issued, _ := issuer(s.name).saw(); issued != 1 {
		t.Errorf("%d tokens were made", issued)
	}
}

func TestATokenIsReplacedWhenAUserAsks(t *testing.T) {
	s, first := joined(t, "asked", 30*24*time.Hour)
	s.must(hub.Patch(t.Context(), s.get(), client.RawPatch("application/merge-patch+json",
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, hubv1.RotateCredentialsAnnotation, first.ID))))
	s.replaces(first)
	s.unchanged("a token that was replaced", func() { reconciler.Wake(s.name) })
	if issued, revoked := issuer(s.name).saw(); issued != 1 || len(revoked) != 1 {
		t.Errorf("%d tokens were made, revoked: %q", issued, revoked)
	}
}

func TestATokenThatIsNotRenewedSaysWhyUntilItIs(t *testing.T) {
	s, first := joined(t, "not-renewed", 30*24*time.Hour)
	i := issuer(s.name)
	i.set(func() { i.err = forbidden })
	s.ahead(21 * 24 * time.Hour)
	s.is(hubv1.ConditionCredentialsExpireSoon, metav1.ConditionTrue, hubv1.ReasonRenewalRefused, "hansectl rotate not-renewed")
	i.set(func() { i.err, i.token = nil, "hello" })
	s.ahead(21*24*time.Hour + pace.MaxSlowRetry)
	s.is(hubv1.ConditionCredentialsExpireSoon, metav1.ConditionTrue, hubv1.ReasonRenewalFailed, "cannot use")
	s.uses(first)
	i.set(func() { i.token = "" })
	s.ahead(21*24*time.Hour + 3*pace.MaxSlowRetry)
	s.replaces(first)
	s.without(hubv1.ConditionCredentialsExpireSoon)
}

func TestTheTokenOfALeavingClusterIsRevokedIfThatIsAskedFor(t *testing.T) {
	revoke := func(c *hubv1.MemberCluster) { c.Spec.Leave.Credentials = hubv1.CredentialsRevoke }
	note := func(s scene) string {
		secret := s.stored()
		s.must(hub.Get(t.Context(), client.ObjectKeyFromObject(secret), secret))
		return secret.Annotations[hubv1.CredentialsRevokedAnnotation]
	}
	t.Run("it is kept by default", func(t *testing.T) {
		s, _ := joined(t, "leaves-kept", time.Hour*24)
		s.must(hub.Delete(t.Context(), s.get()))
		s.gone()
		if _, revoked := issuer(s.name).saw(); len(revoked) > 0 || note(s) != "" {
			t.Errorf("revoked: %q, noted: %q", revoked, note(s))
		}
	})
	t.Run("it is revoked after the last copy has gone", func(t *testing.T) {
		s, _ := joined(t, "leaves-revoked", time.Hour*24, revoke)
		b := s.bind("default", s.name, s.name)
		s.must(hub.Delete(t.Context(), s.get()))
		s.is(hubv1.ConditionReady, metav1.ConditionTrue, hubv1.ReasonLeaving, "1 object is left")
		if _, revoked := issuer(s.name).saw(); len(revoked) > 0 {
			t.Errorf("revoked before: %q", revoked)
		}
		s.retarget(b)
		s.gone()
		if _, revoked := issuer(s.name).saw(); !slices.Equal(revoked, []string{"hanse-token-a uid-a"}) || note(s) != "true" {
			t.Errorf("revoked: %q, noted: %q", revoked, note(s))
		}
	})
	t.Run("a cluster that refuses leaves all the same", func(t *testing.T) {
		s, _ := joined(t, "leaves-refused", time.Hour*24, revoke)
		issuer(s.name).set(func() { issuer(s.name).err = forbidden })
		s.must(hub.Delete(t.Context(), s.get()))
		s.gone()
		if got := note(s); got != "the cluster does not allow the hub to revoke the token" {
			t.Errorf("noted: %q", got)
		}
	})
	t.Run("a cluster that is away leaves all the same", func(t *testing.T) {
		s, inUse := joined(t, "leaves-away", time.Hour*24, revoke)
		w, _ := links.wanted(s.name)
		links.become(w.kubeconfig, away(using(s.name, inUse)))
		s.is(hubv1.ConditionReady, metav1.ConditionFalse, hubv1.ReasonUnreachable, "")
		s.must(hub.Delete(t.Context(), s.get()))
		s.gone()
		if got := note(s); got != "the cluster does not answer" {
			t.Errorf("noted: %q", got)
		}
	})
}

func TestTokenRequestsAreLimitedAndWaitAfterAFailure(t *testing.T) {
	now := time.Unix(1000, 0)
	ended := make(chan string, 100)
	e := newTokenRequests(func() time.Time { return now }, func(cluster string) { ended <- cluster })
	release, begun := make(chan struct{}), make(chan struct{}, 100)
	for i := range 3 * maxTokenRequests {
		e.do(t.Context(), fmt.Sprintf("c-%d", i), "renew", func(context.Context) (string, error) {
			begun <- struct{}{}
			<-release
			return "token", nil
		})
	}
	for range maxTokenRequests {
		<-begun
	}
	if len(begun) > 0 {
		t.Error("too many are under way")
	}
	close(release)
	for range 3 * maxTokenRequests {
		<-ended
	}
	if s := e.do(t.Context(), "c-0", "renew", nil); !s.done || s.token != "token" {
		t.Errorf("the first is %+v", s)
	}

	fails := func(context.Context) (string, error) { return "", forbidden }
	e.do(t.Context(), "c-0", "revoke", fails)
	<-ended
	s := e.do(t.Context(), "c-0", "revoke", fails)
	if s.done || !apierrors.IsForbidden(s.err) || s.failures != 1 || s.wait != firstTokenRetry {
		t.Errorf("after a failure: %+v", s)
	}
	now = now.Add(firstTokenRetry)
	e.do(t.Context(), "c-0", "revoke", fails)
	<-ended
	if s := e.do(t.Context(), "c-0", "revoke", fails); s.failures != 2 || s.wait != 2*firstTokenRetry {
		t.Errorf("after two: %+v", s)
	}
	e.forget("c-0")
	if s := e.do(t.Context(), "c-0", "revoke", fails); s.err != nil || s.failures != 0 {
		t.Errorf("when it is forgotten: %+v", s)
	}
	<-ended
}
