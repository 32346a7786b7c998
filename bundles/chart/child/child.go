// Package child renders Helm charts in a child process. A program uses it so that a chart of another author cannot end
// the program.
//
// A template cannot be stopped, and can use any amount of memory: see chart.Render. A child process can be ended, and
// the kernel limits its memory and CPU time. Render therefore starts the executable of the running program again, with
// the one argument Argument. The started program must call Main before anything else.
//   - The child gets the Input as JSON on its standard input, and writes the result as JSON to its standard output.
//   - Before it reads the Input, it limits its memory (MaxMemory), its stack (MaxStack) and its CPU time. It also
//     forbids new descriptors, so that it opens no file and no socket, and writes no file. It sets its oom_score_adj to
//     the maximum, so that the kernel ends it before the program if the memory of the container is used up.
//   - It gets no environment variables of the program. It ends when the program ends, when the context of Render ends,
//     or shortly after chart.MaxTime.
//   - Its standard error reaches no user. Render reads it only to find out why the child ended.
//   - One child runs at a time, because each may take MaxMemory beside the memory of the program.
//
// A container in which a program uses this package needs memory for the program and for one child. A child needs
// MaxMemory, and the memory that it has before it renders. Before a child of the hub renders, it has 125 MiB of
// writable addresses, of which 9 MiB are in use. If the container has too little memory, the kernel ends the child
// first. A kubelet that makes the kernel end all processes of a container together (memory.oom.group) ends the program,
// too. The program also holds the result as JSON, at most MaxReplyBytes, and the objects that it decodes from this
// JSON.
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
	"github.com/hanse-dev/hanse/bundles/chart"
)

const (
	// Argument is the only argument of a program that is started as a child. No help text mentions it.
	Argument = "render-chart"
	// MaxMemory is the maximum memory that a child may use in addition to its memory before it renders: 256 MiB. A chart
	// with 14 MB of definitions, which is nearly chart.MaxRenderedBytes, needs less than half of this.
	MaxMemory = 256 << 20
	// MaxCPU is the maximum CPU time of a child: 20 s. Unlike a limit of real time, it does not depend on the load of the
	// machine. It ends an endless loop earlier than chart.MaxTime.
	MaxCPU = 20 * time.Second
	// MaxStack is the maximum size of the stack of a goroutine in a child: 32 MiB. Helm allows 1000 nested includes of
	// templates. These need a smaller stack.
	MaxStack = 32 << 20
	// MaxReplyBytes is the maximum size of the result of a child as JSON: 32 MiB.
	MaxReplyBytes = 2 * chart.MaxRenderedBytes

	// startMemory is the estimated memory of a child before it renders: 30 MiB.
	startMemory = 30 << 20
	// grace is the time that a child may take to start, to read the input and to write the result, in addition to
	// chart.MaxTime.
	grace = 10 * time.Second
	// maxErrorBytes is the number of bytes of the child's standard error that are kept. If a Go program crashes, the
	// first lines have the cause.
	maxErrorBytes = 16 << 10
)

var (
	// ErrMemory is the error for a chart that needs more than MaxMemory.
	ErrMemory = fmt.Errorf("the chart needs more than %d MiB of memory to render: look for large or endless loops in its templates", MaxMemory>>20)
	// ErrCPU is the error for a chart that needs more than MaxCPU.
	ErrCPU = fmt.Errorf("the chart needs more than %s of CPU time to render: look for a loop in its templates", MaxCPU)
	// ErrStack is the error for a chart that needs more than MaxStack.
	ErrStack = fmt.Errorf("the chart needs more than %d MiB of stack to render: look for a template that calls itself, such as by tpl", MaxStack>>20)
	// ErrSize is the error for a chart whose result is larger than MaxReplyBytes.
	ErrSize = fmt.Errorf("the objects of the chart have more than %d MiB as JSON: let the values render fewer objects, or split the chart", MaxReplyBytes>>20)
	// ErrProcess is the error for a child that did not start, or that ended for an unknown reason. The chart may be valid,
	// so the caller may try again.
	ErrProcess = errors.New("the process that renders charts failed")
)

// Input, Rendered and Sources are the types of package chart. The hub does not import package chart itself, because it
// must not render in its own process.
type (
	// Input has everything that determines the objects of a chart. Numbers in Values become float64, as in a file of
	// values.
	Input = chart.Input
	// Rendered is the result of rendering a chart.
	Rendered = chart.Rendered
	// StoredValues are the kept values of an operator, as the hub stores them.
	StoredValues = chart.StoredValues
	// Sources give access to the ConfigMaps and the fetched archive that the chart of an operator uses.
	Sources = chart.Sources
)

var (
	// ErrNonDeterministic is chart.ErrNonDeterministic.
	ErrNonDeterministic = chart.ErrNonDeterministic
	// ErrValuesWouldChange is chart.ErrValuesWouldChange.
	ErrValuesWouldChange = chart.ErrValuesWouldChange
)

// InputOf is chart.InputOf.
func InputOf(spec *hubv1.OperatorChart, sources Sources) (Input, error) {
	return chart.InputOf(spec, sources)
}

// turn is a semaphore: it holds a value while a child runs, so that only one child runs at a time.
var turn = make(chan struct{}, 1)

// Render renders a chart in a child process. While another chart is rendered, Render waits.
//
// The errors of Render have the same texts as those of chart.Render, and wrap chart.ErrNonDeterministic and
// chart.ErrTime in the same way. ErrMemory, ErrCPU, ErrStack and ErrSize mean that the chart is at fault. Any other
// error means that the chart is invalid, wraps ErrProcess, or is the error of ctx.
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

// run starts a child, sends it the request, and returns its output.
func run(ctx context.Context, request []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, chart.MaxTime+grace, chart.ErrTime)
	defer cancel()
	// The kernel ends the child when the operating-system thread that started it ends. The goroutine is locked to this
	// thread until the child has ended, so that no other goroutine can end the thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd, err := command(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProcess, err)
	}
	// While the child runs, the memory limit of this program's garbage collector is lower by the memory of the child.
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		debug.SetMemoryLimit(max(limit-MaxMemory-startMemory, 1))
		defer debug.SetMemoryLimit(limit)
	}
	out, errorText := &capped{maxBytes: MaxReplyBytes, fails: true}, &capped{maxBytes: maxErrorBytes}
	cmd.Env = []string{"GOMAXPROCS=1", "GOTRACEBACK=none"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(request), out, errorText
	err = cmd.Run()
	stderrHas := func(text string) bool { return bytes.Contains(errorText.kept.Bytes(), []byte(text)) }
	switch {
	case out.over:
		return nil, ErrSize
	case err == nil:
		return out.kept.Bytes(), nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case stderrHas("stack overflow"):
		return nil, ErrStack
	case stderrHas("out of memory"), stderrHas("cannot allocate memory"):
		return nil, ErrMemory
	case cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == -1:
		return nil, fmt.Errorf("%w: %w: the container of the hub may have too little memory", ErrProcess, err)
	}
	return nil, fmt.Errorf("%w: %w", ErrProcess, err)
}

// capped is a writer that keeps the first bytes of an output.
type capped struct {
	kept     bytes.Buffer
	maxBytes int
	// fails sets what Write does after the maximum: it fails if fails is true, and drops the bytes otherwise.
	fails bool
	// over is true if there were more bytes than the maximum.
	over bool
}

func (c *capped) Write(p []byte) (int, error) {
	rest := c.maxBytes - c.kept.Len()
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
