package main

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

const maxColumns = 120

// opening matches the part of a line in which it cannot be broken: indentation, marks of quotes, of a list item, or
// both.
var opening = regexp.MustCompile(`^\s*(?:>\s*)*(?:(?:[-*+]|\d+[.)])\s+)?`)

// tooWide reports whether a line outside of code blocks exceeds 120 columns and could be broken before. Tables and
// headings cannot be broken; neither can a code span or a word.
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
