package cache_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/internal/informer"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/cache"
	"github.com/hanse-dev/hanse/member/health"
)

// observed starts a server with the handler, and an observer that watches widgets on it.
func observed(t *testing.T, handler http.HandlerFunc, edit func(*cache.Options)) *cache.Observer {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		handler(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	client, err := informer.NewClient(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	options := cache.Options{
		Cluster: "m1", Client: client, HubUID: hubUID, Handler: func(string, member.Observation, bool, bool) {},
		Resolve: func(schema.GroupVersionKind) (schema.GroupVersionResource, error) { return widgets, nil },
	}
	edit(&options)
	ob := cache.New(t.Context(), options)
	ob.SetGather(time.Millisecond)
	ob.Observe(widget, bindingA)
	return ob
}

func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

// copied returns the JSON of a copy that the hub has written.
func copied(name string) string {
	text, _ := json.Marshal(map[string]any{
		"apiVersion": "shop.example.com/v1", "kind": "Widget",
		"metadata": map[string]any{
			"name": name, "namespace": "shop", "uid": "uid-" + name, "resourceVersion": "5",
			"annotations": map[string]any{hubv1.OwnerAnnotation: "shop.example.com/Widget/shop/" + name + "/template-1", hubv1.DigestAnnotation: "d1"},
			"managedFields": []any{map[string]any{
				"manager": hubv1.FieldManager, "operation": "Apply", "apiVersion": "shop.example.com/v1", "fieldsType": "FieldsV1",
				"fieldsV1": map[string]any{"f:spec": map[string]any{"f:size": map[string]any{}}},
			}},
		},
		"spec": map[string]any{"size": 3}, "status": map[string]any{"replicas": 3},
	})
	return string(text)
}

func list(next string, items ...string) string {
	return fmt.Sprintf(`{"apiVersion":"shop.example.com/v1","kind":"WidgetList","metadata":{"resourceVersion":"9","continue":%q},"items":[%s]}`, next, strings.Join(items, ","))
}

// serveCopy answers reads of the copy "web", and watches without events.
func serveCopy(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Query().Has("watch"):
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case strings.HasSuffix(r.URL.Path, "/web"):
		_, _ = io.WriteString(w, copied("web"))
	default:
		_, _ = io.WriteString(w, list("", copied("web")))
	}
}

func TestOfAnUnclaimedObjectNamesAndMarksAreKeptUntilABindingClaimsIt(t *testing.T) {
	web := hubv1.ObjectIdentity{Group: "shop.example.com", Kind: "Widget", Namespace: "shop", Name: "web"}
	for name, claim := range map[string]func(*cache.Observer, *atomic.Bool){
		"the binding comes later": func(ob *cache.Observer, claimed *atomic.Bool) {
			claimed.Store(true)
			ob.Reread(web)
		},
		"the binding comes while the object is read": func(*cache.Observer, *atomic.Bool) {},
	} {
		t.Run(name, func(t *testing.T) {
			var claimed, during atomic.Bool
			during.Store(strings.Contains(name, "while"))
			ob := observed(t, serveCopy, func(o *cache.Options) {
				o.Conventions = func(schema.GroupVersionKind) health.Conventions { return health.Conventions{HasStatus: true} }
				o.Claimed = func(id hubv1.ObjectIdentity) bool {
					if id != web {
						t.Errorf("asked for %v", id)
					}
					// If the binding comes during the read, the first question comes before the binding.
					return claimed.Load() || during.Load() && claimed.Swap(true)
				}
			})
			observation := func() member.Observation {
				o, _, _ := ob.Observation(widget, types.NamespacedName{Namespace: "shop", Name: "web"})
				return o
			}
			await(t, "the object", func() bool { return observation().UID != "" })
			if o := observation(); !during.Load() && (o.Observed != nil || o.Health != "" || o.Owner != web || o.Digest != "d1" || o.Hash == "") {
				t.Errorf("kept of the unclaimed object: %+v", o)
			}
			claim(ob, &claimed)
			await(t, "the whole observation", func() bool { return string(observation().Observed) == `{"replicas":3}` && observation().Health != "" })
		})
	}
}

func TestTheObjectsOfAllKindsOfAMemberFitIntoItsBudgetOrAreReported(t *testing.T) {
	var reported atomic.Pointer[string]
	large := strings.Repeat("m", 250)
	page := func(first int) []string {
		var items []string
		for i := range 500 {
			items = append(items, fmt.Sprintf(`{"metadata":{"name":"w-%d-%s","namespace":%q,"uid":"%d-%s"},"status":{"conditions":[{"type":"Ready","status":"False","reason":"R","message":"%d-%s"}]}}`,
				first+i, large[:240], large[:60], first+i, large[:100], first+i, large))
		}
		return items
	}
	ob := observed(t, func(w http.ResponseWriter, r *http.Request) {
		first := 0
		_, _ = fmt.Sscan(r.URL.Query().Get("continue"), &first)
		_, _ = io.WriteString(w, list(fmt.Sprint(first+500), page(first)...))
	}, func(o *cache.Options) {
		o.Retained = answer.NewRetained(func(what string, err error) {
			text := what + ": " + err.Error()
			reported.Store(&text)
		})
	})
	await(t, "the report", func() bool { return reported.Load() != nil })
	if diff := cmp.Diff("the objects of Widget: the data that the hub keeps of the cluster is larger than 64 MiB, which is 1/16 of GOMEMLIMIT", *reported.Load()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if state, _ := ob.State(widget); state.Reason != hubv1.ReasonAnswerTooLarge {
		t.Errorf("state %+v", state)
	}
}
