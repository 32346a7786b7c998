package connect

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hanse-dev/hanse/internal/informer"
)

// flood answers every request for a path under /flood with data that does not end. A write that the client does not
// take fails after patience. taken has the number of bytes that the client has taken when a write fails, for each
// request.
func flood(t *testing.T, patience time.Duration, taken chan<- int64) (*line, string, *Cluster) {
	t.Helper()
	f := newFakeCluster(t)
	chunk := []byte(strings.Repeat("x", 4<<10))
	f.setRespond(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/flood") {
			serveCluster(w, r, "cluster-1", nil)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		control := http.NewResponseController(w)
		total := int64(0)
		for total < 64<<20 {
			_ = control.SetWriteDeadline(time.Now().Add(patience))
			n, err := w.Write(chunk)
			if err != nil {
				break
			}
			total += int64(n)
		}
		taken <- total
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

// unread sends a request and does not read the response.
func unread(ctx context.Context, t *testing.T, transport http.RoundTripper, url string) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	must(t, err)
	response, err := transport.RoundTrip(request)
	must(t, err)
	if response.ProtoMajor != 2 {
		t.Fatalf("the response came by %s", response.Proto)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
}

func TestAMemberCanSendLittleThatNobodyReads(t *testing.T) {
	const slack = 32 << 10 // buffers of the server
	for name, transport := range map[string]func(*line) http.RoundTripper{
		"for a write": (*line).requestTransport, "for a read": (*line).readTransport, "for a watch": (*line).watchTransport,
	} {
		for _, tc := range []struct {
			requests    int
			least, most int64
		}{{1, streamWindow / 2, streamWindow}, {20, connectionWindow / 2, connectionWindow}} {
			t.Run(name, func(t *testing.T) {
				taken := make(chan int64, tc.requests)
				l, server, _ := flood(t, time.Second, taken)
				for range tc.requests {
					unread(t.Context(), t, transport(l), server+"/flood?watch=true")
				}
				total := int64(0)
				for range tc.requests {
					total += <-taken
				}
				if total < tc.least || total > tc.most+int64(tc.requests)*slack {
					t.Errorf("%d requests: the hub took %d KiB, want %d KiB", tc.requests, total>>10, tc.most>>10)
				}
			})
		}
	}
}

func TestReadsThatNeverEndDelayNoWriteAndNoWatch(t *testing.T) {
	taken := make(chan int64, 100)
	l, server, c := flood(t, time.Minute, taken)
	for _, stalled := range []http.RoundTripper{c.Reads.Transport, c.Watches.Transport} { // a list by the client of watches
		for range 20 {
			unread(t.Context(), t, stalled, server+"/flood")
		}
	}
	for name, read := range map[string]func(context.Context) error{
		"a write": func(ctx context.Context) error {
			client, err := informer.NewClient(c.Requests)
			if err == nil {
				_, err = client.Resource(mapsOf.GroupVersion().WithResource("namespaces")).Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
			}
			return err
		},
		"a watch": func(ctx context.Context) error {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+watchKubeSystem, nil)
			if err != nil {
				return err
			}
			response, err := l.watchTransport().RoundTrip(request)
			if err != nil {
				return err
			}
			defer func() { _ = response.Body.Close() }()
			_, err = io.ReadAtLeast(response.Body, make([]byte, 1<<10), 1)
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
		if err := read(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}
