package connect

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/informer"
)

// maxHeap is the largest growth of the heap that one attack may cause, in bytes.
const maxHeap = 64 << 20

// bomb returns a handler whose compressed answer is small and unpacks to a large one: unit is repeated between head and
// tail.
func bomb(head, unit string, times int, tail string) http.HandlerFunc {
	pack := sync.OnceValue(func() []byte { // slow under the race detector
		var packed bytes.Buffer
		w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		_, _ = io.WriteString(w, head)
		many := strings.Repeat(unit, 1000)
		for range times / 1000 {
			_, _ = io.WriteString(w, many)
		}
		_, _ = io.WriteString(w, tail)
		_ = w.Close()
		return packed.Bytes()
	})
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(pack())
	}
}

// endless returns a handler that sends unit until the client closes the connection.
func endless(head, unit string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, head)
		many := strings.Repeat(unit, 1+(32<<10)/len(unit))
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, many); err != nil {
				return
			}
		}
	}
}

// says returns a handler that answers with the text. The text is formatted with the number of requests so far.
func says(format string) http.HandlerFunc {
	var asked atomic.Int64
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintf(w, format, asked.Add(1)) }
}

// heapGrowth returns the largest growth of the live heap while f ran, in bytes.
func heapGrowth(f func()) (peak int64) {
	live := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := live()
	ended := make(chan struct{})
	go func() { defer close(ended); f() }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return max(peak, live()-before)
		case <-tick.C:
			peak = max(peak, live()-before)
		}
	}
}

// connected starts a cluster on which the handler answers one path. It returns the HTTP transport to this cluster, the
// URL of its API server, and the Cluster.
func connected(t *testing.T, path string, h http.HandlerFunc) (*line, string, *Cluster) {
	t.Helper()
	f := newFakeCluster(t)
	f.setRespond(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path {
			serveCluster(w, r, "cluster-1", nil)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		h(w, r)
	})
	to, fault := parseKubeconfig(f.kubeconfig(t))
	if fault != nil {
		t.Fatal(fault)
	}
	s, err := openSession(to, nil, nil)
	must(t, err)
	t.Cleanup(s.pool.close)
	l := newLine(s)
	return l, to.Server, newCluster(l, to.Server, "cluster-1")
}

var (
	mapsOf = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	oneMap = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
)

// nodesOf reads the nodes, and servedOf the kinds of a group. listOf and getOf use the clients that the hub's
// controllers use. followOf watches a kind until the watch fails.
func nodesOf(ctx context.Context, l *line, server string, _ *Cluster) error {
	_, err := readNodes(ctx, l, server)
	return err
}

func servedOf(ctx context.Context, l *line, server string, _ *Cluster) error {
	_, err := readServed(ctx, l, server, []schema.GroupKind{{Kind: "ConfigMap"}}, nil)
	return err
}

func oneGroup(ctx context.Context, l *line, server string, _ *Cluster) error {
	_, err := readServed(ctx, l, server, []schema.GroupKind{{Group: "apps", Kind: "Deployment"}}, nil)
	return err
}

func listOf(ctx context.Context, _ *line, _ string, c *Cluster) error {
	client, err := informer.NewClient(c.Watches)
	if err != nil {
		return err
	}
	_, err = client.Resource(mapsOf).List(ctx, metav1.ListOptions{})
	return err
}

func getOf(ctx context.Context, _ *line, _ string, c *Cluster) error {
	client, err := informer.NewClient(c.Requests)
	if err != nil {
		return err
	}
	_, err = client.Resource(mapsOf).Namespace("default").Get(ctx, "web", metav1.GetOptions{})
	return err
}

func followOf(ctx context.Context, _ *line, _ string, c *Cluster) error {
	client, err := informer.NewClient(c.Watches)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	states := make(chan informer.State, 100)
	s := informer.New(informer.Options{
		Client:  client,
		Resolve: func(schema.GroupVersionKind) (schema.GroupVersionResource, error) { return mapsOf, nil },
		OnState: func(_ schema.GroupVersionKind, s informer.State) { states <- s },
	})
	s.Start(ctx, oneMap)
	for state := range states {
		if state.Reason != "" {
			return fmt.Errorf("%s: %s", state.Reason, state.Message)
		}
	}
	return nil
}

const configMaps = "/api/v1/configmaps"

var hostile = map[string]struct {
	path   string
	answer http.HandlerFunc
	read   func(context.Context, *line, string, *Cluster) error
	bound  string // the limit that the error must name
	silent bool   // the line does not report the answer as too large, because a consumer sets this limit
}{
	"three KiB that are a million empty nodes": {
		path: "/api/v1/nodes", answer: bomb(`{"kind":"NodeList","items":[{}`, ",{}", 1_000_000, "]}"), read: nodesOf, bound: "50000 objects",
	},
	"nodes without end": {
		path: "/api/v1/nodes", answer: endless(`{"kind":"NodeList","items":[{}`, `,{"metadata":{"labels":{"a":"b"}}}`), read: nodesOf, bound: "50000 objects",
	},
	"one node without end": {
		path: "/api/v1/nodes", answer: endless(`{"kind":"NodeList","items":[{"metadata":{"labels":{"a":"b"`, `,"c":"d"`), read: nodesOf, bound: "2 MiB",
	},
	"pages of nodes for ever": {
		path: "/api/v1/nodes", answer: says(`{"kind":"NodeList","metadata":{"continue":"from-%d"},"items":[{}]}`), read: nodesOf, bound: "100 pages",
	},
	"a place to continue at that is a MiB long": {
		path: "/api/v1/nodes", answer: bomb(`{"metadata":{"continue":"`, "x", 1<<20, `"},"items":[]}`), read: nodesOf, bound: "8 KiB",
	},
	"fields beside the nodes without end": {
		path: "/api/v1/nodes", answer: endless(`{"kind":"NodeList","other":[{}`, ",{}"), read: nodesOf, bound: "2 MiB",
	},
	"a million kinds of a group and version": {
		path: "/api/v1", answer: bomb(`{"kind":"APIResourceList","resources":[{}`, ",{}", 1_000_000, "]}"), read: servedOf, bound: "10000 objects",
	},
	"a kind with verbs without end": {
		path: "/api/v1", answer: endless(`{"kind":"APIResourceList","resources":[{"verbs":[""`, `,""`), read: servedOf, bound: "64 KiB",
	},
	"a million versions of a group": {
		path: "/apis/apps", answer: bomb(`{"kind":"APIGroup","versions":[{}`, ",{}", 1_000_000, "]}"), read: oneGroup, bound: "1000 objects",
	},
	"a list of a million empty objects": {
		path: configMaps, answer: bomb(`{"kind":"ConfigMapList","apiVersion":"v1","items":[{}`, ",{}", 1_000_000, "]}"), read: listOf, bound: "262144 JSON values",
	},
	"a list without end": {
		path: configMaps, answer: endless(`{"kind":"ConfigMapList","apiVersion":"v1","items":[{"":0}`, `,{"":0}`), read: listOf, bound: "262144 JSON values",
	},
	"a list that is one long text": {
		path: configMaps, answer: bomb(`{"kind":"ConfigMapList","apiVersion":"v1","items":[{"data":{"a":"`, "xxxxxxxxxx", 2_000_000, `"}}]}`), read: listOf, bound: "16 MiB",
	},
	"a list that is refused with an endless text": {
		path: configMaps, read: listOf, bound: "16 MiB",
		answer: func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			endless(`{"kind":"Status","apiVersion":"v1","message":"`, "no")(w, r)
		},
	},
	"a list that is packed and has no end": {
		path: configMaps, read: listOf, bound: "16 MiB",
		answer: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			var empty bytes.Buffer
			_ = gzip.NewWriter(&empty).Close()
			endless("", empty.String())(w, r)
		},
	},
	"one object without end": {
		path: "/api/v1/namespaces/default/configmaps/web", answer: endless(`{"kind":"ConfigMap","apiVersion":"v1","data":{"a":"b"`, `,"c":"d"`), read: getOf,
		bound: "262144 JSON values",
	},
	"one object of empty maps": {
		path: "/api/v1/namespaces/default/configmaps/web", answer: bomb(`{"kind":"ConfigMap","apiVersion":"v1","x":[{"":0}`, `,{"":0}`, 1_000_000, `]}`), read: getOf,
		bound: "262144 JSON values",
	},
	"an event without end": {
		path: configMaps, answer: watched(endless(`{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"web"},"data":{"a":"`, "xxxxxxxx")), read: followOf,
		bound: "4 MiB",
	},
	"an event of empty maps": {
		path: configMaps, answer: watched(endless(`{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"web"},"x":[{"":0}`, `,{"":0}`)), read: followOf,
		bound: "262144 JSON values",
	},
	"an event over lines without end": {
		path: configMaps, answer: watched(endless("{\n", "\"a\":\n1,\n")), read: followOf, bound: "262144 JSON values",
	},
	"pages of objects for ever": {
		path: configMaps, answer: says(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1","continue":"%d"},"items":[]}`), read: followOf,
		bound: "2000 pages", silent: true,
	},
}

// watched answers a list with an empty list, and a watch with h.
func watched(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("watch") {
			h(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
	}
}

func TestAHostileAnswerCostsLittleMemoryAndNamesItsBound(t *testing.T) {
	for name, tc := range hostile {
		t.Run(name, func(t *testing.T) { // not in parallel, because the heap is that of the whole process
			l, server, c := connected(t, tc.path, tc.answer)
			var err error
			if grown := heapGrowth(func() { err = tc.read(t.Context(), l, server, c) }); grown > maxHeap {
				t.Errorf("the heap grew by %d MiB, at most %d are allowed", grown>>20, maxHeap>>20)
			}
			if err == nil || !strings.Contains(err.Error(), tc.bound) {
				t.Errorf("the error does not name the bound %q: %v", tc.bound, err)
			}
			if !tc.silent && !strings.Contains(l.lastTooLarge(), tc.bound) {
				t.Errorf("of the cluster it says %q", l.lastTooLarge())
			}
		})
	}
}

func TestADefinitionOfThreeMebibytesIsRead(t *testing.T) {
	properties := bomb(`{"kind":"ConfigMap","apiVersion":"v1","x":[{"type":"string a"}`, `,{"type":"string or number"}`, 108_000, `]}`)
	l, server, c := connected(t, "/api/v1/namespaces/default/configmaps/web", properties)
	if err := getOf(t.Context(), l, server, c); err != nil {
		t.Error(err)
	}
}

func TestAnAnswerInAnotherFormatIsRefused(t *testing.T) {
	for _, format := range []string{"application/vnd.kubernetes.protobuf", "application/yaml", "application/cbor"} {
		_, _, c := connected(t, configMaps, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", format)
			_, _ = io.WriteString(w, "a: &a [*a]")
		})
		if err := listOf(t.Context(), nil, "", c); err == nil || !strings.Contains(err.Error(), format) {
			t.Errorf("%s: %v", format, err)
		}
	}
}

func TestAQuantityThatIsSlowToParseIsInvalid(t *testing.T) {
	sum := newNodeSum()
	ended := make(chan error, 1)
	go func() {
		ended <- sum.read([]byte(`{"status":{"capacity":{"cpu":"4","memory":"1e2147483647","pods":"1e-2147483648","a.example.com/b":3,"c.example.com/d":"-1"}}}`))
	}()
	select {
	case err := <-ended:
		must(t, err)
	case <-time.After(5 * time.Second):
		t.Fatal("it takes for ever")
	}
	if f := sum.facts(); f.Capacity.Cpu().String() != "4" || !f.Capacity.Memory().IsZero() || !f.Capacity.Pods().IsZero() {
		t.Errorf("the capacity is %v", f.Capacity)
	}
}

func TestAClusterThatAnswersTooMuchIsNamedUntilItNoLongerDoes(t *testing.T) {
	f := newFakeCluster(t)
	f.setRespond(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/nodes" {
			hostile["three KiB that are a million empty nodes"].answer(w, r)
			return
		}
		serveCluster(w, r, "cluster-1", nil)
	})
	p := New(quick)
	start(t, p)
	p.Ensure("eu", by(f.kubeconfig(t)), "")
	eventually(t, "what was too large", func() string {
		if s, _ := p.State("eu"); strings.Contains(s.TooLarge, "GET /api/v1/nodes") && strings.Contains(s.TooLarge, "50000 objects") {
			return ""
		}
		return "is not said"
	})
	reaches(t, p, "eu", metav1.ConditionTrue, hubv1.ReasonConnected)
	f.setRespond(nil)
	p.link("eu").currentEngagement().line.forget(t)
	eventually(t, "the end of it", func() string {
		s, _ := p.State("eu")
		return s.TooLarge
	})
}

// forget moves the time of the last answer that was too large so far back that the hub no longer reports this answer.
func (l *line) forget(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.largeAt = time.Now().Add(-largeFor - time.Second)
}

func TestOneHostileClusterHoldsUpNoOther(t *testing.T) {
	// The answers never end, and each is as large as the limit allows.
	unfinished := []byte(`{"kind":"ConfigMapList","apiVersion":"v1","items":[{"data":{"a":"` + strings.Repeat("x", 15<<20))
	_, _, slow := connected(t, configMaps, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(unfinished)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 30 {
		go func() { _ = listOf(ctx, nil, "", slow) }()
	}
	_, _, other := connected(t, configMaps, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"kind":"ConfigMapList","apiVersion":"v1","items":[{"metadata":{"name":"a"},"data":{"a":"`+strings.Repeat("x", 1<<20)+`"}}]}`)
	})
	for range 10 {
		// If earlier answers still used up the memory budget of the cluster, this list would wait for up to 30 s and fail.
		must(t, listOf(t.Context(), nil, "", other))
	}
}
