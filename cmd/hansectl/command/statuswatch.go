package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hanse-dev/hanse/cmd/hansectl/view"
)

// lookEvery is how often an object is looked at while it is watched. Looking again and again survives whatever happens
// to hub and network.
const lookEvery = time.Second

// clearScreen moves the cursor to the top and erases what is below.
const clearScreen = "\033[H\033[2J"

// watchStatus shows a status whenever it has changed, until ctx ends or nothing is left of the object.
func (h *hub) watchStatus(ctx context.Context, out output, look func(context.Context) (view.Status, error)) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	s := &screen{to: h.streams.Out, out: out, inPlace: out.text() && isTerminal(h.streams.Out)}
	for first := true; ; first = false {
		found, err := look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil // it was watched for as long as somebody wanted
		case err == nil:
			if err := s.show(found); err != nil {
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

// screen shows one status after the other.
type screen struct {
	to      io.Writer
	out     output
	inPlace bool // on a terminal: the last one is replaced
	// last is the text that was shown last: on a terminal as it is, so that ages are kept up to date, else without ages.
	last string
}

// show writes the status if its text is another one.
func (s *screen) show(found view.Status) error {
	var text bytes.Buffer
	if err := s.out.print(s.out.screen(&text, s.to), found); err != nil {
		return err
	}
	now := text.String()
	if s.out.text() && !s.inPlace {
		now = found.Undated(s.out.format == "wide")
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

// end says that nothing is left, where a person reads it.
func (s *screen) end() error {
	if !s.out.text() {
		return nil
	}
	_, err := fmt.Fprintln(s.to, "\nNothing is left of it.")
	return err
}

// text is true for output that a person reads.
func (o output) text() bool { return o.format == "" || o.format == "wide" }
