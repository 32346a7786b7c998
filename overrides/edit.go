package overrides

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// textEdit changes a document in a string field, such as YAML in a ConfigMap.
type textEdit struct {
	path   pointer
	format hubv1.TextFormat
	merge  map[string]any
	ops    []operation
}

func (c *compiler) addEdits(edits []hubv1.StringEdit) {
	for i := range edits {
		e, f := compileEdit(&edits[i])
		if c.fault("edits", i, f) {
			continue
		}
		for j := range e.ops {
			c.change.late = c.change.late || e.ops[j].op == hubv1.PatchTest
			c.change.expressions = c.change.expressions || e.ops[j].expression != nil
		}
		c.change.edits = append(c.change.edits, e)
	}
}

func compileEdit(in *hubv1.StringEdit) (textEdit, *fault) {
	e := textEdit{format: in.Format}
	bad := func(leaf, message string) (textEdit, *fault) {
		return e, &fault{leaf: leaf, path: printable(in.Path), message: message}
	}
	var message string
	if e.path, message = parsePointer(in.Path); message == "" {
		message = e.path.closedToWrites()
	}
	switch {
	case message != "":
		return bad("path", message)
	case in.Format != hubv1.TextYAML && in.Format != hubv1.TextJSON:
		return bad("format", fmt.Sprintf("has the unknown format %q: use YAML or JSON", printable(string(in.Format))))
	case in.MergePatch == nil && len(in.Patches) == 0:
		return bad("", "is edited without a change: set mergePatch or patches")
	case len(in.Patches) > maxPatches:
		return bad("patches", fmt.Sprintf("has more than %d operations: split it into several edits", maxPatches))
	}
	if in.MergePatch != nil {
		if e.merge, message = decodeMerge(in.MergePatch.Raw); message != "" {
			return bad("mergePatch", message)
		}
	}
	for i := range in.Patches {
		p := &in.Patches[i]
		op, f := compileOperation(&hubv1.PatchOperation{Op: p.Op, Path: p.Path, From: p.From, Value: p.Value, Expression: p.Expression}, true)
		if f != nil {
			return e, &fault{leaf: "patches", path: printable(in.Path), message: inside(f)}
		}
		e.ops = append(e.ops, op)
	}
	return e, nil
}

// inside returns the message of an error in a document inside a string field.
func inside(f *fault) string {
	if f.path == "" {
		return f.message
	}
	return "holds a document whose path " + f.path + " " + f.message
}

func (e *textEdit) apply(doc map[string]any, b *budget) *fault {
	text, before, f := e.read(doc, b)
	if f != nil {
		return f
	}
	after := runtime.DeepCopyJSON(before.value)
	if f := e.change(after, b); f != nil {
		return &fault{path: e.path.String(), message: inside(f), unmet: f.unmet}
	}
	if equal(before.value, after) {
		return nil
	}
	changed, message := before.written(after, text)
	if message != "" {
		return &fault{path: e.path.String(), message: message}
	}
	return edit(doc, e.path, adviceCreate, replace(changed))
}

// read parses the document in the string field. It returns the text of the field, the parsed document, and an error if
// there is one.
func (e *textEdit) read(doc map[string]any, b *budget) (string, *document, *fault) {
	bad := func(message string) (string, *document, *fault) {
		return "", nil, &fault{path: e.path.String(), message: message}
	}
	if e.path[0] == "data" && doc["kind"] == "Secret" && doc["apiVersion"] == "v1" {
		return bad("holds base64, which edits cannot read: replace the whole value by an operation of patches, such as with base64.encode(bytes('text')) as its expression")
	}
	v, ok := e.path.lookup(doc)
	if !ok {
		return "", nil, missing(e.path, "correct the path, or let mergePatch put the text there")
	}
	text, ok := v.(string)
	switch {
	case !ok:
		return bad("is not a string: use mergePatch or patches of the rule")
	case len(text) > maxTextBytes:
		return bad(fmt.Sprintf("holds more than %d KiB, which is too much to edit: split it into several fields", maxTextBytes>>10))
	}
	b.text -= len(text)
	b.marks -= marksOf(text)
	if b.text < 0 || b.marks < 0 {
		return bad(fmt.Sprintf("holds too much to edit: all edits of one object in one cluster may read %d KiB and about %d entries: edit fewer or smaller fields", maxText>>10, maxMarks/2))
	}
	parsed, message := parseDocument(e.format, text)
	if message != "" {
		return bad(message)
	}
	return text, parsed, nil
}

// marksOf counts the characters of a text that may begin a new YAML node, such as a colon. The parsed text has at most
// one node more than this number.
func marksOf(text string) int {
	n := 0
	for i := range len(text) {
		switch text[i] {
		case '\n', ':', ',', '[', '{', '?':
			n++
		case '-':
			if i+1 < len(text) && (text[i+1] == ' ' || text[i+1] == '\t') {
				n++
			}
		}
	}
	return n
}

// change applies the edit to the decoded document.
func (e *textEdit) change(document map[string]any, b *budget) *fault {
	merge(document, e.merge)
	for i := range e.ops {
		if f := e.ops[i].apply(document, b); f != nil {
			return f
		}
	}
	return nil
}

// claim adds the claims of the edit. The fields of the document count as fields below the string field. If the text
// cannot be read, or another action of the policy may replace the text, claim claims the whole string field.
func (e *textEdit) claim(to *claims, state map[string]any) {
	_, parsed, f := e.read(state, to.budget)
	if f != nil || to.rewritten(e.path) {
		to.ordered(e.path)
		return
	}
	n := to.root.at(e.path)
	n.add(claim{kind: claimText, value: string(e.format), claimant: to.claimant})
	n.claimMerge(to.claimant, e.merge, parsed.value)
	for i := range e.ops {
		n.claimOperation(to.claimant, &e.ops[i], parsed.value)
	}
}

func (e *textEdit) touches(path pointer) bool {
	return path.isAtOrBelow(e.path) || e.path.isAtOrBelow(path)
}
