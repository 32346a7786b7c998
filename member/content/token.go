package content

import (
	"strings"
	"unicode/utf8"
)

// cut splits a JSON text after its first value. rest begins with the comma, colon or bracket after the value.
func cut(text string) (value, rest string) {
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
		case depth == 0 && (c == ',' || c == ':' || c == '}' || c == ']'):
			return text[:i], text[i:]
		case c == '}' || c == ']':
			depth--
		}
	}
	return text, ""
}

// cutField splits the text between the braces of a JSON object after its first field.
func cutField(text string) (name, value, rest string) {
	name, rest = cut(text)
	value, rest = cut(strings.TrimPrefix(rest, ":"))
	return name, value, strings.TrimPrefix(rest, ",")
}

// isPlainKey reports whether the text is a canonical JSON object: plain names and scalars, sorted by name, without
// white space.
func isPlainKey(text string) bool {
	text, opened := strings.CutPrefix(text, "{")
	text, closed := strings.CutSuffix(text, "}")
	if !opened || !closed {
		return false
	}
	for last := ""; ; {
		name, rest := cut(text)
		if !isPlainString(name) || name <= last || !strings.HasPrefix(rest, ":") {
			return false
		}
		value, rest := cut(rest[1:])
		if !isPlainScalar(value) {
			return false
		}
		if rest == "" {
			return true
		}
		if rest[0] != ',' {
			return false
		}
		text, last = rest[1:], name
	}
}

// isPlainScalar reports whether a JSON scalar can be written in only one way: a string of plain characters, a boolean,
// or an integer that a float64 holds exactly.
func isPlainScalar(text string) bool {
	if text == "true" || text == "false" || text == "0" {
		return true
	}
	return isPlainString(text) || isPlainInteger(strings.TrimPrefix(text, "-"))
}

func isPlainInteger(digits string) bool {
	if len(digits) == 0 || len(digits) > 15 || digits[0] == '0' {
		return false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return false
		}
	}
	return true
}

func isPlainString(text string) bool {
	if len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
		return false
	}
	for i := 1; i < len(text)-1; i++ {
		if !isPlain(text[i]) {
			return false
		}
	}
	return true
}

// isPlain reports whether an ASCII character needs no escape.
func isPlain(c byte) bool {
	return c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
}
