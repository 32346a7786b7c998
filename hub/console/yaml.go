package console

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
)

const (
	// maxLines is the maximum number of lines of a copy's YAML.
	maxLines = 1000
	// maxLineLength is the maximum length of a line, in characters.
	maxLineLength = 400
)

// fromTemplate is the author of a value of the hub object, see overrides.Author.
const fromTemplate = "template"

// yamlLine is a line of a copy, with the rule that set it. By is empty if the line is as in the hub object.
type yamlLine struct {
	N        int
	Text, By string
	Was      string // the value before, with its author unless it is that of the hub object
	Set      bool
}

// yamlWriter writes an object as lines, and remembers the JSON pointer of each.
type yamlWriter struct {
	fields map[string]view.FieldRow
	lines  []yamlLine
}

// yamlOf returns the lines of a copy as the hub renders it. fields says who set which of them.
func yamlOf(manifest map[string]any, fields []view.FieldRow) []yamlLine {
	w := yamlWriter{fields: map[string]view.FieldRow{}}
	for _, f := range fields {
		w.fields[f.Field] = f
	}
	w.object(manifest, "", "", "")
	for i := range w.lines {
		w.lines[i].N = i + 1
	}
	return w.lines
}

// first are the keys that come first in an object of Kubernetes.
var first = []string{"apiVersion", "kind", "metadata", "spec"}

func (w *yamlWriter) object(of map[string]any, pointer, indent, lead string) {
	keys := slices.Sorted(maps.Keys(of))
	if pointer == "" {
		for _, key := range slices.Backward(first) {
			if i := slices.Index(keys, key); i >= 0 {
				keys = slices.Insert(slices.Delete(keys, i, i+1), 0, key)
			}
		}
	}
	for i, key := range keys {
		start := indent
		if i == 0 && lead != "" {
			start = lead
		}
		w.value(of[key], pointer+"/"+escaped.Replace(key), indent, start+scalar(key)+":")
	}
}

// escaped escapes a key for a JSON pointer (RFC 6901).
var escaped = strings.NewReplacer("~", "~0", "/", "~1")

// value writes a value behind a text such as "  replicas:" or "  -".
func (w *yamlWriter) value(v any, pointer, indent, before string) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			w.add(before+" {}", pointer)
			return
		}
		w.add(before, pointer)
		w.object(v, pointer, indent+"  ", "")
	case []any:
		if len(v) == 0 {
			w.add(before+" []", pointer)
			return
		}
		w.add(before, pointer)
		for i, item := range v {
			at := fmt.Sprintf("%s/%d", pointer, i)
			if fields, is := item.(map[string]any); is && len(fields) > 0 {
				from := len(w.lines)
				w.object(fields, at, indent+"  ", indent+"- ")
				w.mark(from, at)
			} else {
				w.value(item, at, indent, indent+"-")
			}
		}
	default:
		w.add(before+" "+scalar(v), pointer)
	}
}

// mark adds the author of an item of a list to its first line.
func (w *yamlWriter) mark(line int, pointer string) {
	if f, set := w.fields[pointer]; set && line < len(w.lines) && w.lines[line].By == "" {
		w.lines[line].set(f)
	}
}

func (w *yamlWriter) add(text, pointer string) {
	if len(w.lines) >= maxLines {
		return
	}
	content := strings.TrimLeft(text, " ")
	line := yamlLine{Text: text[:len(text)-len(content)] + view.Printable(hubv1.CutMessage(content, maxLineLength))}
	if f, set := w.fields[pointer]; set {
		line.set(f)
	}
	w.lines = append(w.lines, line)
}

func (l *yamlLine) set(f view.FieldRow) {
	l.Set, l.By = true, f.SetBy
	if len(f.Shadowed) == 0 {
		return
	}
	l.Was = f.Shadowed[0]
	if by, value, found := strings.Cut(l.Was, ": "); found {
		l.Was = value
		if by != fromTemplate {
			l.Was += " by " + by
		}
	}
}

// scalar returns a value as YAML on one line.
func scalar(v any) string {
	if text, is := v.(string); is && strings.ContainsAny(text, "\n\r\t") {
		return fmt.Sprintf("%q", text)
	}
	out, err := yaml.Marshal(v)
	if err != nil {
		return "?"
	}
	return strings.ReplaceAll(strings.TrimSpace(string(out)), "\n", " ")
}
