package main

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

const maxColumns = 120

// opening matches the indentation, and the marks of quotes and list items, at the beginning of a line. A line cannot be
// broken within or directly after them.
var opening = regexp.MustCompile(`^\s*(?:>\s*)*(?:(?:[-*+]|\d+[.)])\s+)?`)

// tooWide reports whether a line outside of code blocks exceeds 120 columns and could be broken at a space in its first
// 120 columns. A table, a heading and a code span cannot be broken.
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
