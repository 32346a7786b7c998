// Package child renders Helm charts in a child process. A program uses it if a chart of another author must not end the
// program.
//
// A template cannot be stopped, and can use any amount of memory: see chart.Render. A child process can be ended, and
// the kernel limits its memory and CPU time. Render therefore starts the program's own executable with Argument. The
// program then calls Main before anything else.
//   - The child gets the Input as JSON on its standard input, and writes the result as JSON to its standard output.
//   - It limits itself before it reads the Input: MostMemory, MostStack, the time of the CPU, and no new descriptor. So
//     it opens no file and no socket, and writes no file.
//   - It has no environment of the program. It ends with the program, with the context of Render, and after some time.
//   - Its standard error reaches no user. Render reads it only to tell why the child ended.
//   - One child runs at a time, because each may take MostMemory beside the memory of the program.
//
// The container of a program that renders needs memory for itself and for a child: MostMemory, and the memory of the
// child before it renders. For the hub, the second is 125 MiB of writable addresses, of which 9 MiB are in use. If the
// container has too little, the kernel may end the program instead of the child. The program itself holds the result as
// JSON, at most MostReplyBytes, and the objects that it decodes from it.
package child

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/chart"
)

const (
	// Argument is the only argument of a program that is started to render a chart. No help text mentions it.
	Argument = "render-chart"
	// MostMemory is the maximum memory of a rendering, in addition to the memory of the child at its start: 256 MiB. A
	// chart with 14 MB of definitions, which is nearly chart.MostRenderedBytes, needs less than half of it.
	MostMemory = 256 << 20
	// MostCPU is the maximum CPU time of a rendering: 20 s. Unlike a limit of real time, it does not depend on the load of
	// the machine, and it ends an endless loop early.
	MostCPU = 20 * time.Second
	// MostStack is the maximum size of the stack of a rendering: 32 MiB. Helm lets templates include each other 1000
	// times, which needs less.
	MostStack = 32 << 20
	// MostReplyBytes is the maximum size of a result as JSON: 32 MiB.
	MostReplyBytes = 2 * chart.MostRenderedBytes

	// startMemory is the memory of a child before it renders: 30 MiB.
	startMemory = 30 << 20
	// grace is how long a child may take to start, to read and to write, in addition to chart.MostTime.
	grace = 10 * time.Second
	// mostErrorBytes is the number of bytes of the standard error that are kept. The cause of the end of a Go program is
	// in the first lines.
	mostErrorBytes = 16 << 10
)

var (
	// ErrMemory is the error for a chart that needs more than MostMemory.
	ErrMemory = fmt.Errorf("the chart needs more than %d MiB of memory to render: look for large or endless loops in its templates", MostMemory>>20)
	// ErrCPU is the error for a chart that needs more than MostCPU.
	ErrCPU = fmt.Errorf("the chart needs more than %s of CPU time to render: look for a loop in its templates", MostCPU)
	// ErrStack is the error for a chart that needs more than MostStack.
	ErrStack = fmt.Errorf("the chart needs more than %d MiB of stack to render: look for a template that calls itself, such as by tpl", MostStack>>20)
	// ErrSize is the error for a chart whose result is larger than MostReplyBytes.
	ErrSize = fmt.Errorf("the objects of the chart have more than %d MiB as JSON", MostReplyBytes>>20)
	// ErrProcess is the error for a child that did not start, or that ended for an unknown reason. The chart may be valid,
	// so the caller may try again.
	ErrProcess = errors.New("the process that renders charts failed")
)

// Input and Rendered are the types of package chart. The hub does not import package chart, because it must not render
// in its own process.
type (
	// Input has all inputs that determine the objects of a chart. Numbers in Values become float64, as in a file of
	// values.
	Input = chart.Input
	// Rendered is a rendered chart.
	Rendered = chart.Rendered
	// Sources have the objects that the chart of an operator names.
	Sources = chart.Sources
)

// ErrNonDeterministic is chart.ErrNonDeterministic.
var ErrNonDeterministic = chart.ErrNonDeterministic

// InputOf is chart.InputOf.
func InputOf(spec *hubv1.OperatorChart, sources Sources) (Input, error) {
	return chart.InputOf(spec, sources)
}

// turn has a value while a child runs, so that only one runs at a time.
var turn = make(chan struct{}, 1)

// Render renders a chart in a child process. It waits while another chart is rendered.
//
// Its errors have the same texts as those of chart.Render, and wrap chart.ErrNonDeterministic and chart.ErrTime in the
// same way. ErrMemory, ErrCPU, ErrStack and ErrSize are errors of the chart, too. All other errors are ErrProcess or
// the error of ctx.
func Render(ctx context.Context, in Input) (Rendered, error) {
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return Rendered{}, fmt.Errorf("waiting for the rendering of another chart: %w", context.Cause(ctx))
	}
	request, err := json.Marshal(in)
	if err != nil {
		return Rendered{}, fmt.Errorf("writing the values as JSON: %w", err)
	}
	text, err := run(ctx, request)
	if err != nil {
		return Rendered{}, err
	}
	var answer reply
	if err := json.Unmarshal(text, &answer); err != nil {
		return Rendered{}, fmt.Errorf("%w: reading its result: %w", ErrProcess, err)
	}
	if answer.Error != "" {
		return Rendered{}, &replyError{text: answer.Error, sentinel: sentinels[answer.Sentinel]}
	}
	return answer.Rendered, nil
}

// run starts a child, and returns its output.
func run(ctx context.Context, request []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, chart.MostTime+grace, chart.ErrTime)
	defer cancel()
	// The kernel ends the child when the thread that has started it ends, not only when the process ends. While the
	// goroutine is locked to the thread, no other goroutine can end the thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd, err := command(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProcess, err)
	}
	// While the child runs, the garbage collector keeps this program within the rest of the container's memory.
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		debug.SetMemoryLimit(max(limit-MostMemory-startMemory, 1))
		defer debug.SetMemoryLimit(limit)
	}
	out, errorText := &capped{most: MostReplyBytes, fails: true}, &capped{most: mostErrorBytes}
	cmd.Env = []string{"GOMAXPROCS=1", "GOTRACEBACK=none"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(request), out, errorText
	err = cmd.Run()
	says := func(text string) bool { return bytes.Contains(errorText.kept.Bytes(), []byte(text)) }
	switch {
	case out.over:
		return nil, ErrSize
	case err == nil:
		return out.kept.Bytes(), nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case says("stack overflow"):
		return nil, ErrStack
	case says("out of memory"), says("cannot allocate memory"):
		return nil, ErrMemory
	case cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == -1:
		return nil, fmt.Errorf("%w: %w: the container of the hub may have too little memory", ErrProcess, err)
	}
	return nil, fmt.Errorf("%w: %w", ErrProcess, err)
}

// capped keeps the first bytes of an output.
type capped struct {
	kept bytes.Buffer
	most int
	// fails is true if Write fails for further bytes. Otherwise Write drops them.
	fails bool
	// over is true if there were further bytes.
	over bool
}

func (c *capped) Write(p []byte) (int, error) {
	rest := c.most - c.kept.Len()
	if len(p) <= rest {
		return c.kept.Write(p)
	}
	c.over = true
	if c.fails {
		return 0, ErrSize
	}
	c.kept.Write(p[:rest])
	return len(p), nil
}
