package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub"
	"github.com/hanse-dev/hanse/member/handshake"
	"github.com/hanse-dev/hanse/test/apiserver"
	"github.com/hanse-dev/hanse/test/charts"
)

// world is a hub with a port for agents, and a member whose address the hub does not know.
type world struct {
	*testing.T
	hub, member client.Client
	hubConfig   *rest.Config
	agent       *rest.Config // the member's API server, with the token of the account hanse-system/hanse-agent
	anonymous   *rest.Config // the member's API server, without credentials
	settings    settings     // of the chart hanse-member
	key         string       // fingerprint of the agent's key
}

func TestAMemberThatTheHubCannotDialGetsCopies(t *testing.T) {
	apiserver.Needed(t)
	log := &recorder{}
	ctrl.SetLogger(funcr.New(log.record, funcr.Options{Verbosity: 9})) // of the hub and of the agent
	w := startWorld(t)
	cluster := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}
	cluster.Spec.AllowedNamespaces.From = hubv1.NamespacesFromAll
	cluster.Spec.Connection = hubv1.Connection{Type: hubv1.ConnectionTunnel, Tunnel: &hubv1.TunnelConnection{}}
	must(t, w.hub.Create(t.Context(), cluster))
	w.ready(metav1.ConditionFalse, hubv1.ReasonPendingApproval)
	stop := w.runAgent(w.agent, w.settings)
	w.key = w.requested()
	w.probes(http.StatusServiceUnavailable)
	begin := time.Now()
	w.setKeys(w.key)
	w.ready(metav1.ConditionTrue, hubv1.ReasonConnected)
	w.probes(http.StatusOK)
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the member is Ready %s after the approval", took)
	}
	w.place("shop", "settings")
	w.copied("shop", "settings", "1")
	w.noTrace()
	w.nothingIsAccepted()

	stop() // the agent comes back alone, and writes that were made meanwhile arrive
	w.set("shop", "settings", "2")
	w.ready(metav1.ConditionFalse, hubv1.ReasonAgentAway)
	stop = w.runAgent(w.agent, w.settings)
	w.ready(metav1.ConditionTrue, hubv1.ReasonConnected)
	w.copied("shop", "settings", "2")

	w.setKeys()
	w.ready(metav1.ConditionFalse, hubv1.ReasonPendingApproval)
	w.setKeys(w.key)
	w.ready(metav1.ConditionTrue, hubv1.ReasonConnected)

	stop() // the same key before another cluster, such as a copy of the agent's Secret
	copied := w.settings
	copied.keyFile, copied.keySecret = w.keyFile(), ""
	w.runAgent(w.hubConfig, copied)
	w.ready(metav1.ConditionFalse, hubv1.ReasonIdentityChanged)
	must(t, w.hub.Delete(t.Context(), &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all"}}))
	w.copied("shop", "settings", "2")
	for what, secret := range map[string]string{
		"token of the agent": w.agent.BearerToken, "token to join": joinToken, "key of the agent": strings.Split(string(w.secret().Data[keyOfSecret]), "\n")[1], "tokens of the account": ".eyJ",
	} {
		if log.has(secret) {
			t.Errorf("the logs have the %s", what)
		}
	}
	if !log.has(w.key) {
		t.Error("the logs lack the fingerprint of the agent's key")
	}
}

// recorder keeps the lines of a log.
type recorder struct {
	mu    sync.Mutex
	lines strings.Builder
}

func (r *recorder) record(prefix, args string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintln(&r.lines, prefix, args)
}

func (r *recorder) has(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Contains(r.lines.String(), text)
}

// joinToken is the token by which the agent asks for its approval.
const joinToken = "canary-of-the-join-token"

// probes waits until the probe of the agent has this answer.
func (w *world) probes(code int) {
	w.Helper()
	w.eventually("the probe", func() error {
		resp, err := http.Get("http://" + w.settings.probes + "/readyz")
		if err != nil {
			return err
		}
		if resp.StatusCode != code {
			err = fmt.Errorf("it answers %s", resp.Status)
		}
		return errors.Join(err, resp.Body.Close())
	})
}

// requested waits until the hub shows the request of the agent, and returns its key.
func (w *world) requested() string {
	w.Helper()
	var c hubv1.MemberCluster
	w.eventually("the request of the agent", func() error {
		must(w.T, w.hub.Get(w.Context(), client.ObjectKey{Name: "eu"}, &c))
		if c.Status.Agent == nil || c.Status.Agent.Request == nil {
			return fmt.Errorf("the status has none: %+v", c.Status.Conditions)
		}
		return nil
	})
	var system corev1.Namespace
	must(w.T, w.member.Get(w.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, &system))
	got := c.Status.Agent.Request
	var out bytes.Buffer
	must(w.T, makeKeyFile(&out, w.keyFile()))
	if got.ClusterID != string(system.UID) || got.Key != strings.TrimSpace(out.String()) || got.Kubernetes == "" || got.Version != version || got.Address != "127.0.0.1" {
		w.Errorf("the hub shows the request %+v", got)
	}
	if ready := meta.FindStatusCondition(c.Status.Conditions, hubv1.ConditionReady); !strings.Contains(ready.Message, "hansectl approve eu") || !strings.Contains(ready.Message, got.Key) {
		w.Errorf("the condition Ready says %q", ready.Message)
	}
	return got.Key
}

// nothingIsAccepted tries each text in the Secrets, ConfigMaps and MemberClusters of the hub as a token on the member,
// and each private key as a client certificate.
func (w *world) nothingIsAccepted() {
	w.Helper()
	tried := map[string]bool{}
	for _, list := range []client.ObjectList{&corev1.SecretList{}, &corev1.ConfigMapList{}, &hubv1.MemberClusterList{}} {
		must(w.T, w.hub.List(w.Context(), list))
		items, err := meta.ExtractList(list)
		must(w.T, err)
		for _, item := range items {
			if secret, is := item.(*corev1.Secret); is {
				for _, data := range secret.Data {
					w.refused(string(data), tried)
				}
			}
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(item)
			must(w.T, err)
			w.refusedIn(content, tried)
		}
	}
	if len(tried) < 20 {
		w.Errorf("only %d texts were tried", len(tried))
	}
	accepted := rest.CopyConfig(w.anonymous)
	accepted.BearerToken = w.agent.BearerToken
	if code := w.get(accepted); code == http.StatusUnauthorized {
		w.Errorf("the token of the agent is refused: %d", code)
	}
}

// refusedIn tries the texts of a part of an object.
func (w *world) refusedIn(part any, tried map[string]bool) {
	w.Helper()
	switch part := part.(type) {
	case map[string]any:
		for key, value := range part {
			w.refused(key, tried)
			w.refusedIn(value, tried)
		}
	case []any:
		for _, value := range part {
			w.refusedIn(value, tried)
		}
	case string:
		w.refused(part, tried)
	}
}

// refused tries the words of a text on the member.
func (w *world) refused(text string, tried map[string]bool) {
	w.Helper()
	words := strings.FieldsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"'`,;(){}", r) })
	for _, word := range append(words, text) {
		if len(word) < 16 || tried[word] || strings.ContainsFunc(word, func(r rune) bool { return r <= ' ' || r > '~' }) {
			continue
		}
		tried[word] = true
		config := rest.CopyConfig(w.anonymous)
		config.BearerToken = word
		if code := w.get(config); code != http.StatusUnauthorized {
			w.Errorf("the member answers %d to the token %.20s... of the hub", code, word)
		}
	}
	certificate, err := handshake.Certificate([]byte(text))
	if err != nil || tried[text] {
		return
	}
	tried[text] = true
	config := rest.CopyConfig(w.anonymous)
	config.CertData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})
	config.KeyData = []byte(text)
	if code := w.get(config); code != http.StatusUnauthorized {
		w.Errorf("the member answers %d to a key of the hub", code)
	}
}

// get returns the status code of a request to the member.
func (w *world) get(config *rest.Config) int {
	w.Helper()
	config.QPS = -1
	c, err := rest.HTTPClientFor(config)
	must(w.T, err)
	resp, err := c.Get(config.Host + "/api/v1/namespaces/kube-system")
	must(w.T, err)
	must(w.T, resp.Body.Close())
	return resp.StatusCode
}

// startWorld starts two API servers and a hub.
func startWorld(t *testing.T) *world {
	t.Helper()
	onHub, onMember := apiserver.Hub(), &envtest.Environment{}
	w := &world{T: t, hub: serve(t, onHub), member: serve(t, onMember)}
	w.hubConfig, w.anonymous = onHub.Config, rest.AnonymousClientConfig(onMember.Config)
	must(t, w.hub.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hubv1.SystemNamespace}}))
	port := freeAddress(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- hub.Run(ctx, onHub.Config, hub.Options{
			Namespace: hubv1.SystemNamespace, TunnelAddress: port, Manager: hub.ManagerOptions{HealthAddress: "0", MetricsAddress: "0"},
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("running the hub: %v", err)
		}
	})
	var pin string
	w.eventually("the key of the hub", func() error {
		var secret corev1.Secret
		err := w.hub.Get(t.Context(), client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: hubv1.TunnelSecret}, &secret)
		pin = secret.Annotations[hubv1.FingerprintAnnotation]
		return err
	})
	w.install(port, pin)
	return w
}

func serve(t *testing.T, server *envtest.Environment) client.Client {
	t.Helper()
	config, err := server.Start()
	must(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	config.QPS = -1
	scheme := runtime.NewScheme()
	must(t, errors.Join(clientgoscheme.AddToScheme(scheme), hubv1.AddToScheme(scheme)))
	c, err := client.New(config, client.Options{Scheme: scheme})
	must(t, err)
	return c
}

// install creates the objects of the chart hanse-member on the member.
func (w *world) install(hubAddress, pin string) {
	w.Helper()
	ctx := w.Context()
	must(w.T, w.member.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hubv1.SystemNamespace}}))
	for _, o := range charts.Install(w.T, "hanse-member", map[string]any{
		"grantedKinds": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}}},
		"tunnel":       map[string]any{"enabled": true, "name": "eu", "hub": hubAddress, "hubKeys": []any{pin}, "joinToken": map[string]any{"value": joinToken}},
	}) {
		must(w.T, w.member.Create(ctx, o))
	}
	var agent appsv1.Deployment
	must(w.T, w.member.Get(ctx, client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: "hanse-agent"}, &agent))
	flags := flag.NewFlagSet("hanse-member", flag.ContinueOnError)
	w.settings.addTo(flags)
	must(w.T, flags.Parse(agent.Spec.Template.Spec.Containers[0].Args))
	must(w.T, w.settings.check())
	var given corev1.Secret
	must(w.T, w.member.Get(ctx, client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: agent.Spec.Template.Spec.Volumes[0].Secret.SecretName}, &given))
	w.settings.probes = freeAddress(w.T)
	w.settings.joinToken = filepath.Join(w.TempDir(), filepath.Base(w.settings.joinToken))
	must(w.T, os.WriteFile(w.settings.joinToken, given.Data["token"], 0o600))
	digest := sha256.Sum256([]byte(joinToken))
	must(w.T, w.hub.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: hubv1.JoinSecretPrefix + "eu"}, Type: hubv1.JoinSecretType,
		Data: map[string][]byte{hubv1.JoinDigestKey: []byte(hex.EncodeToString(digest[:])), hubv1.JoinExpiryKey: []byte(time.Now().Add(time.Hour).Format(time.RFC3339))},
	}))
	token := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: agent.Spec.Template.Spec.ServiceAccountName}}
	must(w.T, w.member.SubResource("token").Create(ctx, account, token))
	w.agent = rest.CopyConfig(w.anonymous)
	w.agent.BearerToken = token.Status.Token
}

// keyFile returns a file with the key that the agent has made.
func (w *world) keyFile() string {
	w.Helper()
	file := filepath.Join(w.TempDir(), "key.pem")
	must(w.T, os.WriteFile(file, w.secret().Data[keyOfSecret], 0o600))
	return file
}

// secret returns the Secret with the agent's key.
func (w *world) secret() *corev1.Secret {
	w.Helper()
	var secret corev1.Secret
	must(w.T, w.member.Get(w.Context(), client.ObjectKey{Namespace: hubv1.SystemNamespace, Name: w.settings.keySecret}, &secret))
	return &secret
}

// runAgent runs the command for the cluster of config, until the returned function is called.
func (w *world) runAgent(config *rest.Config, s settings) (stop func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := connect(ctx, config, s); err != nil {
			w.Errorf("the agent ended: %v", err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	w.Cleanup(stop)
	return stop
}

func (w *world) setKeys(keys ...string) {
	w.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"connection": map[string]any{"tunnel": map[string]any{"keys": append([]string{}, keys...)}}}})
	must(w.T, err)
	must(w.T, w.hub.Patch(w.Context(), &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}, client.RawPatch("application/merge-patch+json", patch)))
}

func (w *world) ready(status metav1.ConditionStatus, reason string) {
	w.Helper()
	w.eventually("condition Ready", func() error {
		var c hubv1.MemberCluster
		if err := w.hub.Get(w.Context(), client.ObjectKey{Name: "eu"}, &c); err != nil {
			return err
		}
		if is := meta.FindStatusCondition(c.Status.Conditions, hubv1.ConditionReady); is == nil || is.Status != status || is.Reason != reason {
			return fmt.Errorf("want %s with %s: %+v", status, reason, c.Status.Conditions)
		}
		return nil
	})
}

// place creates a ConfigMap on the hub, and a placement that selects it.
func (w *world) place(namespace, name string) {
	w.Helper()
	ctx := w.Context()
	must(w.T, w.hub.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	must(w.T, w.hub.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"n": "1"}}))
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "all"}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{Kind: "ConfigMap", Name: name}}
	p.Spec.Clusters.Names = []string{"eu"}
	must(w.T, w.hub.Create(ctx, p))
}

func (w *world) set(namespace, name, value string) {
	w.Helper()
	must(w.T, w.hub.Patch(w.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}},
		client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"data":{"n":%q}}`, value))))
}

// copied waits until the member has the copy with this value.
func (w *world) copied(namespace, name, value string) {
	w.Helper()
	w.eventually("the copy", func() error {
		var copied corev1.ConfigMap
		if err := w.member.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &copied); err != nil {
			return err
		}
		if copied.Data["n"] != value || copied.Labels[hubv1.HubLabel] == "" {
			return fmt.Errorf("it has %v and the labels %v", copied.Data, copied.Labels)
		}
		return nil
	})
}

// noTrace checks that no object of the hub has the address of the member, or the credentials of its agent.
func (w *world) noTrace() {
	w.Helper()
	agentKey := w.secret().Data[keyOfSecret]
	_, address, _ := strings.Cut(w.agent.Host, "://")
	checked := 0
	for _, list := range []client.ObjectList{&corev1.SecretList{}, &corev1.ConfigMapList{}, &hubv1.MemberClusterList{}} {
		must(w.T, w.hub.List(w.Context(), list))
		items, err := meta.ExtractList(list)
		must(w.T, err)
		checked += len(items)
		var text bytes.Buffer
		for _, item := range items {
			if secret, is := item.(*corev1.Secret); is {
				for _, data := range secret.Data {
					text.Write(data)
				}
			}
			must(w.T, json.NewEncoder(&text).Encode(item))
		}
		for _, secret := range []string{w.agent.BearerToken, string(agentKey), strings.Split(string(agentKey), "\n")[1], address} {
			if bytes.Contains(text.Bytes(), []byte(secret)) {
				w.Errorf("an object of %T on the hub has the address of the member, or a secret of its agent", list)
			}
		}
	}
	if checked < 3 {
		w.Errorf("only %d objects were checked", checked)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func (w *world) eventually(what string, check func() error) {
	w.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-deadline:
			w.Fatalf("%s: %v", what, err)
		case <-tick.C:
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestAKeyFileIsMadeOnce checks that --make-key keeps a key.
func TestAKeyFileIsMadeOnce(t *testing.T) {
	var first, second bytes.Buffer
	file := filepath.Join(t.TempDir(), "key.pem")
	must(t, errors.Join(makeKeyFile(&first, file), makeKeyFile(&second, file)))
	if first.String() == "" || first.String() != second.String() {
		t.Errorf("the key was made again: %s, then %s", first.String(), second.String())
	}
}

// TestAWrongFlagIsNamed checks the messages about flags.
func TestAWrongFlagIsNamed(t *testing.T) {
	good := settings{name: "eu", hub: "hub.example.com:8446", hubKeys: "SHA256:" + strings.Repeat("A", 43), keyFile: "key.pem"}
	must(t, good.check())
	for flag, edit := range map[string]func(*settings){
		"--name":       func(s *settings) { s.name = "Eu_1" },
		"--hub ":       func(s *settings) { s.hub = "https://hub.example.com" },
		"--hub-key":    func(s *settings) { s.hubKeys = "SHA256:abc" },
		"--key-file":   func(s *settings) { s.keyFile = "" },
		"--key-secret": func(s *settings) { s.keySecret = "hanse-agent" },
	} {
		s := good
		edit(&s)
		if err := s.check(); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("want an error about %s: %v", flag, err)
		}
	}
	if _, _, err := apiServer(&rest.Config{Host: "http://127.0.0.1:8080"}); !errors.Is(err, errFlag) {
		t.Errorf("an API server without TLS gives %v", err)
	}
}
