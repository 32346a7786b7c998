package overrides

import (
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

var (
	errTooDeep = fmt.Errorf("nests deeper than %d levels: flatten it", maxManifestDepth)
	errNotJSON = errors.New("holds a value that JSON cannot represent: correct the object on the hub")
)

// decode decodes a JSON value in a policy. If it fails, message describes the error and never quotes the value.
// Otherwise message is empty.
func decode(raw []byte) (v any, message string) {
	if len(raw) > maxValueBytes {
		return nil, fmt.Sprintf("is larger than %d KiB: make the value smaller, or split its map or list into several operations or rules", maxValueBytes>>10)
	}
	if nesting(raw) > maxDepth {
		return nil, fmt.Sprintf("nests deeper than %d levels: flatten it", maxDepth)
	}
	if err := utiljson.Unmarshal(raw, &v); err != nil {
		return nil, "is not valid JSON: correct it"
	}
	return v, ""
}

// nesting returns the number of levels of a JSON text. It does not decode the text.
func nesting(raw []byte) int {
	level, deepest, quoted := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			level++
			deepest = max(deepest, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return deepest
}

// size returns the approximate length of v as JSON. It returns an error if v is larger than maxBytes, is nested deeper
// than maxLevels, or cannot be represented in JSON.
func size(v any, maxBytes, maxLevels int) (int, error) {
	n := 0
	switch v := v.(type) {
	case nil, bool, int64:
		n = 5
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return 0, errNotJSON
		}
		n = 8
	case string:
		n = sizeOfString(v)
	case []any, map[string]any:
		if maxLevels == 0 {
			return 0, errTooDeep
		}
		return sizeOfAll(v, maxBytes, maxLevels-1)
	default:
		return 0, errNotJSON
	}
	if n > maxBytes {
		return 0, ErrTooLarge
	}
	return n, nil
}

func sizeOfAll(v any, maxBytes, maxLevels int) (int, error) {
	n := 2
	add := func(key int, c any) error {
		m, err := size(c, maxBytes-n-key, maxLevels)
		n += key + m
		return err
	}
	if list, ok := v.([]any); ok {
		for _, c := range list {
			if err := add(1, c); err != nil {
				return 0, err
			}
		}
	}
	if object, ok := v.(map[string]any); ok {
		for k, c := range object {
			if err := add(sizeOfString(k)+2, c); err != nil {
				return 0, err
			}
		}
	}
	if n > maxBytes {
		return 0, ErrTooLarge
	}
	return n, nil
}

// sizeOfString returns the length of s as a JSON string, with quotes and the escapes that Go's encoder writes.
func sizeOfString(s string) int {
	n := len(s) + 2
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			n++
		case c < ' ' || c == '<' || c == '>' || c == '&':
			n += 5
		}
	}
	if !utf8.ValidString(s) {
		n *= 2 // allow twice the length, because the encoder replaces invalid UTF-8
	}
	return n
}

// equal compares JSON values; 1 and 1.0 are equal (RFC 6902, 4.6).
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if w, ok := b[k]; !ok || !equal(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i, v := range a {
			if !equal(v, b[i]) {
				return false
			}
		}
		return true
	case int64:
		if b, ok := b.(float64); ok {
			return float64(a) == b
		}
	case float64:
		if b, ok := b.(int64); ok {
			return a == float64(b)
		}
	}
	return a == b
}
