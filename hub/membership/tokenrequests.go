package membership

import (
	"context"
	"sync"
	"time"

	"github.com/hanse-dev/hanse/hub/pace"
)

const (
	// maxTokenRequests is the maximum number of concurrent token requests. After a long outage of the hub, many tokens may
	// be due for renewal.
	maxTokenRequests = 4
	// tokenRequestTimeout is the timeout of a token request. To renew a token, the hub sends two requests: one creates a
	// Secret, the other one a token.
	tokenRequestTimeout = 2 * pace.AnswerWithin
	// firstTokenRetry is the pause after the first failed try of a token request. Each further failure doubles the pause,
	// up to pace.MaxSlowRetry.
	firstTokenRetry = 5 * time.Second
)

// tokenRequests are the requests to members that issue or revoke the hub's tokens. They run in their own goroutines, so
// that a reconcile never waits for a member.
type tokenRequests struct {
	now     func() time.Time
	changed func(cluster string) // called after a request has ended
	slots   chan struct{}

	mu   sync.Mutex
	last map[string]*tokenRequest // last request, by cluster
}

type tokenRequest struct {
	what     string
	running  bool
	done     bool
	token    string
	err      error // error of the last try; nil if it succeeded
	failures int
	due      time.Time
}

// tokenRequestState is the state of a token request. If done is false and err is nil, the first try is still running or
// waits for another request.
type tokenRequestState struct {
	done     bool
	token    string
	err      error
	failures int
	wait     time.Duration // time until the next try
}

func newTokenRequests(now func() time.Time, changed func(string)) *tokenRequests {
	return &tokenRequests{now: now, changed: changed, slots: make(chan struct{}, maxTokenRequests), last: map[string]*tokenRequest{}}
}

// do starts the request that `what` names, unless this request is running, is done, or waits for its next try. It
// returns the request's state at once. A cluster has only one running request. If another request of the cluster is
// running, do starts nothing and returns the zero state.
func (e *tokenRequests) do(ctx context.Context, cluster, what string, work func(context.Context) (token string, err error)) tokenRequestState {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.last[cluster]
	if t == nil || t.what != what {
		if t != nil && t.running {
			return tokenRequestState{}
		}
		t = &tokenRequest{what: what}
		e.last[cluster] = t
	}
	state := tokenRequestState{done: t.done, token: t.token, err: t.err, failures: t.failures}
	if t.running || t.done {
		return state
	}
	if state.wait = t.due.Sub(e.now()); state.wait > 0 {
		return state
	}
	state.wait = 0
	t.running = true
	go e.run(ctx, cluster, t, work)
	return state
}

func (e *tokenRequests) run(ctx context.Context, cluster string, t *tokenRequest, work func(context.Context) (string, error)) {
	var token string
	err := ctx.Err()
	select {
	case <-ctx.Done():
	case e.slots <- struct{}{}:
		within, cancel := context.WithTimeout(ctx, tokenRequestTimeout)
		token, err = work(within)
		cancel()
		<-e.slots
	}
	e.mu.Lock()
	t.running = false
	if err == nil {
		t.done, t.token, t.err = true, token, nil
	} else {
		e.failedLocked(t, err)
	}
	e.mu.Unlock()
	e.changed(cluster)
}

func (e *tokenRequests) failedLocked(t *tokenRequest, err error) {
	t.failures++
	t.done, t.token, t.err = false, "", err
	t.due = e.now().Add(min(firstTokenRetry<<min(t.failures-1, 10), pace.MaxSlowRetry))
}

// fail marks the last request of a cluster as failed, because the hub could not use its result.
func (e *tokenRequests) fail(cluster string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.last[cluster]; t != nil {
		e.failedLocked(t, err)
	}
}

// forget deletes the state of the last request of a cluster.
func (e *tokenRequests) forget(cluster string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.last, cluster)
}
