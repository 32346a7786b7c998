package openapi

import (
	"regexp"
	"regexp/syntax"

	"k8s.io/utils/lru"
)

// A short pattern can be large when it is compiled: ((x{100}){100}){10} has 100,000 states. A member may publish any
// pattern, so the memory of one compiled pattern and the number of compiled patterns have bounds.
const (
	maxPatternBytes = 512 << 10 // memory of a compiled pattern, as compiledSize says; larger patterns are not checked
	maxPatternText  = 16 << 10  // length of a pattern
	maxPatterns     = 128       // number of patterns that stay compiled, for all schemas together
)

// compiled has the patterns that were used last, each as a *regexp.Regexp. The value is nil for a pattern that is not
// checked.
var compiled = lru.New(maxPatterns)

// matches reports whether a text matches a pattern. It returns true if the pattern is empty, invalid or too large.
func matches(pattern, text string) bool {
	if pattern == "" || len(pattern) > maxPatternText {
		return true
	}
	found, ok := compiled.Get(pattern)
	if !ok {
		found = compile(pattern)
		compiled.Add(pattern, found)
	}
	re, _ := found.(*regexp.Regexp)
	return re == nil || re.MatchString(text)
}

// compile returns nil for a pattern that is invalid or too large.
func compile(pattern string) *regexp.Regexp {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || compiledSize(parsed) > maxPatternBytes {
		return nil
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil
	}
	return re
}

// These are upper bounds of the memory of the parts of a compiled regular expression, in bytes.
const (
	stateSize = 96
	runeSize  = 16 // of an edge of a class of characters
)

// compiledSize returns an upper bound of the memory of a regular expression after its compilation, in bytes.
func compiledSize(re *syntax.Regexp) int64 {
	size := int64(stateSize)
	switch re.Op {
	case syntax.OpLiteral: // one state for each character
		size += int64(len(re.Rune)) * stateSize
	case syntax.OpCharClass:
		size += int64(len(re.Rune)) * runeSize
	}
	for _, sub := range re.Sub {
		size += compiledSize(sub)
	}
	if re.Op == syntax.OpRepeat { // package syntax limits the product of nested repeats
		size *= int64(max(re.Min, re.Max, 1))
	}
	return size
}
