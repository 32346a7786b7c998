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
	// repeatEvery is the interval of the messages "still waiting" while a wait makes no progress.
	repeatEvery = 10 * time.Second
)

// errTimeout means that a wait has timed out.
var errTimeout = errors.New("timed out")

// look is a function that reads the progress of an operation.
type look func(ctx context.Context) (state string, done bool, err error)

// await calls the function "at" again and again until the operation is done. It prints each new state with the elapsed
// time, and a message every repeatEvery if the state stays the same. After the timeout it returns errTimeout with the
// last state.
func await(ctx context.Context, w io.Writer, timeout time.Duration, at look) (string, error) {
	began := time.Now()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	printed, printedAt := "", began
	for {
		state, done, err := at(ctx)
		if err != nil {
			return state, err
		}
		if state != printed || time.Since(printedAt) >= repeatEvery {
			text := state
			if state == printed {
				text = "still waiting"
			}
			fmt.Fprintf(w, "  %3.0fs  %s\n", time.Since(began).Seconds(), text)
			printed, printedAt = state, time.Now()
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

// progressEvery is the time before the first progress message of a run, and the interval between messages.
const progressEvery = 2 * time.Second

// progressPrinter prints the progress of a long run.
type progressPrinter struct {
	to      io.Writer
	began   time.Time
	printed time.Time
}

func (p *progressPrinter) printf(format string, args ...any) {
	now := time.Now()
	if now.Sub(p.began) < progressEvery || now.Sub(p.printed) < progressEvery {
		return
	}
	p.printed = now
	fmt.Fprintf(p.to, "  %3.0fs  %s\n", now.Sub(p.began).Seconds(), fmt.Sprintf(format, args...))
}

// decided returns a function that prints on how many objects the run has decided so far.
func (p *progressPrinter) decided(what string) func(n, of int) {
	return func(n, of int) { p.printf("decided on %d of %d objects %s", n, of, what) }
}
