package build

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

const (
	meterEvery = 10 * time.Second
	tailLines  = 20
)

// meter turns the package names that `go build -v` prints into a line of progress every ten seconds.
type meter struct {
	out   io.Writer
	label string
	total int
	start time.Time
	done  chan struct{}

	mu       sync.Mutex
	rest     []byte
	lines    []string // the last lines of output
	compiled int
}

func newMeter(out io.Writer, label string, total int) *meter {
	m := &meter{out: out, label: label, total: total, start: time.Now(), done: make(chan struct{})}
	fmt.Fprintf(out, "%s: compiling at most %d packages\n", label, total)
	go m.report()
	return m
}

func (m *meter) report() {
	tick := time.NewTicker(meterEvery)
	defer tick.Stop()
	for {
		select {
		case <-m.done:
			return
		case <-tick.C:
			m.mu.Lock()
			compiled, last := m.compiled, "linking what was compiled before"
			if len(m.lines) > 0 {
				last = "now " + m.lines[len(m.lines)-1]
			}
			m.mu.Unlock()
			fmt.Fprintf(m.out, "%s: %4s  %d compiled, %s\n", m.label, m.elapsed(), compiled, last)
		}
	}
}

// Write receives the output of the go command.
func (m *meter) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rest = append(m.rest, p...)
	for {
		line, rest, found := bytes.Cut(m.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		m.rest = rest
		m.lines = append(m.lines, string(line))
		m.lines = m.lines[max(0, len(m.lines)-tailLines):]
		m.compiled++
	}
}

func (m *meter) stop(err error) {
	close(m.done)
	result := "done in"
	if err != nil {
		result = "failed after"
	}
	fmt.Fprintf(m.out, "%s: %s %s\n", m.label, result, m.elapsed())
}

func (m *meter) elapsed() time.Duration { return time.Since(m.start).Round(time.Second) }

func (m *meter) tail() []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return []byte(strings.Join(append(m.lines, string(m.rest)), "\n"))
}
