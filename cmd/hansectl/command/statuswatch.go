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

// lookEvery is the interval in which --watch reads again, and the pause before a lost connection to a pod is opened
// again. Unlike a watch, reading again survives restarts of the hub and network failures.
const lookEvery = time.Second

// clearScreen moves the cursor to the top and erases what is below.
const clearScreen = "\033[H\033[2J"

// watchStatus shows a status after each change, until ctx ends or the object and its binding are gone.
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

// screen shows a sequence of results.
type screen struct {
	to      io.Writer
	out     output
	inPlace bool // on a terminal: each result replaces the previous one
	// last is the text of the previous result. Without a terminal it has no ages, so that a new age prints nothing.
	last string
}

func (h *hub) newScreen(out output) *screen {
	return &screen{to: h.streams.Out, out: out, inPlace: out.text() && isTerminal(h.streams.Out)}
}

// show writes a result that differs from the previous one. undated is its text without ages. On a terminal it also
// updates the ages.
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

// end prints that the object is gone, in output formats for people.
func (s *screen) end() error {
	if !s.out.text() {
		return nil
	}
	_, err := fmt.Fprintln(s.to, "\nNothing is left of it.")
	return err
}

// text reports whether the output format is for people.
func (o output) text() bool { return o.format == "" || o.format == "wide" }
