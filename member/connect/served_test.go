package connect

import (
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// discovered is the handler of a fake cluster: it maps a path to the answer, or to the HTTP status code of an error.
type discovered map[string]any

func (d discovered) serve(w http.ResponseWriter, req *http.Request) bool {
	switch answer := d[req.URL.Path].(type) {
	case nil:
		return false
	case int:
		sendStatus(w, answer, "no")
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}
	return true
}

func groupOf(versions ...string) metav1.APIGroup {
	var g metav1.APIGroup
	for _, v := range versions {
		g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{Version: v})
	}
	return g
}

func kindsOf(kinds ...string) metav1.APIResourceList {
	var list metav1.APIResourceList
	for _, k := range kinds {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: "x" + k, Kind: k}, metav1.APIResource{Name: "x" + k + "/scale", Kind: "Scale"})
	}
	return list
}

func TestWhatAClusterServes(t *testing.T) {
	prometheus, scale := schema.GroupKind{Group: "monitoring", Kind: "Prometheus"}, schema.GroupKind{Group: "monitoring", Kind: "Scale"}
	configMap := schema.GroupKind{Kind: "ConfigMap"}
	kinds := []schema.GroupKind{prometheus, scale, configMap}
	all := discovered{
		"/api/v1": kindsOf("ConfigMap", "Secret"), "/apis/monitoring": groupOf("v1", "v1beta1"),
		"/apis/monitoring/v1": kindsOf("Prometheus"), "/apis/monitoring/v1beta1": kindsOf("Prometheus"),
	}
	but := func(path string, answer any) discovered {
		out := discovered{}
		for p, a := range all {
			out[p] = a
		}
		out[path] = answer
		return out
	}
	tests := map[string]struct {
		answers discovered
		known   map[schema.GroupKind][]string
		want    map[schema.GroupKind][]string
		fails   bool
	}{
		"versions come as the cluster prefers them, and subresources are no kinds": {
			answers: all, want: map[schema.GroupKind][]string{prometheus: {"v1", "v1beta1"}, scale: nil, configMap: {"v1"}},
		},
		"a group that is not there": {
			answers: but("/apis/monitoring", http.StatusNotFound), want: map[schema.GroupKind][]string{prometheus: nil, scale: nil, configMap: {"v1"}},
		},
		"a version that went meanwhile": {
			answers: but("/apis/monitoring/v1", http.StatusNotFound), want: map[schema.GroupKind][]string{prometheus: {"v1beta1"}, scale: nil, configMap: {"v1"}},
		},
		"a group that cannot be read stays what it was": {
			answers: but("/apis/monitoring/v1", http.StatusServiceUnavailable), fails: true,
			known: map[schema.GroupKind][]string{prometheus: {"v1"}},
			want:  map[schema.GroupKind][]string{prometheus: {"v1"}, configMap: {"v1"}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := newFakeCluster(t)
			cluster.setRespond(func(w http.ResponseWriter, req *http.Request) {
				if !tc.answers.serve(w, req) {
					serveCluster(w, req, "cluster-1", nil)
				}
			})
			to, fault := parseKubeconfig(cluster.kubeconfig(t))
			if fault != nil {
				t.Fatal(fault)
			}
			s, err := openSession(to, nil, nil)
			must(t, err)
			t.Cleanup(s.pool.close)
			got, err := readServed(t.Context(), newLine(s), to.Server, kinds, tc.known)
			if (err != nil) != tc.fails {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("served (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAClusterIsAskedAgainWhenSomebodySaysLook(t *testing.T) {
	cluster := newFakeCluster(t)
	var mu sync.Mutex
	answers := discovered{"/apis/monitoring": http.StatusNotFound}
	cluster.setRespond(func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		served := answers.serve(w, req)
		mu.Unlock()
		if !served {
			serveCluster(w, req, "cluster-1", nil)
		}
	})
	prometheus := schema.GroupKind{Group: "monitoring", Kind: "Prometheus"}
	p := New(quick)
	p.LookFor(func() []schema.GroupKind { return []schema.GroupKind{prometheus} })
	start(t, p)
	p.Ensure("eu", by(cluster.kubeconfig(t)), "")
	serves := func(want string) func() string {
		return func() string {
			state, _ := p.State("eu")
			versions, known := state.Facts.Served[prometheus]
			if now := join(versions, known); now != want {
				return "the cluster serves " + now
			}
			return ""
		}
	}
	eventually(t, "the kind is known not to be served", serves("nothing"))
	mu.Lock()
	answers["/apis/monitoring"], answers["/apis/monitoring/v1"] = groupOf("v1"), kindsOf("Prometheus")
	mu.Unlock()
	p.LookAgain("eu")
	eventually(t, "the kind is served", serves("v1"))
}

// If a link becomes ready before the wanted kinds are known, its state contains no statement about kinds.
func TestAClusterIsNotAskedForNoKinds(t *testing.T) {
	cluster := newFakeCluster(t)
	answers := discovered{"/apis/monitoring": groupOf("v1"), "/apis/monitoring/v1": kindsOf("Prometheus")}
	cluster.setRespond(func(w http.ResponseWriter, req *http.Request) {
		if !answers.serve(w, req) {
			serveCluster(w, req, "cluster-1", nil)
		}
	})
	prometheus := schema.GroupKind{Group: "monitoring", Kind: "Prometheus"}
	var kinds atomic.Pointer[[]schema.GroupKind]
	p := New(quick)
	p.LookFor(func() []schema.GroupKind {
		if known := kinds.Load(); known != nil {
			return *known
		}
		return nil
	})
	var without atomic.Bool
	p.OnChange(func(name string) {
		state, _ := p.State(name)
		if _, ok := state.Facts.Served[prometheus]; state.Facts.Served != nil && !ok {
			without.Store(true)
		}
	})
	start(t, p)
	p.Ensure("eu", by(cluster.kubeconfig(t)), "")
	eventually(t, "the cluster's version is known", func() string {
		state, _ := p.State("eu")
		if state.Facts.Kubernetes == "" {
			return "it is not"
		}
		return ""
	})
	kinds.Store(&[]schema.GroupKind{prometheus})
	p.Look()
	eventually(t, "the kind is served", func() string {
		state, _ := p.State("eu")
		return cmp.Diff([]string{"v1"}, state.Facts.Served[prometheus])
	})
	if without.Load() {
		t.Error("the cluster was said to serve nothing before it was known what is wanted")
	}
}

func join(versions []string, known bool) string {
	switch {
	case !known:
		return "who knows what"
	case len(versions) == 0:
		return "nothing"
	}
	return versions[0]
}
