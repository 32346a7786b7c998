package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"runtime/debug"

	"github.com/hanse-dev/hanse/chart"
)

// reply is the output of a child.
type reply struct {
	Rendered Rendered
	// Error is the text of the error. It is empty if there is no error.
	Error string `json:",omitempty"`
	// Sentinel is the name of the error in sentinels that Error wraps. It is empty if Error wraps none.
	Sentinel string `json:",omitempty"`
}

// sentinels are the errors that a caller can compare with errors.Is.
var sentinels = map[string]error{"NonDeterministic": chart.ErrNonDeterministic, "Time": chart.ErrTime, "CPU": ErrCPU, "Process": ErrProcess}

// replyError is an error that a child has returned.
type replyError struct {
	text     string
	sentinel error
}

func (e *replyError) Error() string { return e.text }

func (e *replyError) Unwrap() error { return e.sentinel }

// Main renders the chart from the standard input, and ends the process. A program calls Main before anything else if
// its only argument is Argument.
func Main() {
	over := overCPU()
	done := make(chan reply, 1)
	go func() { done <- answerOf(serve(os.Stdin)) }()
	var answer reply
	select {
	case answer = <-done:
	case <-over:
		answer = answerOf(Rendered{}, ErrCPU)
	}
	if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
		fmt.Fprintln(os.Stderr, "writing the result:", err)
		os.Exit(1)
	}
	os.Exit(0) // a template may still run
}

func answerOf(rendered Rendered, err error) reply {
	if err == nil {
		return reply{Rendered: rendered}
	}
	out := reply{Error: err.Error()}
	for name, sentinel := range sentinels {
		if errors.Is(err, sentinel) {
			out.Sentinel = name
		}
	}
	return out
}

// serve sets the limits of this process, and renders the chart that it reads.
func serve(request io.Reader) (Rendered, error) {
	if err := confine(); err != nil {
		return Rendered{}, fmt.Errorf("%w: limiting itself: %w", ErrProcess, err)
	}
	debug.SetMaxStack(MostStack)
	debug.SetMemoryLimit(MostMemory * 3 / 4) // the garbage collector works more before memory ends
	log.SetOutput(io.Discard)                // helm logs texts of the chart
	var in Input
	if err := json.NewDecoder(request).Decode(&in); err != nil {
		return Rendered{}, fmt.Errorf("%w: reading its input: %w", ErrProcess, err)
	}
	return chart.Render(context.Background(), in)
}
