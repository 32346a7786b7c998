package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/test/apiserver"
)

// TestMembersAreStartedAndStopped repeatedly joins and removes one member while objects change on the hub. Afterwards
// it counts the goroutines and the memory of the hub process.
func TestMembersAreStartedAndStopped(t *testing.T) {
	apiserver.Needed(t)
	const warmUp, objects = 30, 3
	rounds := 100
	if os.Getenv("HANSE_LONG") != "" {
		rounds = 300
	}
	ctrl.SetLogger(logr.Discard())
	w := startHub(t)
	for i := range objects {
		w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("cm-", i)}, Data: map[string]string{"round": "0"}})
	}
	w.create(&hubv1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "all"},
		Spec: hubv1.PlacementSpec{
			ResourceSelectors: []hubv1.ResourceSelector{{Kind: "ConfigMap"}},
			Clusters:          hubv1.ClusterSelection{LabelSelector: &metav1.LabelSelector{}},
			// A leaving member keeps its copies, without the hub's labels. When the member joins again, the hub adopts these
			// copies.
			Apply: hubv1.ApplyPolicy{Adoption: hubv1.AdoptionAlways},
		},
	})
	goroutines, heap, heapAfter := 0, uint64(0), uint64(0)
	for round := range rounds {
		if round == warmUp {
			goroutines, heap = settled(t), inUse()
		}
		w.join()
		patch, err := json.Marshal(map[string]any{"data": map[string]string{"round": fmt.Sprint(round)}})
		must(t, err)
		for i := range objects { // the join may still be going on
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("cm-", i)}}
			must(t, w.hub.Patch(t.Context(), cm, client.RawPatch(types.MergePatchType, patch)))
		}
		if round%60 == 59 {
			w.arrives(objects, fmt.Sprint(round))
			w.leave()
		} else {
			w.vanish()
		}
	}
	w.join()
	w.arrives(objects, fmt.Sprint(rounds-1))
	w.leave()
	after := settled(t)
	if after > goroutines+15 { // the number of open connections varies
		var stacks [1 << 20]byte
		t.Errorf("goroutines have grown from %d to %d:\n%s", goroutines, after, stacks[:goruntime.Stack(stacks[:], true)])
	}
	// net/http keeps a closed connection in memory until its idle timeout.
	eventually(t, 2*time.Minute, func() error {
		if heapAfter = inUse(); heapAfter > heap+heap/10 {
			return fmt.Errorf("the heap has grown from %d to %d KiB", heap>>10, heapAfter>>10)
		}
		return nil
	})
	t.Logf("goroutines %d before and %d after, heap %d KiB before and %d KiB after %d joins", goroutines, after, heap>>10, heapAfter>>10, rounds-warmUp)
}

// inUse returns the size of the heap after a garbage collection, in bytes.
func inUse() uint64 {
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.HeapAlloc
}

// settled waits until the number of goroutines no longer falls, and returns this number.
func settled(t *testing.T) (goroutines int) {
	t.Helper()
	fewest, same := goruntime.NumGoroutine(), 0
	eventually(t, time.Minute, func() error {
		goruntime.GC()
		now := goruntime.NumGoroutine()
		if now < fewest {
			fewest, same = now, 0
		}
		if same++; same < 20 {
			return fmt.Errorf("%d goroutines", now)
		}
		return nil
	})
	return fewest
}

func TestAHubThatIsAskedToEndBeforeItsAPIServerAnswersEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	config := &rest.Config{Host: "https://hub.example", Dial: func(context.Context, string, string) (net.Conn, error) {
		cancel()
		return nil, errors.New("refused by the test")
	}}
	if err := Run(ctx, config, Options{}); err != nil || ctx.Err() == nil {
		t.Errorf("%v, want a plain end", err)
	}
}

// world is a hub process in the test process, and a cluster that may become its member.
type world struct {
	*testing.T
	hub, member client.Client
}

func startHub(t *testing.T, edits ...func(*Options)) *world {
	t.Helper()
	hub := serve(t, apiserver.Hub())
	cluster := serve(t, &envtest.Environment{})
	scheme := runtime.NewScheme()
	must(t, errors.Join(clientgoscheme.AddToScheme(scheme), hubv1.AddToScheme(scheme)))
	w := &world{T: t}
	var err error
	w.hub, err = client.New(hub, client.Options{Scheme: scheme})
	must(t, err)
	w.member, err = client.New(cluster, client.Options{Scheme: scheme})
	must(t, err)
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: hubv1.SystemNamespace}})
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	kubeconfig, err := clientcmd.Write(clientcmdapi.Config{
		CurrentContext: "c",
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "u"}},
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: cluster.Host, CertificateAuthorityData: cluster.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: cluster.CertData, ClientKeyData: cluster.KeyData}},
	})
	must(t, err)
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hubv1.SystemNamespace, Name: "eu"}, Data: map[string][]byte{"kubeconfig": kubeconfig}})

	options := Options{Namespace: hubv1.SystemNamespace, Manager: ManagerOptions{HealthAddress: "0", MetricsAddress: "0"}}
	for _, edit := range edits {
		edit(&options)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, hub, options) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("running the hub: %v", err)
		}
	})
	return w
}

func serve(t *testing.T, server *envtest.Environment) *rest.Config {
	t.Helper()
	config, err := server.Start()
	must(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	config.QPS = -1
	return config
}

func (w *world) create(o client.Object) {
	w.Helper()
	must(w.T, w.hub.Create(w.Context(), o))
}

// join creates the MemberCluster and waits until it is Ready.
func (w *world) join() {
	w.Helper()
	c := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}
	c.Spec.AllowedNamespaces.From = hubv1.NamespacesFromAll
	c.Spec.Connection = hubv1.Connection{Type: hubv1.ConnectionDirect, Direct: &hubv1.DirectConnection{KubeconfigSecretRef: hubv1.SecretKeyRef{Name: "eu"}}}
	w.create(c)
	eventually(w.T, 30*time.Second, func() error {
		if err := w.hub.Get(w.Context(), client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(c.Status.Conditions, hubv1.ConditionReady) {
			return fmt.Errorf("the member is not ready: %+v", c.Status.Conditions)
		}
		return nil
	})
}

// leave deletes the MemberCluster and waits until the API server has removed it.
func (w *world) leave() {
	w.Helper()
	c := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}
	must(w.T, w.hub.Delete(w.Context(), c))
	eventually(w.T, 30*time.Second, func() error {
		err := w.hub.Get(w.Context(), client.ObjectKeyFromObject(c), c)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(fmt.Errorf("the member is still there: %+v", c.Status.Conditions), err)
	})
}

// vanish deletes the MemberCluster without waiting for withdrawals: the copies on the member stay.
func (w *world) vanish() {
	w.Helper()
	c := &hubv1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}
	must(w.T, w.hub.Delete(w.Context(), c))
	must(w.T, client.IgnoreNotFound(w.hub.Patch(w.Context(), c, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))))
	eventually(w.T, 30*time.Second, func() error {
		err := w.hub.Get(w.Context(), client.ObjectKeyFromObject(c), c)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(fmt.Errorf("the MemberCluster is still there: %+v", c.Finalizers), err)
	})
}

// arrives waits until the member has all objects with the content of a round.
func (w *world) arrives(objects int, round string) {
	w.Helper()
	eventually(w.T, 30*time.Second, func() error {
		for i := range objects {
			var cm corev1.ConfigMap
			if err := w.member.Get(w.Context(), types.NamespacedName{Namespace: "shop", Name: fmt.Sprint("cm-", i)}, &cm); err != nil {
				return err
			}
			if cm.Data["round"] != round {
				return fmt.Errorf("%s is of round %s, want %s", cm.Name, cm.Data["round"], round)
			}
		}
		return nil
	})
}

func eventually(t *testing.T, within time.Duration, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("after %s: %v", within, err)
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
