package overrides

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parseJSON parses JSON into YAML nodes, because these nodes keep the order of keys and the digits of numbers.
func parseJSON(text string) (*yaml.Node, error) {
	if nesting([]byte(text)) > maxDepth {
		return nil, errLevels
	}
	if !json.Valid([]byte(text)) { // the token reader accepts misplaced commas
		return nil, errUnreadable
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	root, err := jsonNode(decoder)
	if err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errDocuments
	}
	return root, nil
}

func jsonNode(decoder *json.Decoder) (*yaml.Node, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, errUnreadable
	}
	n := &yaml.Node{Kind: yaml.ScalarNode}
	switch t := token.(type) {
	case nil:
		n.Tag, n.Value = "!!null", "null"
	case bool:
		n.Tag, n.Value = "!!bool", "false"
		if t {
			n.Value = "true"
		}
	case string:
		n.Tag, n.Value = "!!str", t
	case json.Number:
		n.Tag, n.Value = "!!float", t.String()
	case json.Delim:
		n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		if t == '{' {
			n.Kind, n.Tag = yaml.MappingNode, "!!map"
		}
		for decoder.More() {
			c, err := jsonNode(decoder)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, c)
		}
		if _, err := decoder.Token(); err != nil { // read the closing bracket
			return nil, errUnreadable
		}
	}
	return n, nil
}

// writeJSON writes YAML nodes as JSON. text is the previous JSON. If text has only one line, the result has no white
// space. Otherwise the result has the indentation of text.
func writeJSON(n *yaml.Node, text string) string {
	var b bytes.Buffer
	writeJSONNode(&b, n)
	line, more, lines := strings.Cut(strings.TrimSpace(text), "\n")
	if !lines {
		return b.String()
	}
	indent := more[:len(more)-len(strings.TrimLeft(more, " \t"))]
	if line == "" || indent == "" || len(indent) > 8 {
		indent = "  "
	}
	var out bytes.Buffer
	if json.Indent(&out, b.Bytes(), "", indent) != nil {
		return b.String()
	}
	if strings.HasSuffix(text, "\n") {
		out.WriteByte('\n')
	}
	return out.String()
}

func writeJSONNode(b *bytes.Buffer, n *yaml.Node) {
	switch {
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str":
		writeJSONString(b, n.Value)
	case n.Kind == yaml.ScalarNode:
		b.WriteString(n.Value)
	case n.Kind == yaml.SequenceNode:
		b.WriteByte('[')
		for i, c := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSONNode(b, c)
		}
		b.WriteByte(']')
	default:
		b.WriteByte('{')
		for i, c := range n.Content {
			switch {
			case i%2 == 0:
				if i > 0 {
					b.WriteByte(',')
				}
				writeJSONString(b, c.Value)
				b.WriteByte(':')
			default:
				writeJSONNode(b, c)
			}
		}
		b.WriteByte('}')
	}
}

func writeJSONString(b *bytes.Buffer, s string) {
	encoder := json.NewEncoder(b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) // a string can always be encoded
	b.Truncate(b.Len() - 1)
}
