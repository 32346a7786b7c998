package manifest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
)

// manifest is one object that was read, with its position in the input.
type manifest struct {
	// where describes the position of the object in messages to users.
	where  string
	object *unstructured.Unstructured
}

// reader reads YAML and JSON documents into objects, until the bundle has too many objects or bytes.
type reader struct {
	problems *problems
	// refuse returns an error for a kind that is not allowed.
	refuse func(schema.GroupKind) error
	found  []manifest
	// lastWins is true for templates of charts, which are read as helm reads them: if a map sets a key twice, the last
	// value wins. A merge (<<) sets its keys at its place, so it can replace an earlier key. If lastWins is false, a key
	// that is set twice is an error.
	lastWins bool
	// texts caches, for each YAML key without quotes, whether YAML reads the key as a string.
	texts map[string]bool
	// objects is the number of all objects that were read, and bytes the number of all bytes. Both include refused
	// objects.
	objects, bytes int
	stopped        bool
}

// readAll returns the objects of all manifests, of all ConfigMaps, and of the rendered chart, in this order.
func readAll(in Input, p *problems) []manifest {
	r := &reader{problems: p, refuse: refuseKind, texts: map[string]bool{}}
	for i, m := range in.Manifests {
		where := fmt.Sprintf("manifests[%d]", i)
		text, err := m.MarshalJSON()
		if err != nil {
			p.add(where, errors.New("it is not JSON: write an object with apiVersion, kind and metadata.name"))
			continue
		}
		r.json(where, text)
	}
	for i := range in.ConfigMaps {
		r.configMap(&in.ConfigMaps[i])
	}
	r.refuse = refuseUnsendable // the values of a chart's Secret are in no spec that users read
	for _, o := range in.Rendered {
		r.json("the chart, "+hubv1.IdentityOf(o).String(), canonical.Bytes(o.Object))
	}
	return r.found
}

// configMap reads the objects in the values of a ConfigMap, sorted by key.
func (r *reader) configMap(c *corev1.ConfigMap) {
	values := map[string][]byte{}
	for key, value := range c.Data {
		values[key] = []byte(value)
	}
	maps.Copy(values, c.BinaryData)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		r.value(fmt.Sprintf("ConfigMap %s, key %s", c.Name, key), values[key])
	}
}

// value reads the documents in one value of a ConfigMap. Errors contain the number of the document. Empty documents
// have no number.
func (r *reader) value(where string, value []byte) {
	if !utf8.Valid(value) {
		r.problems.add(where, errors.New("the value is not UTF-8: store YAML or JSON there"))
		return
	}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(value)))
	number := 0
	next := func() string {
		number++
		return fmt.Sprintf("%s, document %d", where, number)
	}
	for !r.stopped {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			r.problems.add(next(), errors.New("a line begins with --- and has more text: write --- on a line of its own"))
			return
		}
		if texts, ok := jsonTexts(document); ok {
			for _, text := range texts {
				r.json(next(), text)
			}
			continue
		}
		r.yaml(next, document)
	}
}

// jsonTexts returns the JSON objects of a document that consists of nothing but JSON objects, one after the other. It
// returns false for any other document.
func jsonTexts(document []byte) ([]json.RawMessage, bool) {
	if !utilyaml.IsJSONBuffer(document) {
		return nil, false
	}
	var texts []json.RawMessage
	decoder := json.NewDecoder(bytes.NewReader(document))
	for {
		var text json.RawMessage
		err := decoder.Decode(&text)
		if errors.Is(err, io.EOF) {
			return texts, true
		}
		if err != nil {
			return nil, false
		}
		texts = append(texts, text)
	}
}

// json reads a JSON text with one object or one list of objects.
func (r *reader) json(where string, text []byte) {
	if !r.count(len(text)) {
		return
	}
	var value any
	repeated, err := kjson.UnmarshalStrict(text, &value, kjson.DisallowDuplicateFields)
	switch {
	case err != nil:
		r.problems.add(where, fmt.Errorf("%w: correct the JSON", err))
	case len(repeated) > 0 && !r.lastWins:
		r.problems.add(where, fmt.Errorf("%w: remove one of them", repeated[0]))
	default:
		r.document(where, value)
	}
}

// yaml reads a YAML document with one object or one list of objects. The function where returns the position of the
// document for errors. yaml calls it only if the document is not empty.
func (r *reader) yaml(where func() string, document []byte) {
	size, err := r.measure(document)
	if errors.Is(err, io.EOF) {
		return // the document has only comments
	}
	if err != nil {
		r.problems.add(where(), err)
		return
	}
	if !r.count(size) {
		return
	}
	unmarshal := utilyaml.UnmarshalStrict
	if r.lastWins {
		unmarshal = utilyaml.Unmarshal
	}
	var value any
	if err := unmarshal(document, &value); err != nil {
		r.problems.add(where(), fmt.Errorf("%s: correct the YAML", strings.Join(strings.Fields(err.Error()), " ")))
		return
	}
	if value == nil {
		return // the document is empty, such as a template that renders to nothing
	}
	r.document(where(), value)
}

// count adds the size of a document to the bytes of the bundle. It returns false if the bundle is now too large, or if
// an earlier document already exceeded a limit.
func (r *reader) count(size int) bool {
	if r.bytes += size; !r.stopped && r.bytes > MaxTotalBytes {
		r.stop(errTotal)
	}
	return !r.stopped
}

func (r *reader) stop(err error) {
	r.problems.add("", err)
	r.stopped = true
}

// measure returns the size of a YAML document in which each alias is replaced by its value. It returns io.EOF for an
// empty document. It refuses documents that sigs.k8s.io/yaml, which converts them to JSON, would read only in part or
// ambiguously. That library limits the number of aliases, but not the memory for their values.
func (r *reader) measure(document []byte) (int, error) {
	var root, rest yamlv3.Node
	decoder := yamlv3.NewDecoder(bytes.NewReader(document))
	if err := decoder.Decode(&root); err != nil {
		if errors.Is(err, io.EOF) {
			return 0, io.EOF
		}
		return 0, fmt.Errorf("%w: correct the YAML", err)
	}
	if err := decoder.Decode(&rest); !errors.Is(err, io.EOF) {
		return 0, errors.New("there is text after the end of the document: correct its indentation, or write --- on a line before it")
	}
	return r.size(&root, map[*yamlv3.Node]int{})
}

// size returns the size of a YAML node in which each alias is replaced by its value. anchors has the sizes of the
// earlier nodes to which an alias may refer.
func (r *reader) size(n *yamlv3.Node, anchors map[*yamlv3.Node]int) (int, error) {
	// The tag !!merge of a key << changes nothing: controller tools write it into definitions.
	if n.Style&yamlv3.TaggedStyle != 0 && (n.Tag != "!!merge" || n.Value != "<<") {
		return 0, fmt.Errorf("line %d has the tag %q: remove the tag", n.Line, n.Tag)
	}
	if n.Kind == yamlv3.AliasNode {
		size, complete := anchors[n.Alias]
		if !complete {
			return 0, fmt.Errorf("line %d has an alias inside the value to which it refers: write the value out", n.Line)
		}
		return size, nil
	}
	sum := len(n.Value) + 1
	for i, child := range n.Content {
		if n.Kind == yamlv3.MappingNode && i%2 == 0 && !r.isText(child) {
			return 0, fmt.Errorf("line %d has the key %q, which is not a string: write it in quotes", child.Line, child.Value)
		}
		size, err := r.size(child, anchors)
		if err != nil {
			return 0, err
		}
		sum = min(sum+size, MaxTotalBytes+1)
	}
	if n.Anchor != "" {
		anchors[n] = sum
	}
	return sum, nil
}

// isText reports whether a YAML key is a string to sigs.k8s.io/yaml. The keys yes and 8080 are a boolean and a number,
// and isText returns false. The library converts such a key to a string, which may be equal to another key of the same
// map.
func (r *reader) isText(key *yamlv3.Node) bool {
	switch {
	case key.Kind != yamlv3.ScalarNode:
		return false
	case key.Style != 0 || key.Value == "<<": // the key is quoted, has a tag, or is a merge key
		return true
	}
	text, known := r.texts[key.Value]
	if !known {
		var value any
		err := yaml.Unmarshal([]byte(key.Value), &value)
		_, text = value.(string)
		text = text && err == nil
		r.texts[key.Value] = text
	}
	return text
}
