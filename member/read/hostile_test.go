package read_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/internal/informer"
	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/read"
)

// bounded is the transport of a member's client with the limits that package connect sets.
type bounded struct{ share *answer.Budget }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	return response, answer.Bound(response, b.share, false)
}

// hostile returns a Reader of a member that answers with the given handler.
func hostile(t *testing.T, answers http.HandlerFunc) *read.Reader {
	t.Helper()
	server := httptest.NewServer(answers)
	t.Cleanup(server.Close)
	client, err := informer.NewRESTClient(&rest.Config{Host: server.URL, Transport: bounded{answer.NewShare()}, QPS: -1})
	must(t, err)
	return read.New(client)
}

// repeats returns a handler that sends 100 MB, or less if the client closes the connection.
func repeats(contentType, head, unit string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, head)
		many := strings.Repeat(unit, 1+(64<<10)/len(unit))
		for sent := 0; sent < 100<<20; sent += len(many) {
			if _, err := io.WriteString(w, many); err != nil {
				return
			}
		}
	}
}

// heapAfter runs f and returns the growth of the live heap in bytes.
func heapAfter(f func()) int64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

func TestAnAnswerOf100MegabytesIsCutOff(t *testing.T) {
	pods := member.ListIntent{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: "pods", Limit: 500}
	whole := pods
	whole.Whole = true
	const json = "application/json"
	for name, tc := range map[string]struct {
		answers http.HandlerFunc
		ask     func(context.Context, *read.Reader) error
	}{
		"a table": {repeats(json, `{"kind":"Table","rows":[`, `{"cells":["a"]},`), func(ctx context.Context, r *read.Reader) error {
			_, err := r.List(ctx, pods)
			return err
		}},
		"one long cell": {repeats(json, `{"kind":"Table","rows":[{"cells":["`, "long"), func(ctx context.Context, r *read.Reader) error {
			_, err := r.List(ctx, pods)
			return err
		}},
		"objects": {repeats(json, `{"items":[`, `{"metadata":{"name":"a"}},`), func(ctx context.Context, r *read.Reader) error {
			_, err := r.List(ctx, whole)
			return err
		}},
		"events": {repeats(json, `{"items":[`, `{"metadata":{"name":"a"}},`), func(ctx context.Context, r *read.Reader) error {
			_, err := r.Events(ctx, "shop", nil)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := hostile(t, tc.answers)
			grown := heapAfter(func() {
				if err := tc.ask(t.Context(), r); !answer.IsTooLarge(err) {
					t.Errorf("got %v", err)
				}
			})
			if grown > 32<<20 {
				t.Errorf("the heap has grown by %d bytes", grown)
			}
		})
	}
}

// withPod returns a handler that answers a list of pods with the pod web-0, which has the given UID. All other requests
// go to the given handler.
func withPod(uid string, answers http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/pods") && r.URL.Query().Get("fieldSelector") == "metadata.name=web-0" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[{"metadata":{"name":"web-0","uid":%q}}]}`, uid)
			return
		}
		answers(w, r)
	}
}

func TestALogOfAnotherPodOfTheSameNameIsNotShown(t *testing.T) {
	for name, log := range map[string]http.HandlerFunc{
		"a log": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "secret\n") },
		"the state of a container": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"BadRequest","code":400,"message":"container secret waits"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := hostile(t, withPod("created-later", log))
			got, err := r.Log(t.Context(), member.LogIntent{Namespace: "shop", Pod: "web-0", UID: "seen", Container: "main", Bytes: 1000})
			if !apierrors.IsNotFound(err) || strings.Contains(err.Error(), "secret") || got.Text != "" {
				t.Errorf("got %q, %v", got.Text, err)
			}
			if _, err = r.Log(t.Context(), member.LogIntent{Namespace: "shop", Pod: "web-0", UID: "created-later", Container: "main", Bytes: 1000}); apierrors.IsNotFound(err) {
				t.Errorf("the pod that was seen: %v", err)
			}
		})
	}
}

func TestALogIsCutAtItsBound(t *testing.T) {
	r := hostile(t, withPod("seen", repeats("text/plain", "", "2026-01-01T00:00:00Z x\n")))
	log, err := r.Log(t.Context(), member.LogIntent{Namespace: "shop", Pod: "web-0", UID: "seen", Container: "main", Bytes: 1000})
	must(t, err)
	if len(log.Text) != 1000 || !log.Cut {
		t.Errorf("got %d bytes, cut %v", len(log.Text), log.Cut)
	}
}

func TestALogIsAskedForAsTheUserWants(t *testing.T) {
	asked := ""
	r := hostile(t, withPod("seen", func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Path + "?" + r.URL.Query().Encode()
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, "short \xff\n")
	}))
	since := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	in := member.LogIntent{Namespace: "shop", Pod: "web-0", UID: "seen", Container: "main", Lines: 20, Bytes: 1000}
	in.Since.Time = since
	log, err := r.Log(t.Context(), in)
	must(t, err)
	if log.Text != "short \uFFFD\n" || log.Cut {
		t.Errorf("got %+v", log)
	}
	const want = "/api/v1/namespaces/shop/pods/web-0/log?container=main&limitBytes=1000&sinceTime=2026-01-02T03%3A04%3A05Z&tailLines=20&timestamps=true"
	if asked != want {
		t.Errorf("asked for %s", asked)
	}
}

func TestTextsOfAHostileTableArePrintable(t *testing.T) {
	r := hostile(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"kind":"Table","columnDefinitions":[{"name":"N\u001b[2Jame"},{"name":"Big","priority":1}],"rows":[
			{"cells":["a\u0007",%q,"no column"],"object":{"metadata":{"name":"a\u001b"}}}, {"object":{"metadata":{"name":"b"}}}, {"cells":[null,{"x":1}]}]}`,
			strings.Repeat("x", 5000))
	})
	found, err := r.List(t.Context(), member.ListIntent{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: "pods", Limit: 3})
	must(t, err)
	if len(found.Rows) != 3 || len(found.Rows[0].Cells) != 2 || len(found.Rows[1].Cells) != 2 || len(found.Rows[0].Cells[1]) > 260 {
		t.Errorf("got %+v", found)
	}
	if text := fmt.Sprint(found); strings.ContainsAny(text, "\x1b\x07\n") {
		t.Errorf("got %q", text)
	}
}

func TestAMemberThatIgnoresTheLimitOrNeverEndsIsCut(t *testing.T) {
	row := `{"cells":["a"],"object":{"metadata":{"name":"a"}}}`
	asked := 0
	for name, tc := range map[string]struct {
		rows  string
		limit int
	}{
		"more rows than asked for":     {row + "," + row + "," + row, 2},
		"pages without rows, for ever": {"", 500},
	} {
		t.Run(name, func(t *testing.T) {
			asked = 0
			r := hostile(t, func(w http.ResponseWriter, _ *http.Request) {
				asked++
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprintf(w, `{"kind":"Table","metadata":{"continue":"x"},"columnDefinitions":[{"name":"Name"}],"rows":[%s]}`, tc.rows)
			})
			found, err := r.List(t.Context(), member.ListIntent{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: "pods", Limit: tc.limit})
			must(t, err)
			if len(found.Rows) > tc.limit || !found.More || asked > 20 {
				t.Errorf("got %d rows, more %v, by %d requests", len(found.Rows), found.More, asked)
			}
		})
	}
}

func TestAnAnswerOfAnotherKindIsRefused(t *testing.T) {
	r := hostile(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"PodList","items":[]}`)
	})
	_, err := r.List(t.Context(), member.ListIntent{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: "pods", Limit: 3})
	if err == nil || err.Error() != "the answer cannot be read: it is not a table" {
		t.Errorf("got %v", err)
	}
}

func TestObjectsThatWereNotAskedForAreLeftOut(t *testing.T) {
	const own, name, namespace = `{"name":"a","namespace":"shop"}`, `{"name":"b","namespace":"shop"}`, `{"name":"a","namespace":"bank"}`
	r := hostile(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(r.Header.Get("Accept"), "as=Table") {
			_, _ = fmt.Fprintf(w, `{"kind":"Table","rows":[{"object":{"metadata":%s}},{"object":{"metadata":%s}},{"object":{"metadata":%s}}]}`, name, namespace, own)
			return
		}
		_, _ = fmt.Fprintf(w, `{"items":[{"metadata":%s},{"metadata":%s},{"metadata":%s}]}`, name, namespace, own)
	})
	in := member.ListIntent{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: "pods", Namespace: "shop", Name: "a", Limit: 3}
	rows, err := r.List(t.Context(), in)
	must(t, err)
	in.Whole = true
	objects, err := r.List(t.Context(), in)
	must(t, err)
	if len(rows.Rows) != 1 || len(objects.Objects) != 1 {
		t.Errorf("got %+v %+v", rows, objects)
	}
}

func TestNoNameLeadsToAnotherPath(t *testing.T) {
	asked := ""
	r := hostile(t, func(_ http.ResponseWriter, r *http.Request) { asked = r.URL.Path })
	for _, name := range []string{"..", ".", "../../secrets/x", "a/b", "..%2f..%2fsecrets", "%2e%2e"} {
		in := member.ListIntent{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: "pods", Namespace: name, Limit: 3}
		_, ofList := r.List(t.Context(), in)
		_, ofEvents := r.Events(t.Context(), name, nil)
		_, ofLog := r.Log(t.Context(), member.LogIntent{Namespace: "shop", Pod: name, Bytes: 10})
		_, ofNamespace := r.Log(t.Context(), member.LogIntent{Namespace: name, Pod: "web-0", Bytes: 10})
		for _, err := range []error{ofList, ofEvents, ofLog, ofNamespace} {
			if err == nil || !strings.Contains(err.Error(), "invalid") || asked != "" {
				t.Errorf("%s: asked for %q: %v", name, asked, err)
			}
		}
	}
}
