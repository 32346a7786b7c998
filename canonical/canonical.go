// Package canonical writes values of unstructured objects as canonical JSON: equal values give equal text.
//
// It is the text of encoding/json, and does not change with it, because digests and hashes of it are kept in
// annotations and rows. It is made without reflection, which is what most of the time goes to otherwise.
package canonical

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Encoder appends to Text. The zero value is ready; one that is used again saves allocations.
type Encoder struct {
	Text  []byte
	names []string // of the maps that are being written
}

// Bytes is the JSON of a value of an unstructured object.
func Bytes(v any) []byte {
	var e Encoder
	e.Value(v)
	return e.Text
}

// Forget drops what the encoder holds on to of the values that were written.
func (e *Encoder) Forget() {
	clear(e.names[:cap(e.names)])
	e.Text, e.names = e.Text[:0], e.names[:0]
}

// Value appends the JSON of a value of an unstructured object.
func (e *Encoder) Value(v any) {
	switch v := v.(type) {
	case nil:
		e.Text = append(e.Text, "null"...)
	case string:
		e.String(v)
	case bool:
		e.Text = strconv.AppendBool(e.Text, v)
	case int64:
		e.Text = strconv.AppendInt(e.Text, v, 10)
	case float64:
		e.float(v)
	case map[string]any:
		e.object(v)
	case []any:
		e.Text = append(e.Text, '[')
		for i, item := range v {
			if i > 0 {
				e.Text = append(e.Text, ',')
			}
			e.Value(item)
		}
		e.Text = append(e.Text, ']')
	default: // no JSON decoder makes such a value
		text, err := json.Marshal(v)
		if err != nil {
			text = []byte("?")
		}
		e.Text = append(e.Text, text...)
	}
}

func (e *Encoder) object(m map[string]any) {
	from := len(e.names)
	for name := range m {
		e.names = append(e.names, name)
	}
	slices.Sort(e.names[from:])
	e.Text = append(e.Text, '{')
	for i := range len(m) {
		if i > 0 {
			e.Text = append(e.Text, ',')
		}
		name := e.names[from+i]
		e.String(name)
		e.Text = append(e.Text, ':')
		e.Value(m[name])
	}
	e.Text = append(e.Text, '}')
	e.names = e.names[:from]
}

func (e *Encoder) float(f float64) {
	format := byte('f')
	if size := math.Abs(f); size != 0 && (size < 1e-6 || size >= 1e21) {
		format = 'e'
	}
	e.Text = strconv.AppendFloat(e.Text, f, format, -1, 64)
	if n := len(e.Text); format == 'e' && e.Text[n-2] == '0' && e.Text[n-3] == '-' { // e-09 is written e-9
		e.Text = append(e.Text[:n-2], e.Text[n-1])
	}
}

// String appends the JSON of a text.
func (e *Encoder) String(s string) {
	const digits = "0123456789abcdef"
	out, done := append(e.Text, '"'), 0
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
		} else if !IsPlain(c) {
			out, done = append(out, s[done:i]...), i+1
			if short, ok := shortEscapes[c]; ok {
				out = append(out, '\\', short)
			} else {
				out = append(out, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
			}
		}
		i += size
	}
	e.Text = append(append(out, s[done:]...), '"')
}

var shortEscapes = map[byte]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

// IsPlain is true for ASCII characters that stand for themselves.
func IsPlain(c byte) bool {
	return c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
}
