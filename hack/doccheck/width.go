package main

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

const maxColumns = 120

// opening is the part of a line before which no line can break: indentation, marks of quotes, of a list item, or both.
var opening = regexp.MustCompile(`^\s*(?:>\s*)*(?:(?:[-*+]|\d+[.)])\s+)?`)

// tooWide reports whether a line outside of blocks of code passes 120 columns and could break before that. Tables and
// headings have one line each. A code span and a word do not break.
func tooWide(line string) bool {
	if utf8.RuneCountInString(line) <= maxColumns {
		return false
	}
	if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "|") || strings.HasPrefix(trimmed, "#") {
		return false
	}
	line = line[len(opening.FindString(line)):]
	line = inlineCode.ReplaceAllStringFunc(line, func(code string) string { return strings.ReplaceAll(code, " ", "_") })
	first, _, more := strings.Cut(line, " ")
	return more && utf8.RuneCountInString(first) <= maxColumns
}
