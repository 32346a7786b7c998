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

	"github.com/hanse-dev/hanse/bundles/chart"
)

// reply is what a child writes to its standard output, as JSON.
type reply struct {
	Rendered Rendered
	// Error is the text of the error of the rendering. It is empty if there is no error.
	Error string `json:",omitempty"`
	// Sentinel is the key of an error in the map sentinels. It is set if the error of the rendering wraps this error, and
	// otherwise empty.
	Sentinel string `json:",omitempty"`
}

// sentinels are the errors that callers compare with errors.Is. The keys are the names of the errors in a reply.
var sentinels = map[string]error{"NonDeterministic": chart.ErrNonDeterministic, "Time": chart.ErrTime, "CPU": ErrCPU, "Process": ErrProcess}

// replyError is the error that the parent returns if the reply of a child has an error.
type replyError struct {
	text     string
	sentinel error
}

func (e *replyError) Error() string { return e.text }

func (e *replyError) Unwrap() error { return e.sentinel }

// Main reads an Input from the standard input, renders the chart, writes a reply to the standard output, and ends the
// process. If the only argument of a program is Argument, the program must call Main before anything else.
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
	os.Exit(0) // exit at once, because a template may still run
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

// serve sets the limits of this process, reads an Input, and renders its chart.
func serve(request io.Reader) (Rendered, error) {
	if err := confine(); err != nil {
		return Rendered{}, fmt.Errorf("%w: limiting its resources: %w", ErrProcess, err)
	}
	debug.SetMaxStack(MaxStack)
	debug.SetMemoryLimit(MaxMemory * 3 / 4) // the garbage collector works harder near the limit
	log.SetOutput(io.Discard)               // because helm logs texts of the chart
	var in Input
	if err := json.NewDecoder(request).Decode(&in); err != nil {
		return Rendered{}, fmt.Errorf("%w: reading its input: %w", ErrProcess, err)
	}
	return chart.Render(context.Background(), in)
}
