package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hanse-dev/hanse/view"
)

// lookEvery is the interval at which --watch reads the status. Unlike a Kubernetes watch, repeated reading survives
// restarts of the hub and network failures. dashboard waits for the same time before it connects to a pod again.
const lookEvery = time.Second

// clearScreen moves the cursor to the top and erases what is below.
const clearScreen = "\033[H\033[2J"

// watchStatus prints the status after each change, until ctx ends, or until the object and its binding are gone.
func (h *hub) watchStatus(ctx context.Context, out output, look func(context.Context) (view.Status, error)) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	s := h.newScreen(out)
	for first := true; ; first = false {
		found, err := look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil // the user has ended the watch
		case err == nil:
			if err := s.show(found, found.Undated(out.format == "wide")); err != nil {
				return err
			}
		case errors.Is(err, errNoObject) && !first:
			return s.end()
		case first:
			return err
		default:
			h.warn(fmt.Sprintf("warning: %v; trying again\n", err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// screen prints the results of a command with --watch.
type screen struct {
	to      io.Writer
	out     output
	inPlace bool // on a terminal: each result replaces the previous one
	// last is the text of the previous result. If the output is not a terminal, this text has no ages: a result that
	// differs only in ages is not printed.
	last string
}

func (h *hub) newScreen(out output) *screen {
	return &screen{to: h.streams.Out, out: out, inPlace: out.text() && isTerminal(h.streams.Out)}
}

// show prints a result if it differs from the previous one. undated is the text of the result without ages. On a
// terminal, show also prints a result in which only ages have changed.
func (s *screen) show(found shown, undated string) error {
	var text bytes.Buffer
	if err := s.out.print(s.out.screen(&text, s.to), found); err != nil {
		return err
	}
	now := text.String()
	if s.out.text() && !s.inPlace {
		now = undated
	}
	if now == s.last {
		return nil
	}
	before := ""
	switch {
	case s.inPlace:
		before = clearScreen
	case s.last != "" && s.out.format == "yaml":
		before = "---\n"
	case s.last != "" && s.out.text():
		before = "\n" + time.Now().UTC().Format(time.RFC3339) + "\n"
	}
	s.last = now
	_, err := io.WriteString(s.to, before+text.String())
	return err
}

// end prints that the object is gone. It prints nothing for JSON and YAML.
func (s *screen) end() error {
	if !s.out.text() {
		return nil
	}
	_, err := fmt.Fprintln(s.to, "\nThe object and its copies are deleted.")
	return err
}

// text reports whether the output format is text for people, and not a format such as JSON.
func (o output) text() bool { return o.format == "" || o.format == "wide" }
