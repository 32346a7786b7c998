package tunnel

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/hanse-dev/hanse/member/handshake"
)

const maxJoinBody = 4 << 10

// Applicant is an agent that asks for its approval. The handshake proves that it has the key. It reports ClusterID,
// Kubernetes and Version itself.
type Applicant struct {
	Cluster, Key, Address          string
	ClusterID, Kubernetes, Version string
}

// Errors of Apply.
var (
	// ErrTokenUnknown means that there is no such token for the cluster.
	ErrTokenUnknown = errors.New("TokenUnknown: the token is not the one of hansectl join NAME --tunnel for this name, or it was used up")
	// ErrTokenExpired means that no key has used the token in time.
	ErrTokenExpired = errors.New("TokenExpired: run hansectl join NAME --tunnel again, and give the agent the new token")
	// ErrTokenUsed means that another key has used the token before.
	ErrTokenUsed = errors.New("TokenUsed: an agent with another key has used this token before. If that is not an agent of yours, the token was stolen: run hansectl join NAME --tunnel again")
)

// join answers the request of an agent for its approval.
func (s *Server) join(w http.ResponseWriter, r *http.Request, name, key string) {
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	known := s.members[name] != nil
	s.mu.Unlock()
	if !bearer || !known || s.Apply == nil {
		http.Error(w, ErrTokenUnknown.Error(), http.StatusUnauthorized)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxJoinBody))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		http.Error(w, "the request is too large", http.StatusRequestEntityTooLarge)
		return
	}
	var facts handshake.Facts
	if err != nil || json.Unmarshal(body, &facts) != nil {
		http.Error(w, "the request is not one of an agent", http.StatusBadRequest)
		return
	}
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		address = r.RemoteAddr
	}
	err = s.Apply(r.Context(), token, Applicant{
		Cluster: name, Key: key, Address: address, ClusterID: facts.ClusterID, Kubernetes: facts.Kubernetes, Version: facts.Version,
	})
	switch {
	case err == nil:
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "waiting for hansectl approve "+name)
	case errors.Is(err, ErrTokenUsed):
		http.Error(w, err.Error(), http.StatusConflict)
	case errors.Is(err, ErrTokenUnknown), errors.Is(err, ErrTokenExpired):
		http.Error(w, err.Error(), http.StatusUnauthorized)
	default:
		s.options.Logger.Error(err, "Reading the token of an agent", "cluster", name)
		http.Error(w, "the hub cannot check the token now", http.StatusServiceUnavailable)
	}
}

// Apply is a function that records an applicant with a token, so that a user can approve its key.
type Apply func(ctx context.Context, token string, a Applicant) error
