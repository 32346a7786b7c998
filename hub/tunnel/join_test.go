package tunnel

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hanse-dev/hanse/member/agent"
	"github.com/hanse-dev/hanse/member/handshake"
)

// TestAnAgentAsksWithItsTokenUntilItIsApproved also checks that the token, and the private key, are in no log, and that
// all lanes open within seconds of the approval.
func TestAnAgentAsksWithItsTokenUntilItIsApproved(t *testing.T) {
	w, key := newWorld(t), newKey(t)
	const token = "canary-of-the-token"
	var asked atomic.Pointer[Applicant]
	w.server.Apply = func(_ context.Context, given string, a Applicant) error {
		if given != token {
			return ErrTokenUnknown
		}
		asked.Store(&a)
		return nil
	}
	lanes := w.open()
	_, log := w.runAgent(key, "one", func(o *agent.Options) {
		o.Join = &agent.Join{Token: token, Facts: func(context.Context) handshake.Facts {
			return handshake.Facts{ClusterID: "id", Kubernetes: "v1.36.3", Version: "0.1.0"}
		}}
	})
	want := Applicant{Cluster: "eu", Key: fingerprint(key), Address: "127.0.0.1", ClusterID: "id", Kubernetes: "v1.36.3", Version: "0.1.0"}
	w.eventually("the request of the agent", func() error {
		if got := asked.Load(); got == nil || *got != want || !strings.Contains(log(), "waiting for hansectl approve eu") {
			return fmt.Errorf("the hub got %+v, want %+v: %s", got, want, log())
		}
		return nil
	})
	begin := time.Now()
	w.open(key)
	w.answers(lanes)
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the lanes are open %s after the approval", took)
	}
	for _, secret := range []string{token, agentToken, "PRIVATE KEY"} {
		if strings.Contains(log(), secret) {
			t.Errorf("the log of the agent has %q", secret)
		}
	}
}

func TestARequestToJoinThatIsNotOneIsRefused(t *testing.T) {
	w, key := newWorld(t), newKey(t)
	w.server.Apply = func(_ context.Context, token string, _ Applicant) error {
		return map[string]error{"good": nil, "used": ErrTokenUsed, "expired": ErrTokenExpired, "broken": io.ErrUnexpectedEOF}[token]
	}
	w.open()
	answer := func(name, token, body string) string {
		conn, err := tls.Dial("tcp", w.server.Address(), &tls.Config{InsecureSkipVerify: true, ServerName: name + handshake.ServerSuffix, Certificates: []tls.Certificate{key}})
		must(t, err)
		defer func() { _ = conn.Close() }()
		_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n%s", http.MethodPost, handshake.JoinPath, token, len(body), body)
		must(t, err)
		text, _ := io.ReadAll(io.LimitReader(conn, 1<<10))
		return string(text)
	}
	for _, tc := range []struct{ name, header, body, want string }{
		{"eu", "Authorization: Bearer good\r\n", "{}", "202"},
		{"eu", "Authorization: Bearer used\r\n", "{}", "409 Conflict"},
		{"eu", "Authorization: Bearer expired\r\n", "{}", "TokenExpired"},
		{"eu", "Authorization: Bearer broken\r\n", "{}", "503"},
		{"eu", "", "{}", "TokenUnknown"},
		{"us", "Authorization: Bearer good\r\n", "{}", "TokenUnknown"},
		{"eu", "Authorization: Bearer good\r\n", "[]", "400"},
		{"eu", "Authorization: Bearer good\r\n", strings.Repeat(" ", maxJoinBody+1), "413"},
		{"eu", "Authorization: Bearer " + strings.Repeat("x", 3*maxHeader) + "\r\n", "{}", "431"},
	} {
		if got := answer(tc.name, tc.header, tc.body); !strings.Contains(got, tc.want) {
			t.Errorf("%.60q with a body of %d bytes is answered with %.200q, want %s", tc.header, len(tc.body), got, tc.want)
		}
	}
}

// TestANewKeyReplacesTheOldOneWhenItIsApproved runs the agent with the old key until the approval of the new one.
func TestANewKeyReplacesTheOldOneWhenItIsApproved(t *testing.T) {
	w, old, next := newWorld(t), newKey(t), newKey(t)
	w.server.Apply = func(context.Context, string, Applicant) error { return nil }
	lanes := w.open(old)
	w.runAgent(old, "one")
	w.answers(lanes)
	_, log := w.runAgent(next, "two", func(o *agent.Options) {
		o.Join = &agent.Join{Token: "another-canary", Facts: func(context.Context) handshake.Facts { return handshake.Facts{} }}
	})
	w.eventually("the request of the new key", func() error {
		if !strings.Contains(log(), "waiting for hansectl approve eu") {
			return fmt.Errorf("the log has %s", log())
		}
		return nil
	})
	w.answers(lanes)
	begin := time.Now()
	w.open(next)
	w.answers(lanes)
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the new key has the lanes %s after its approval", took)
	}
}
