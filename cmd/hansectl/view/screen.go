package view

import (
	"io"
	"strings"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Screen is a terminal. Tables are cut to its width, and cells that tell how an object does have a colour.
type Screen struct {
	io.Writer
	// Width in columns; 0 does not cut.
	Width   int
	Colours bool
}

const yellow = "\x1b[33m"

// colours of whole cells.
var colours = map[string]string{
	"Healthy": green, "live": green, "OK": green,
	"Progressing": yellow, "Unknown": yellow, "Warning": yellow, "True,Draining": yellow, "True,Cordoned": yellow,
	"Degraded": red, "False": red, "Failed": red,
}

// paint gives a cell that is padded already its colour. A state of which only the last is known ends in a question
// mark.
func (s *Screen) paint(cell, padded string) string {
	colour := colours[strings.TrimSuffix(cell, "?")]
	if s == nil || !s.Colours || colour == "" {
		return padded
	}
	return colour + cell + plain + padded[len(cell):]
}

// fits cuts the last cell of a line, which begins at a column, to the width. The header of a column is not cut away.
func (s *Screen) fits(cell string, column int) string {
	const least = 10
	if s == nil || s.Width == 0 {
		return cell
	}
	return hubv1.CutMessage(cell, max(s.Width-column, least))
}
