package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/member/handshake"
)

// pendingPause is the pause between two attempts of an agent that waits for its approval.
const pendingPause = 2 * time.Second

// Join is how an agent asks for the approval of its key.
type Join struct {
	// Token is the token of hansectl join NAME --tunnel.
	Token string
	// Facts returns what the agent reports. It may fail to know some of it.
	Facts func(context.Context) handshake.Facts
}

// errKeyUnknown means that the hub does not know the key of the agent.
var errKeyUnknown = errors.New("the hub does not know the key")

// errPending means that the hub has the request of this agent, and waits for its approval.
var errPending = errors.New("waiting for the approval")

// join asks the hub to show this agent to the user who may approve it. The error says what the agent waits for.
func (a *Agent) join(ctx context.Context) error {
	facts, err := json.Marshal(a.options.Join.Facts(ctx))
	if err != nil {
		return fmt.Errorf("asking the hub for approval: %w", err)
	}
	conn, err := a.dial(ctx, func(conn net.Conn) (net.Conn, error) {
		return conn, a.apply(conn, facts)
	})
	if err == nil {
		_ = conn.Close()
	}
	return err
}

// apply sends the request on a connection.
func (a *Agent) apply(conn net.Conn, facts []byte) error {
	req, err := http.NewRequest(http.MethodPost, "http://"+a.options.Name+handshake.ServerSuffix+handshake.JoinPath, bytes.NewReader(facts))
	if err != nil {
		return fmt.Errorf("asking the hub for approval: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+a.options.Join.Token)
	req.Header.Set("Content-Type", "application/json")
	if err := req.Write(conn); err != nil {
		return fmt.Errorf("asking the hub for approval: %w", err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(io.LimitReader(conn, maxAnswer)), req)
	if err != nil {
		return fmt.Errorf("reading the hub's answer: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(resp.Body)
	said := member.Line(strings.ReplaceAll(string(text), a.options.Join.Token, "[token]"), 512)
	if resp.StatusCode == http.StatusAccepted {
		return fmt.Errorf("%w: %s", errPending, said)
	}
	return fmt.Errorf("the hub answers %s: %s", resp.Status, said)
}

// signal wakes the waits of all lanes when one of them was opened: the hub has then begun to accept the key.
type signal struct {
	mu      sync.Mutex
	waiting chan struct{}
}

// wait returns a channel that the next call of raise closes.
func (s *signal) wait() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = make(chan struct{})
	}
	return s.waiting
}

// raise ends all waits.
func (s *signal) raise() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting != nil {
		close(s.waiting)
		s.waiting = nil
	}
}
