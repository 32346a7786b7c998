package content

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// encoder writes values of unstructured objects as canonical JSON: equal values give equal text. It is the text of encoding/json,
// but does not change with it, because rows keep hashes of it.
type encoder struct {
	text  []byte
	names []string // of the maps that are being written
}

// canonical is the JSON of a value of an unstructured object.
func canonical(v any) string {
	var e encoder
	e.value(v)
	return string(e.text)
}

func (e *encoder) value(v any) {
	switch v := v.(type) {
	case nil:
		e.text = append(e.text, "null"...)
	case string:
		e.string(v)
	case bool:
		e.text = strconv.AppendBool(e.text, v)
	case int64:
		e.text = strconv.AppendInt(e.text, v, 10)
	case float64:
		e.float(v)
	case map[string]any:
		e.object(v)
	case []any:
		e.text = append(e.text, '[')
		for i, item := range v {
			if i > 0 {
				e.text = append(e.text, ',')
			}
			e.value(item)
		}
		e.text = append(e.text, ']')
	default: // no JSON decoder makes such a value
		text, err := json.Marshal(v)
		if err != nil {
			text = []byte("?")
		}
		e.text = append(e.text, text...)
	}
}

func (e *encoder) object(m map[string]any) {
	from := len(e.names)
	for name := range m {
		e.names = append(e.names, name)
	}
	slices.Sort(e.names[from:])
	e.text = append(e.text, '{')
	for i := range len(m) {
		if i > 0 {
			e.text = append(e.text, ',')
		}
		name := e.names[from+i]
		e.string(name)
		e.text = append(e.text, ':')
		e.value(m[name])
	}
	e.text = append(e.text, '}')
	e.names = e.names[:from]
}

func (e *encoder) float(f float64) {
	format := byte('f')
	if size := math.Abs(f); size != 0 && (size < 1e-6 || size >= 1e21) {
		format = 'e'
	}
	e.text = strconv.AppendFloat(e.text, f, format, -1, 64)
	if n := len(e.text); format == 'e' && e.text[n-2] == '0' && e.text[n-3] == '-' { // e-09 is written e-9
		e.text = append(e.text[:n-2], e.text[n-1])
	}
}

func (e *encoder) string(s string) {
	const digits = "0123456789abcdef"
	out, done := append(e.text, '"'), 0
	for i := 0; i < len(s); {
		c, size := s[i], 1
		if c >= utf8.RuneSelf {
			var r rune
			r, size = utf8.DecodeRuneInString(s[i:])
			escape := ""
			switch {
			case r == utf8.RuneError && size == 1:
				escape = `\ufffd`
			case r == '\u2028':
				escape = `\u2028`
			case r == '\u2029':
				escape = `\u2029`
			}
			if escape != "" {
				out, done = append(append(out, s[done:i]...), escape...), i+size
			}
		} else if !isPlain(c) {
			out, done = append(out, s[done:i]...), i+1
			if short, ok := shortEscapes[c]; ok {
				out = append(out, '\\', short)
			} else {
				out = append(out, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
			}
		}
		i += size
	}
	e.text = append(append(out, s[done:]...), '"')
}

var shortEscapes = map[byte]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

// isPlain is true for ASCII characters that stand for themselves.
func isPlain(c byte) bool {
	return c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
}
