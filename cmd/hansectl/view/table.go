// Package view says what the commands show: it turns what was read from the hub into values with stable JSON fields, and
// these into text.
//
// It reads no server and no clock, and writes no colour. Text from members is shown without control characters.
package view

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

const gap = "   "

// table writes aligned columns. An empty cell is a dash.
func table(w io.Writer, header []string, rows [][]string) {
	lines := append([][]string{header}, rows...)
	width := make([]int, len(header))
	for _, line := range lines {
		for i := range line {
			line[i] = printable(line[i])
			width[i] = max(width[i], utf8.RuneCountInString(line[i]))
		}
	}
	for _, line := range lines {
		var b strings.Builder
		for i, cell := range line {
			b.WriteString(cell)
			if i < len(line)-1 {
				b.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)) + gap)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

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
