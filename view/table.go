// Package view determines the output of hansectl and the console. It converts objects into values with stable JSON
// fields, and these values into text.
//
// The package reads no server and no clock. It removes control characters from the text of members.
package view

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

const gap = "   "

// table writes aligned columns. An empty cell is written as a dash. On a Screen the last column is cut to the width.
func table(w io.Writer, header []string, rows [][]string) {
	lines := append([][]string{header}, rows...)
	width := make([]int, len(header))
	for _, line := range lines {
		for i := range line {
			line[i] = printable(line[i])
			width[i] = max(width[i], utf8.RuneCountInString(line[i]))
		}
	}
	screen, _ := w.(*Screen)
	for _, line := range lines {
		var b strings.Builder
		column := 0
		for i, cell := range line {
			if i == len(line)-1 {
				cell = screen.fits(cell, column)
				b.WriteString(screen.paint(cell, cell))
				continue
			}
			b.WriteString(screen.paint(cell, cell+strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))+gap))
			column += width[i] + len(gap)
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// Printable returns the text of a member without control characters.
func Printable(text string) string { return printable(text) }

func printable(cell string) string {
	cell = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, cell))
	if cell == "" {
		return "-"
	}
	return cell
}
