package view

import (
	"io"
	"strings"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Screen is a terminal. Tables are cut to its width, and cells that show a state are coloured.
type Screen struct {
	io.Writer
	// Width is the number of columns. 0 means that lines are not cut.
	Width   int
	Colours bool
}

const yellow = "\x1b[33m"

// colours maps the text of a cell to its colour.
var colours = map[string]string{
	"Healthy": green, "live": green, "OK": green,
	"Progressing": yellow, "Unknown": yellow, "Warning": yellow, "True,Draining": yellow, "True,Cordoned": yellow,
	"Degraded": red, "False": red, "Failed": red,
}

// paint colours a padded cell according to its text. A question mark after a state means that the state may be out of
// date. Such a state is never green.
func (s *Screen) paint(cell, padded string) string {
	colour := colours[strings.TrimSuffix(cell, "?")]
	if colour == green && strings.HasSuffix(cell, "?") {
		colour = yellow
	}
	if s == nil || !s.Colours || colour == "" {
		return padded
	}
	return colour + cell + plain + padded[len(cell):]
}

// fits cuts the last cell of a line to the width of the screen. column is the position at which the cell starts. The
// header is never cut.
func (s *Screen) fits(cell string, column int) string {
	const minColumns = 10
	if s == nil || s.Width == 0 {
		return cell
	}
	return hubv1.CutMessage(cell, max(s.Width-column, minColumns))
}
