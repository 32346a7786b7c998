package main

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

const maxColumns = 120

// opening matches the beginning of a line, at which the line cannot be broken: indentation, and the marks of quotes and
// list items.
var opening = regexp.MustCompile(`^\s*(?:>\s*)*(?:(?:[-*+]|\d+[.)])\s+)?`)

// tooWide reports whether a line outside of code blocks exceeds 120 columns and could be broken within them. A table, a
// heading, a code span and a word cannot be broken.
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
