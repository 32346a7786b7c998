package overrides

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// document is the parsed text of a string field. It has the YAML nodes with the formatting, and the value of the text.
// Edits change the value. The method written then changes only the nodes whose value differs, so that all other nodes
// keep their order, comments and style.
type document struct {
	format hubv1.TextFormat
	root   *yaml.Node
	value  map[string]any
	node   *yaml.Node // the node below root that holds the value
}

// parseDocument parses a text. If the text is invalid, the second result is an error message, which never quotes the
// text. Otherwise the message is empty.
func parseDocument(format hubv1.TextFormat, text string) (*document, string) {
	parse := parseYAML
	if format == hubv1.TextJSON {
		parse = parseJSON
	}
	root, err := safely(func() (*yaml.Node, error) { return parse(text) })
	if err != nil {
		return nil, notHeld(format, err)
	}
	d := &document{format: format, root: root, node: root}
	if root.Kind == yaml.DocumentNode {
		d.node = root.Content[0]
	}
	v, err := valueOf(d.node, maxDepth)
	if err != nil {
		return nil, notHeld(format, err)
	}
	var ok bool
	if d.value, ok = v.(map[string]any); !ok {
		return nil, notHeld(format, errNoObject)
	}
	return d, ""
}

// These errors describe invalid texts. The errors of the parsers are not used, because they may quote the text.
var (
	errUnreadable = errors.New("the syntax of the text is invalid, or the text is empty")
	errNoObject   = errors.New("the root of the text is not an object")
	errDocuments  = errors.New("the text has more than one document")
	errAnchors    = errors.New("the text has anchors, aliases or merge keys, which are not supported")
	errTags       = errors.New("the text has YAML tags, which are not supported")
	errKeys       = errors.New("the text has a duplicate key, or a key that is not a scalar")
	errLevels     = fmt.Errorf("the text nests deeper than %d levels", maxDepth)
)

func notHeld(format hubv1.TextFormat, err error) string {
	return fmt.Sprintf("holds no %s that can be edited, because %s: correct the text or remove the edit", format, err)
}

// safely converts a panic of the YAML library into an error.
func safely[T any](f func() (T, error)) (v T, err error) {
	defer func() {
		if recover() != nil {
			err = errUnreadable
		}
	}()
	return f()
}

func parseYAML(text string) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var root, more yaml.Node
	if err := decoder.Decode(&root); err != nil || len(root.Content) != 1 {
		return nil, errUnreadable
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errDocuments
	}
	return &root, nil
}

// valueOf returns the value of a YAML node as decoded JSON. It refuses anchors, because a few anchors can expand to a
// huge value. levels is the maximum number of lists and maps inside each other.
func valueOf(n *yaml.Node, levels int) (any, error) {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return nil, errAnchors
	case n.Style&yaml.TaggedStyle != 0:
		return nil, errTags
	case n.Kind == yaml.ScalarNode:
		return scalarOf(n), nil
	case levels == 0:
		return nil, errLevels
	case n.Kind == yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, c := range n.Content {
			var err error
			if list[i], err = valueOf(c, levels-1); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	object := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch _, twice := object[key.Value]; {
		case key.Kind == yaml.AliasNode || key.Anchor != "" || key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge":
			return nil, errAnchors
		case key.Style&yaml.TaggedStyle != 0:
			return nil, errTags
		case key.Kind != yaml.ScalarNode || twice:
			return nil, errKeys
		}
		v, err := valueOf(n.Content[i+1], levels-1)
		if err != nil {
			return nil, err
		}
		object[key.Value] = v
	}
	return object, nil
}

// scalarOf returns the value of a YAML scalar. A value for which JSON has no type, such as .inf or a date, becomes a
// string, so that it keeps its notation.
func scalarOf(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int", "!!float":
		digits := strings.ReplaceAll(n.Value, "_", "")
		if i, err := strconv.ParseInt(digits, 0, 64); err == nil {
			return i
		}
		if f, err := strconv.ParseFloat(digits, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return f
		}
	}
	return n.Value
}

// written returns the text of the document with this new value. text is the previous text, whose formatting the result
// keeps where possible. The second result is an error message, or empty.
func (d *document) written(value map[string]any, text string) (string, string) {
	out, err := safely(func() (string, error) {
		if err := rewrite(d.node, d.value, value); err != nil {
			return "", err
		}
		if d.format == hubv1.TextJSON {
			return writeJSON(d.node, text), nil
		}
		return writeYAML(d.root, text)
	})
	if err != nil {
		return "", "cannot be written again: simplify the text or drop the edit"
	}
	if len(out) > 2*maxTextBytes {
		return "", fmt.Sprintf("would hold more than %d KiB: change less, or split the text into several fields", 2*maxTextBytes>>10)
	}
	// The new text is parsed again, because the YAML library may put a comment in the wrong place. Without this check,
	// such an error would only show on the member.
	if again, message := parseDocument(d.format, out); message != "" || !equal(again.value, value) {
		return "", "cannot be written without changing its meaning: simplify the text or drop the edit"
	}
	return out, ""
}

// rewrite changes a YAML node from the value before to the value after.
func rewrite(n *yaml.Node, before, after any) error {
	if equal(before, after) {
		return nil
	}
	switch a := after.(type) {
	case map[string]any:
		if b, ok := before.(map[string]any); ok {
			return rewriteMap(n, b, a)
		}
	case []any:
		if b, ok := before.([]any); ok {
			return rewriteList(n, b, a)
		}
	}
	fresh, err := nodeOf(after)
	if err != nil {
		return err
	}
	if quotes := yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle; n.Kind == yaml.ScalarNode && fresh.ShortTag() == "!!str" && fresh.Style == 0 {
		fresh.Style = n.Style & quotes
	}
	fresh.HeadComment, fresh.LineComment, fresh.FootComment = n.HeadComment, n.LineComment, n.FootComment
	*n = *fresh
	return nil
}

func nodeOf(v any) (*yaml.Node, error) {
	var n yaml.Node
	if err := n.Encode(v); err != nil {
		return nil, errUnreadable
	}
	return &n, nil
}

// rewriteMap changes a map, and keeps the order of its keys. It inserts a new key before the first greater key, so that
// the order of insertions does not matter.
func rewriteMap(n *yaml.Node, before, after map[string]any) error {
	kept := n.Content[:0:0]
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		v, ok := after[key.Value]
		if !ok {
			continue
		}
		if err := rewrite(value, before[key.Value], v); err != nil {
			return err
		}
		kept = append(kept, key, value)
	}
	out, next := make([]*yaml.Node, 0, len(after)*2), 0
	for _, key := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[key]; ok {
			continue
		}
		name, err := nodeOf(key)
		if err != nil {
			return err
		}
		value, err := nodeOf(after[key])
		if err != nil {
			return err
		}
		for next < len(kept) && kept[next].Value <= key {
			out = append(out, kept[next], kept[next+1])
			next += 2
		}
		out = append(out, name, value)
	}
	out = append(out, kept[next:]...)
	if len(n.Content) == 0 {
		n.Style &^= yaml.FlowStyle // the flow style was only needed for {}
	}
	n.Content = out
	return nil
}

// rewriteList changes a list. It keeps the equal elements at both ends, and rewrites the elements between them.
func rewriteList(n *yaml.Node, before, after []any) error {
	start := 0
	for start < min(len(before), len(after)) && equal(before[start], after[start]) {
		start++
	}
	end := 0
	for end < min(len(before), len(after))-start && equal(before[len(before)-1-end], after[len(after)-1-end]) {
		end++
	}
	kept := slices.Clone(n.Content[:start])
	for i := start; i < len(after)-end; i++ {
		if i < len(before)-end {
			if err := rewrite(n.Content[i], before[i], after[i]); err != nil {
				return err
			}
			kept = append(kept, n.Content[i])
			continue
		}
		fresh, err := nodeOf(after[i])
		if err != nil {
			return err
		}
		kept = append(kept, fresh)
	}
	if len(n.Content) == 0 {
		n.Style &^= yaml.FlowStyle
	}
	n.Content = append(kept, n.Content[len(n.Content)-end:]...)
	return nil
}

func writeYAML(root *yaml.Node, text string) (string, error) {
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if compactLists(root) {
		encoder.CompactSeqIndent()
	}
	if err := encoder.Encode(root); err != nil {
		return "", err
	}
	if err := encoder.Close(); err != nil {
		return "", err
	}
	out := b.String()
	if strings.HasPrefix(text, "---\n") && !strings.HasPrefix(out, "---\n") {
		out = "---\n" + out
	}
	if !strings.HasSuffix(text, "\n") {
		out = strings.TrimSuffix(out, "\n")
	}
	return out, nil
}

// compactLists reports whether the lists of the text are not indented further than the keys above them. It looks at the
// first list that is the value of a key.
func compactLists(root *yaml.Node) bool {
	compact, found := false, false
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		for i, c := range n.Content {
			if found {
				return
			}
			if key := i - 1; n.Kind == yaml.MappingNode && i%2 == 1 && c.Kind == yaml.SequenceNode && c.Style&yaml.FlowStyle == 0 && len(c.Content) > 0 && c.Line > 0 {
				compact, found = c.Column == n.Content[key].Column, true
				return
			}
			walk(c)
		}
	}
	walk(root)
	return compact
}
