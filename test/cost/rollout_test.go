// Package cost counts the writes of a hub process to its API server. It is a separate package, because a process can
// run only one hub: the names of the hub's controllers must be unique in the process.
package cost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub"
	"github.com/hanse-dev/hanse/test/apiserver"
)

// write is a request with which a hub process has changed an object on its API server.
type write struct {
	resource string // the resource with its subresource, such as resourcebindings/status
	object   string // the name of the object; empty for a create
	body     []byte
	at       time.Time
}

// writes records those writes of a hub process that a rollout may cause.
type writes struct {
	mu   sync.Mutex
	all  []write
	last time.Time
}

// counting is a transport that records the writes. Each client of the hub process has its own one.
type counting struct {
	next   http.RoundTripper
	writes *writes
}

// RoundTrip implements http.RoundTripper.
func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	made, counts := writeOf(r)
	if counts && r.GetBody != nil {
		if body, err := r.GetBody(); err == nil {
			made.body, _ = io.ReadAll(body)
		}
	}
	answer, err := c.next.RoundTrip(r)
	if counts && err == nil && answer.StatusCode < http.StatusMultipleChoices {
		c.writes.add(made)
	}
	return answer, err
}

func (w *writes) add(made write) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = time.Now()
	made.at = w.last
	w.all = append(w.all, made)
}

// writeOf returns the write that a request makes. It returns false for a read, and for a resource that a rollout never
// writes.
func writeOf(r *http.Request) (write, bool) {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	i := slices.Index(path, "namespaces")
	if r.Method == http.MethodGet || i < 0 || len(path) < i+3 {
		return write{}, false
	}
	made, rest := write{resource: path[i+2]}, path[i+3:]
	if !slices.Contains([]string{"resourcebindings", "placements", "overridepolicies", "secrets", "events"}, made.resource) {
		return write{}, false
	}
	if len(rest) > 0 {
		made.object = rest[0]
	}
	if len(rest) > 1 {
		made.resource += "/" + rest[1]
	}
	return made, true
}

// rest waits until the hub has written nothing for three seconds. It returns the writes since the last call of rest.
func (w *writes) rest(t *testing.T) []write {
	t.Helper()
	eventually(t, func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if time.Since(w.last) < 3*time.Second {
			return errors.New("the hub still writes")
		}
		return nil
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all
	w.all = nil
	return all
}

// cost has the numbers of writes of a rollout.
type cost struct {
	secrets, placements, policies, events int
	bindings                              map[string]*bindingCost
}

// bindingCost has the numbers of writes to one binding. batches are writes that change the revision of clusters. phases
// are writes that change only the phase or the wave. repeated is the number of statuses beyond the first one of a
// generation.
type bindingCost struct{ batches, phases, other, statuses, repeated int }

func costOf(t *testing.T, all []write) (c cost, took time.Duration) {
	t.Helper()
	c = cost{bindings: map[string]*bindingCost{}}
	last := map[string]hubv1.BindingStatus{}
	for _, w := range all {
		var content struct {
			Spec   hubv1.BindingSpec   `json:"spec"`
			Status hubv1.BindingStatus `json:"status"`
		}
		b := c.bindings[w.object]
		if strings.HasPrefix(w.resource, "resourcebindings") {
			if must(t, json.Unmarshal(w.body, &content)); b == nil {
				b = &bindingCost{}
				c.bindings[w.object] = b
			}
		}
		rollout := content.Spec.Rollout
		switch w.resource {
		case "secrets":
			c.secrets++
		case "placements/status":
			c.placements++
		case "overridepolicies/status":
			c.policies++
		case "events":
			c.events++
		case "resourcebindings/status":
			before := last[w.object]
			if b.statuses++; before.ObservedGeneration == content.Status.ObservedGeneration {
				b.repeated++
				t.Logf("a second status of %s for its generation %d:\n%s", w.object, before.ObservedGeneration, cmp.Diff(before, content.Status))
			}
			last[w.object] = content.Status
		case "resourcebindings":
			switch {
			case len(content.Spec.Clusters) > 0: // a merge patch contains the list only if it changes the list
				b.batches++
			case rollout != nil && (rollout.Phase != "" || rollout.Wave != ""):
				b.phases++
			default:
				b.other++
			}
		default:
			t.Errorf("the hub writes %s %s", w.resource, w.object)
		}
	}
	return c, all[len(all)-1].at.Sub(all[0].at)
}

// TestWhatARolloutWrites changes all objects in three waves, and counts the writes of the hub process. It expects one
// Secret for each changed input: the Secret stores the new hub object or the new override rules. For each batch of
// clusters, the hub may write one decision and one status of an object. For the phase of each wave, it may write one
// more decision and status.
func TestWhatARolloutWrites(t *testing.T) {
	apiserver.Needed(t)
	ctrl.SetLogger(logr.Discard())
	const objects = 3
	clusters := []string{"ap", "eu", "us"}
	f := start(t, clusters...)
	w := f.writes
	p := &hubv1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "staged"}}
	p.Spec.ResourceSelectors = []hubv1.ResourceSelector{{Kind: "ConfigMap"}}
	p.Spec.Clusters = hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{}}
	p.Spec.Rollout = &hubv1.RolloutPolicy{SettleSeconds: ptr.To[int32](0), HealthGate: hubv1.RolloutGate{MinObservedSeconds: ptr.To[int32](0)}}
	for _, name := range clusters {
		wave := hubv1.RolloutWave{Name: name, Clusters: &hubv1.RuleClusters{Names: []string{name}}}
		p.Spec.Rollout.Waves = append(p.Spec.Rollout.Waves, wave)
	}
	f.create(p)
	for i := range objects {
		f.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("cm-", i)}, Data: map[string]string{"v": "1"}})
	}
	f.rolledOut(objects, 1)
	w.rest(t)

	edit := func(value string, objects int) {
		for i := range objects {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("cm-", i)}}
			must(t, f.Patch(t.Context(), cm, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"v":%q}}`, value))))
		}
	}
	marks := &hubv1.OverridePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "marks"}}
	marks.Spec.ResourceSelectors = p.Spec.ResourceSelectors
	marks.Spec.Rules = []hubv1.OverrideRule{{Name: "mark", Labels: map[string]string{"mark": "yes"}}}
	repeated := 0
	for _, tc := range []struct {
		what     string
		change   func()
		objects  int // number of objects that get a new revision
		revision int64
		inputs   int // number of changed inputs
		phases   int // the maximum for each object
	}{
		{"a change of each object", func() { edit("2", objects) }, objects, 2, objects, len(clusters)},
		{"a policy that all objects share", func() { f.create(marks) }, objects, 3, 1, len(clusters)},
		{"a change of one object", func() { edit("3", 1) }, 1, 4, 1, 1}, // the object does not wait for the other objects
	} {
		tc.change()
		f.rolledOut(tc.objects, tc.revision)
		got, took := costOf(t, w.rest(t))
		folds := int(took/foldEvery) + 2
		events := (tc.objects + 1) * (len(clusters) + 1) // each object and the placement tell each wave and the end once
		if tc.objects > 1 {
			events += len(clusters) // an object that begins late returns the placement to an earlier wave
		}
		t.Logf("%s, in %s: %d Secrets, %d statuses of the placement, %d of policies, %d events", tc.what, took, got.secrets, got.placements, got.policies, got.events)
		if got.secrets != tc.inputs || got.events > events || got.placements > folds || len(got.bindings) != tc.objects {
			t.Errorf("%s writes %d Secrets, want %d; %d events, want at most %d; %d statuses of the placement, want at most %d; to %d bindings, want %d",
				tc.what, got.secrets, tc.inputs, got.events, events, got.placements, folds, len(got.bindings), tc.objects)
		}
		for name, b := range got.bindings {
			t.Logf("%s: %+v", name, *b)
			if b.batches != len(clusters) || b.phases > tc.phases || b.other != 0 {
				t.Errorf("%s: the decisions on %s are %+v, want %d batches and at most %d phases", tc.what, name, *b, len(clusters), tc.phases)
			}
			repeated += b.repeated
		}
	}
	// A slow response to the scheduler's write sometimes causes a second status for a decision. If that happened for
	// each object and change, there would be 7.
	if repeated > 5 {
		t.Errorf("%d statuses are about a decision that has one", repeated)
	}
}

// foldEvery is the minimum time between two statuses of a placement, see package policies.
const foldEvery = 500 * time.Millisecond

// fleet is a hub that runs in the process of the test, with its members.
type fleet struct {
	*testing.T
	client.Client // client of the hub
	writes        *writes
}

// start starts a hub and its members, and waits until the members are ready.
func start(t *testing.T, members ...string) *fleet {
	t.Helper()
	scheme := runtime.NewScheme()
	must(t, errors.Join(clientgoscheme.AddToScheme(scheme), hubv1.AddToScheme(scheme)))
	config := serve(t, apiserver.Hub())
	c, err := client.New(config, client.Options{Scheme: scheme})
	must(t, err)
	f := &fleet{T: t, Client: c, writes: &writes{}}
	f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hubv1.SystemNamespace}})
	f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})

	process := rest.CopyConfig(config)
	process.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &counting{next, f.writes}
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- hub.Run(ctx, process, hub.Options{Namespace: hubv1.SystemNamespace, Manager: hub.ManagerOptions{HealthAddress: "0", MetricsAddress: "0"}})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("running the hub: %v", err)
		}
	})
	for _, name := range members {
		f.join(name, serve(t, &envtest.Environment{}))
	}
	return f
}

func serve(t *testing.T, server *envtest.Environment) *rest.Config {
	t.Helper()
	config, err := server.Start()
	must(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	config.QPS = -1
	return config
}

func (f *fleet) create(o client.Object) {
	f.Helper()
	must(f.T, f.Create(f.Context(), o))
}

// join creates a MemberCluster and waits until it is ready.
func (f *fleet) join(name string, cluster *rest.Config) {
	f.Helper()
	kubeconfig, err := clientcmd.Write(clientcmdapi.Config{
		CurrentContext: "c",
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "u"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: cluster.Host, CertificateAuthorityData: cluster.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: cluster.CertData, ClientKeyData: cluster.KeyData}},
	})
	must(f.T, err)
	f.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: name}, Data: map[string][]byte{"kubeconfig": kubeconfig}})
	m := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	m.Spec.AllowedNamespaces.From = hubv1.NamespacesFromAll
	m.Spec.Connection = hubv1.Connection{Type: hubv1.ConnectionDirect, Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: name}}}
	f.create(m)
	eventually(f.T, func() error {
		if err := f.Get(f.Context(), client.ObjectKeyFromObject(m), m); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(m.Status.Conditions, hubv1.ConditionReady) {
			return fmt.Errorf("the member is not ready: %+v", m.Status.Conditions)
		}
		return nil
	})
}

// rolledOut waits until the given number of objects have a revision on all clusters.
func (f *fleet) rolledOut(objects int, revision int64) {
	f.Helper()
	eventually(f.T, func() error {
		var bindings hubv1.ResourceBindingList
		complete := 0
		if err := f.List(f.Context(), &bindings, client.InNamespace("shop")); err != nil {
			return err
		}
		for _, b := range bindings.Items {
			if r := b.Spec.Rollout; r != nil && r.Revision == revision && r.Phase == hubv1.RolloutComplete {
				complete++
			}
		}
		if complete != objects {
			return fmt.Errorf("%d of %d bindings have revision %d", complete, len(bindings.Items), revision)
		}
		return nil
	})
}

func eventually(t *testing.T, check func() error) {
	t.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	}); err != nil {
		t.Fatal(last)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
