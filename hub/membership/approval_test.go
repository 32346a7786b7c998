package membership

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/clusters"
)

// applicants is a Reconciler with one MemberCluster edge, which has a token.
type applicants struct {
	*testing.T
	client.Client
	*Reconciler
	now    time.Time
	events *events.FakeRecorder
}

func newApplicants(t *testing.T) *applicants {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), hubv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	edge := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "edge"}}
	edge.Spec.Connection = hubv1.Connection{Type: hubv1.ConnectionTunnel, Tunnel: &hubv1.TunnelConnection{}}
	a := &applicants{T: t, now: time.Now(), events: events.NewFakeRecorder(16), Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(edge).Build()}
	a.Reconciler = New(a.Client, a.Client, clusters.New(a.Client), nil, "hub", time.Minute)
	a.Reconciler.now, a.Reconciler.events = func() time.Time { return a.now }, a.events
	a.issue("first")
	return a
}

// issue stores the digest of a token in place of an earlier one, for an hour.
func (a *applicants) issue(token string) {
	a.Helper()
	digest := sha256.Sum256([]byte(token))
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: hubv1.JoinSecretPrefix + "edge"}, Type: hubv1.JoinSecretType,
		Data: map[string][]byte{hubv1.JoinDigestKey: []byte(hex.EncodeToString(digest[:])), hubv1.JoinExpiryKey: []byte(a.now.Add(time.Hour).Format(time.RFC3339))},
	}
	_ = a.Client.Delete(a.Context(), secret.DeepCopy())
	if err := a.Create(a.Context(), secret); err != nil {
		a.Fatal(err)
	}
}

// asks checks the answer to an agent with a key and a token.
func (a *applicants) asks(key, token string, want error) {
	a.Helper()
	if err := a.RecordAgent(a.Context(), "edge", token, hubv1.AgentRequest{Key: key, Address: "192.0.2.7"}); !errors.Is(err, want) {
		a.Errorf("the key %s with the token %s gets %v, want %v", key, token, err, want)
	}
}

// pending returns the request and the message of Ready after a reconcile of the MemberCluster.
func (a *applicants) pending(keys ...string) (*hubv1.AgentRequest, string) {
	a.Helper()
	var cluster hubv1.MemberCluster
	if err := a.Get(a.Context(), client.ObjectKey{Name: "edge"}, &cluster); err != nil {
		a.Fatal(err)
	}
	cluster.Spec.Connection.Tunnel.Keys = keys
	setCondition(&cluster, hubv1.ConditionReady, metav1.ConditionFalse, hubv1.ReasonPendingApproval, "no key")
	if result, err := a.approval(a.Context(), &run{cluster: &cluster}); err != nil || result != (ctrl.Result{}) {
		a.Fatal(result, err)
	}
	message := meta.FindStatusCondition(cluster.Status.Conditions, hubv1.ConditionReady).Message
	if cluster.Status.Agent == nil {
		return nil, message
	}
	return cluster.Status.Agent.Request, message
}

func TestTheFirstKeyThatUsesATokenOwnsIt(t *testing.T) {
	a := newApplicants(t)
	a.asks("SHA256:a", "first", nil)
	a.asks("SHA256:a", "first", nil)
	a.asks("SHA256:thief", "first", ErrTokenUsed)
	a.asks("SHA256:thief", "guess", ErrTokenUnknown)
	if err := a.RecordAgent(t.Context(), "other", "first", hubv1.AgentRequest{Key: "SHA256:a"}); !errors.Is(err, ErrTokenUnknown) {
		t.Errorf("the token of edge for another name gives %v", err)
	}
	if got, message := a.pending(); got == nil || got.Key != "SHA256:a" || !strings.Contains(message, "hansectl approve edge") || !strings.Contains(message, "192.0.2.7") {
		t.Errorf("the status has %+v, and Ready says %s", got, message)
	}
	if _, message := a.pending("SHA256:a"); message != "no key" {
		t.Errorf("the request of an approved key is shown: %s", message)
	}
	for _, reason := range []string{"AgentRequested", "TokenReused"} {
		if said := <-a.events.Events; !strings.Contains(said, reason) {
			t.Errorf("want an event %s: %s", reason, said)
		}
	}
	a.issue("second")
	if got, _ := a.pending(); got != nil {
		t.Errorf("the request of an earlier token stays: %+v", got)
	}
	a.asks("SHA256:a", "first", ErrTokenUnknown)
	a.asks("SHA256:b", "second", nil)
}

func TestATokenExpiresForKeysThatHaveNotUsedIt(t *testing.T) {
	a := newApplicants(t)
	a.now = a.now.Add(2 * time.Hour)
	a.asks("SHA256:a", "first", ErrTokenExpired)
	a.issue("second")
	a.asks("SHA256:a", "second", nil)
	a.now = a.now.Add(2 * time.Hour)
	a.asks("SHA256:a", "second", nil)
}

func TestAfterARestartAnotherKeyCannotUseTheToken(t *testing.T) {
	a := newApplicants(t)
	a.asks("SHA256:a", "first", nil)
	request, _ := a.pending()
	var cluster hubv1.MemberCluster
	if err := a.Get(t.Context(), client.ObjectKey{Name: "edge"}, &cluster); err != nil {
		t.Fatal(err)
	}
	cluster.Status.Agent = &hubv1.AgentStatus{Request: request}
	if err := a.Update(t.Context(), &cluster); err != nil {
		t.Fatal(err)
	}
	a.records.forget("edge")
	a.asks("SHA256:thief", "first", ErrTokenUsed)
	a.asks("SHA256:a", "first", nil)
}

func TestOfManyKeysThatUseATokenAtOnceOneOwnsIt(t *testing.T) {
	a := newApplicants(t)
	var racing sync.WaitGroup
	results := make(chan error, 8)
	for i := range cap(results) {
		racing.Go(func() {
			results <- a.RecordAgent(t.Context(), "edge", "first", hubv1.AgentRequest{Key: "SHA256:" + string(rune('a'+i))})
		})
	}
	racing.Wait()
	close(results)
	owners := 0
	for err := range results {
		if err == nil {
			owners++
		} else if !errors.Is(err, ErrTokenUsed) {
			t.Error(err)
		}
	}
	if owners != 1 {
		t.Errorf("%d keys own the token", owners)
	}
}

func TestWhatAnAgentReportsIsShortAndPrintable(t *testing.T) {
	a := newApplicants(t)
	long := strings.Repeat("x", 100) + "\x1b[2J"
	if err := a.RecordAgent(t.Context(), "edge", "first", hubv1.AgentRequest{Key: "SHA256:a", ClusterID: long, Kubernetes: "\x1b[2J\n", Version: long, Address: long}); err != nil {
		t.Fatal(err)
	}
	got, _ := a.pending()
	for _, text := range []string{got.ClusterID, got.Kubernetes, got.Version, got.Address} {
		if utf8.RuneCountInString(text) > maxReported || strings.ContainsAny(text, "\x1b\n") {
			t.Errorf("the status gets %q", text)
		}
	}
}
