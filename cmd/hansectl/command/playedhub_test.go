package command

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/views"
	"github.com/hanse-dev/hanse/view/wire"
)

// playedHub acts as the hub beside its API server: it answers requests about members.
type playedHub struct {
	*testing.T
	url string
	// answer returns the answer to a request. It gets the cluster, the type of the request, and its body. An error is a
	// refusal.
	answer func(cluster, what string, body []byte) (any, error)

	mu    sync.Mutex
	asked []string // each has the cluster and the requested view
}

// newPlayedHub starts a playedHub. The namespace hanse-system must exist.
func newPlayedHub(t *testing.T, answer func(cluster, what string, body []byte) (any, error)) *playedHub {
	t.Helper()
	h := &playedHub{T: t, answer: answer}
	server := httptest.NewTLSServer(h)
	t.Cleanup(server.Close)
	sum := sha256.Sum256(server.Certificate().Raw)
	apply(t, onHub, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: hubv1.SystemNamespace, Name: "hanse-replica-played",
		Annotations: map[string]string{views.CertificateAnnotation: hex.EncodeToString(sum[:])},
	}})
	h.url = server.URL
	return h
}

// ServeHTTP implements http.Handler.
func (h *playedHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	steps := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(steps) == 1 { // a request that names no cluster
		steps = []string{"", "", steps[0]}
	}
	var body json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(steps) != 3 || r.Header.Get(wire.TokenHeader) == "" {
		h.Errorf("got %s %v: %v", r.URL, r.Header, err)
	}
	h.mu.Lock()
	h.asked = append(h.asked, steps[1]+" "+steps[2])
	answer, err := h.answer(steps[1], steps[2], body)
	h.mu.Unlock()
	if err != nil {
		status := metav1.Status{Code: http.StatusServiceUnavailable, Message: err.Error()}
		var own apierrors.APIStatus
		if errors.As(err, &own) {
			status = own.Status()
		}
		status.Kind = "Status"
		w.WriteHeader(int(status.Code))
		answer = status
	}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		h.Error(err)
	}
}

// hansectl runs a command on the hub.
func (h *playedHub) hansectl(args ...string) (string, error) {
	h.Helper()
	return hansectl(h.T, append(args, "--hub-endpoint", h.url)...)
}

// took returns the requests since its last call.
func (h *playedHub) took() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := fmt.Sprint(h.asked)
	h.asked = nil
	return out
}
