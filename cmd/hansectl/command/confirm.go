package command

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

var (
	errNoTerminal = errors.New("not a terminal: pass --yes to confirm")
	errNotWanted  = errors.New("nothing was done")
)

// confirm prints the planned action and asks the user for a confirmation on the terminal. It does neither if yes is
// true. Without a terminal, it returns an error.
func (h *hub) confirm(yes bool, format string, args ...any) error {
	if yes {
		return nil
	}
	in, ok := h.streams.In.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return errNoTerminal
	}
	fmt.Fprintf(h.streams.Out, format+" Go on? [y/N] ", args...)
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errNotWanted
}
