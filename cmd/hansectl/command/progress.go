package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	pollEvery = 500 * time.Millisecond
	// sayEvery is how long a wait is silent while nothing changes.
	sayEvery = 10 * time.Second
)

// errTimeout means that the time for a wait is over.
var errTimeout = errors.New("timed out")

// look says how far something is.
type look func(ctx context.Context) (state string, done bool, err error)

// await looks again and again until that is done, and prints each new state with the time since the beginning; now and
// then it says that it still waits. After the timeout it returns errTimeout, with the last state.
func await(ctx context.Context, w io.Writer, timeout time.Duration, at look) (string, error) {
	began := time.Now()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	said, saidAt := "", began
	for {
		state, done, err := at(ctx)
		if err != nil {
			return state, err
		}
		if state != said || time.Since(saidAt) >= sayEvery {
			text := state
			if state == said {
				text = "still waiting"
			}
			fmt.Fprintf(w, "  %3.0fs  %s\n", time.Since(began).Seconds(), text)
			said, saidAt = state, time.Now()
		}
		if done {
			return state, nil
		}
		select {
		case <-ctx.Done():
			return state, context.Cause(ctx)
		case <-timer.C:
			return state, fmt.Errorf("%w after %s", errTimeout, timeout)
		case <-tick.C:
		}
	}
}

// sayAfter is how long a run is silent before it says how far it is, and how often it does then.
const sayAfter = 2 * time.Second

// progress says how far a run is that takes long.
type progress struct {
	to    io.Writer
	began time.Time
	said  time.Time
}

func (p *progress) tell(format string, args ...any) {
	now := time.Now()
	if now.Sub(p.began) < sayAfter || now.Sub(p.said) < sayAfter {
		return
	}
	p.said = now
	fmt.Fprintf(p.to, "  %3.0fs  %s\n", now.Sub(p.began).Seconds(), fmt.Sprintf(format, args...))
}

// decided says on how many objects was decided.
func (p *progress) decided(what string) func(n, of int) {
	return func(n, of int) { p.tell("decided on %d of %d objects %s", n, of, what) }
}
