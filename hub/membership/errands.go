package membership

import (
	"context"
	"sync"
	"time"

	"github.com/hanse-dev/hanse/hub/pace"
)

const (
	// errandsAtOnce is the maximum number of concurrent errands. An errand is a request to a member that issues or revokes
	// a token. After a long outage of the hub, many tokens may be due for renewal.
	errandsAtOnce = 4
	// errandTimeout is the timeout of an errand. An errand that renews a token sends two requests: one creates a Secret,
	// the other one a token.
	errandTimeout = 2 * pace.AnswerWithin
	// errandFirstTry is the pause after the first failed try of an errand. Each further failure doubles the pause, up to
	// pace.LongestSlowRetry.
	errandFirstTry = 5 * time.Second
)

// errands are the requests to members that issue or revoke the hub's tokens. They run in their own goroutines, so that
// a reconcile never waits for a member.
type errands struct {
	now     func() time.Time
	changed func(cluster string) // called after an errand has ended
	slots   chan struct{}

	mu   sync.Mutex
	last map[string]*errand // last errand, by cluster
}

type errand struct {
	what     string
	running  bool
	done     bool
	token    string
	err      error // error of the last try; nil if it succeeded
	failures int
	due      time.Time
}

// errandState is the state of an errand, which is a request to a member that issues or revokes a token. If done is
// false and err is nil, the first try is still running or waits for another errand.
type errandState struct {
	done     bool
	token    string
	err      error
	failures int
	wait     time.Duration // time until the next try
}

func newErrands(now func() time.Time, changed func(string)) *errands {
	return &errands{now: now, changed: changed, slots: make(chan struct{}, errandsAtOnce), last: map[string]*errand{}}
}

// do starts the errand (a request to a member) that `what` names, unless this errand is running, is done, or waits for
// its next try. It returns the errand's state at once. A cluster has only one running errand. If another errand of the
// cluster is running, do starts nothing and returns the zero state.
func (e *errands) do(ctx context.Context, cluster, what string, work func(context.Context) (token string, err error)) errandState {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.last[cluster]
	if t == nil || t.what != what {
		if t != nil && t.running {
			return errandState{}
		}
		t = &errand{what: what}
		e.last[cluster] = t
	}
	state := errandState{done: t.done, token: t.token, err: t.err, failures: t.failures}
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

func (e *errands) run(ctx context.Context, cluster string, t *errand, work func(context.Context) (string, error)) {
	var token string
	err := ctx.Err()
	select {
	case <-ctx.Done():
	case e.slots <- struct{}{}:
		within, cancel := context.WithTimeout(ctx, errandTimeout)
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

func (e *errands) failedLocked(t *errand, err error) {
	t.failures++
	t.done, t.token, t.err = false, "", err
	t.due = e.now().Add(min(errandFirstTry<<min(t.failures-1, 10), pace.LongestSlowRetry))
}

// fail marks the last errand (a request to a member) of a cluster as failed, because the hub could not use its result.
func (e *errands) fail(cluster string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.last[cluster]; t != nil {
		e.failedLocked(t, err)
	}
}

// forget deletes the state of the last errand (a request to a member) of a cluster.
func (e *errands) forget(cluster string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.last, cluster)
}
