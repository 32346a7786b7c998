package provider

import (
	"errors"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

var one = client.ObjectKey{Namespace: "shop", Name: "one"}

func TestAMemberIsEngagedWhenItAnswers(t *testing.T) {
	p, e := newProvider(t)
	server := newServer(t, "uid-1")
	server.set(func() { server.tokens = map[string]bool{} })
	p.begin(t.Context(), "eu", server.want("first"))
	s := p.awaitReason(t, ReasonCredentialsRefused)
	if _, err := p.Get(t.Context(), "eu"); s.Engaged || !errors.Is(err, multicluster.ErrClusterNotFound) || !strings.Contains(err.Error(), "refuses the token (401)") {
		t.Errorf("before it takes the token: %v, %v", s, err)
	}
	e.mu.Lock()
	e.refuses = 1
	e.mu.Unlock()
	server.set(func() { server.tokens["first"] = true })
	p.awaitReason(t, ReasonServed)
	cl, err := p.Get(t.Context(), "eu")
	if err != nil {
		t.Fatal(err)
	}
	if err := cl.GetClient().Get(t.Context(), one, &corev1.ConfigMap{}); err != nil {
		t.Errorf("reading an object: %v", err)
	}
}

func TestANewTokenOrAddressKeepsTheClusterAndItsWatches(t *testing.T) {
	p, _ := newProvider(t)
	server := newServer(t, "uid-1")
	p.begin(t.Context(), "eu", server.want("first"))
	p.awaitReason(t, ReasonServed)
	before, err := p.Get(t.Context(), "eu")
	if err != nil {
		t.Fatal(err)
	}
	read := func() error { return before.GetClient().Get(t.Context(), one, &corev1.ConfigMap{}) }
	if err := read(); err != nil {
		t.Fatal(err)
	}
	lists := server.count("GET /api/v1/configmaps")
	m := p.members["eu"]

	m.update(server.want("second"))
	await(t, "the second token", func() bool { return m.transport.session.Load().to.token == "second" })
	if got := server.count("GET /api/v1/configmaps"); got != lists {
		t.Errorf("the kind was listed or watched again: %d requests, then %d", lists, got)
	}
	server.set(func() { server.tokens = map[string]bool{"second": true} })
	m.update(server.want("refused"))
	p.awaitReason(t, ReasonCredentialsRefused)
	if err := before.GetAPIReader().Get(t.Context(), client.ObjectKey{Name: "kube-system"}, &corev1.Namespace{}); err != nil {
		t.Errorf("the token before the refused one is not used: %v", err)
	}

	moved := newServer(t, "uid-1")
	m.update(moved.want("third"))
	await(t, "a watch at the new address", func() bool { return moved.count("GET /api/v1/configmaps") > 0 })
	if after, err := p.Get(t.Context(), "eu"); err != nil || after != before || read() != nil {
		t.Errorf("another cluster came: %v", err)
	}
}

func TestAnotherClusterAtTheAddressGetsNoRequest(t *testing.T) {
	p, _ := newProvider(t)
	server := newServer(t, "uid-2")
	w := server.want("token")
	w.clusterID = "uid-1"
	p.begin(t.Context(), "eu", w)
	if s := p.awaitReason(t, ReasonWrongCluster); s.Engaged || !strings.Contains(s.Message, `"uid-2"`) {
		t.Errorf("got %v", s)
	}
}

func TestAMemberThatDoesNotAnswerFailsAtOnceAndStaysEngaged(t *testing.T) {
	p, e := newProvider(t)
	server := newServer(t, "uid-1")
	p.begin(t.Context(), "eu", server.want("token"))
	p.awaitReason(t, ReasonServed)
	server.set(func() { server.uid = "uid-2" }) // another cluster took its address
	m := p.members["eu"]
	m.update(m.current())
	if s := p.awaitReason(t, ReasonWrongCluster); !s.Engaged {
		t.Errorf("it is disengaged: %v", s)
	}
	before := server.count("POST /api/v1/namespaces/shop/configmaps")
	err := e.engaged["eu"].GetClient().Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "new"}})
	if err == nil || !strings.Contains(err.Error(), "cluster eu: the cluster at this address has the ID") {
		t.Errorf("got %v", err)
	}
	if server.count("POST /api/v1/namespaces/shop/configmaps") != before {
		t.Error("a request was sent")
	}
}

func TestAControllerWithMoreWishesThanRightsReadsWhy(t *testing.T) {
	p, e := newProvider(t)
	server := newServer(t, "uid-1")
	server.set(func() { server.pods, server.denied["pods"] = true, true })
	p.begin(t.Context(), "eu", server.want("token"))
	p.awaitReason(t, ReasonServed)
	err := e.engaged["eu"].GetClient().List(t.Context(), &corev1.PodList{})
	if !errors.Is(err, ErrNotSynced) || !strings.Contains(err.Error(), "the cluster grants no list and watch of pods; add a rule to consumers") {
		t.Errorf("the read returns %v", err)
	}
	m := p.members["eu"]
	m.update(m.current())
	if s := p.awaitReason(t, ReasonLacksRights); !s.Engaged || !strings.Contains(s.Message, "pods") {
		t.Errorf("got %v", s)
	}
	if err := e.engaged["eu"].GetClient().Get(t.Context(), one, &corev1.ConfigMap{}); err != nil {
		t.Errorf("another kind is not read: %v", err)
	}
	server.set(func() { server.denied["pods"] = false })
	await(t, "the list of pods", func() bool { return e.engaged["eu"].GetClient().List(t.Context(), &corev1.PodList{}) == nil })
}

func TestAMemberThatLeftAnswersNoClient(t *testing.T) {
	p, e := newProvider(t)
	server := newServer(t, "uid-1")
	p.begin(t.Context(), "eu", server.want("token"))
	p.awaitReason(t, ReasonServed)
	if err := e.engaged["eu"].GetClient().Get(t.Context(), one, &corev1.ConfigMap{}); err != nil {
		t.Fatal(err)
	}
	m := p.members["eu"]
	p.end("eu")
	select {
	case <-m.ended:
	case <-time.After(20 * time.Second):
		t.Fatal("the member does not end")
	}
	err := e.engaged["eu"].GetAPIReader().Get(t.Context(), one, &corev1.ConfigMap{})
	if !errors.Is(err, errLeft) {
		t.Errorf("got %v", err)
	}
}

func TestJoiningAndLeavingLeaksNoGoroutine(t *testing.T) {
	p, e := newProvider(t)
	server := newServer(t, "uid-1")
	joinAndLeave := func() {
		p.begin(t.Context(), "eu", server.want("token"))
		p.awaitReason(t, ReasonServed)
		if err := e.engaged["eu"].GetClient().Get(t.Context(), one, &corev1.ConfigMap{}); err != nil {
			t.Fatal(err)
		}
		m := p.members["eu"]
		p.end("eu")
		<-m.ended
		p.forget("eu")
	}
	joinAndLeave()
	before := runtime.NumGoroutine()
	for range 30 {
		joinAndLeave()
	}
	await(t, "the end of all goroutines", func() bool { return runtime.NumGoroutine() <= before+5 })
}

func TestATokenIsSentToItsMemberOnly(t *testing.T) {
	p, e := newProvider(t)
	server, other := newServer(t, "uid-1"), newServer(t, "uid-2")
	p.begin(t.Context(), "eu", server.want("token"))
	p.awaitReason(t, ReasonServed)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, other.URL+"/api", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := e.engaged["eu"].GetHTTPClient().Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	if !errors.Is(err, errForeign) {
		t.Errorf("got %v", err)
	}
	if len(other.seen) > 0 {
		t.Error("another server got a request")
	}
}

func TestATokenIsRenewedAfterTwoThirdsOfItsLife(t *testing.T) {
	p, _ := newProvider(t)
	server := newServer(t, "uid-1")
	begin := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	old, renewed := jwt("old", begin), jwt("new", begin.AddDate(0, 0, 21))
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "isolate", Name: "eu"},
		Data:       map[string][]byte{ServerKey: []byte(server.URL), TokenKey: []byte(old)},
	}
	stored := fake.NewClientBuilder().WithObjects(secret).Build()
	p.hub.client, p.hub.reader = stored, stored
	m := newMember(t.Context(), p, "eu", server.want(old))
	if f := m.connect(m.current()); f != nil {
		t.Fatal(f)
	}
	inSecret := func() string {
		if err := stored.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
			t.Fatal(err)
		}
		return string(secret.Data[TokenKey])
	}

	p.now = func() time.Time { return begin.AddDate(0, 0, 18) }
	if f := m.renew(m.current()); f != nil || inSecret() != old {
		t.Errorf("too early: %v", f)
	}
	p.now = func() time.Time { return begin.AddDate(0, 0, 21) }
	if f := m.renew(m.current()); f == nil || f.reason != ReasonRenewalFailed || !strings.Contains(f.message, "2026-12-01") || inSecret() != old {
		t.Errorf("the member refuses: %v", f)
	}
	server.set(func() { server.made = func() string { return renewed } })
	asked := server.count("POST /api/v1/namespaces/hanse-system/serviceaccounts/hanse-consumer-isolate/token")
	if f := m.renew(m.current()); f == nil || server.count("POST /api/v1/namespaces/hanse-system/serviceaccounts/hanse-consumer-isolate/token") != asked {
		t.Errorf("it was asked again at once: %v", f)
	}
	p.now = func() time.Time { return begin.AddDate(0, 0, 21).Add(2 * renewPause) }
	if f := m.renew(m.current()); f != nil || inSecret() != renewed {
		t.Errorf("not renewed: %v", f)
	}
	server.set(func() { server.tokens = map[string]bool{old: true} })
	again := server.want(renewed)
	m.renewal, p.now = renewal{}, func() time.Time { return begin.AddDate(0, 0, 60) }
	if f := m.renew(again); f == nil || inSecret() != renewed {
		t.Errorf("a token that does not work was stored: %v", f)
	}
}
