package overrides

import (
	"fmt"
	"strconv"
	"strings"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// pointer is a JSON pointer (RFC 6901), as a list of unescaped keys and indexes (steps).
type pointer []string

var (
	unescape = strings.NewReplacer("~1", "/", "~0", "~")
	escape   = strings.NewReplacer("~", "~0", "/", "~1")
)

// parsePointer parses a JSON pointer with at least one step. The second result is an error message, or empty.
func parsePointer(text string) (pointer, string) {
	switch {
	case len(text) > maxPointerBytes:
		return nil, fmt.Sprintf("has more than %d bytes: use mergePatch, or a shorter path", maxPointerBytes)
	case !strings.HasPrefix(text, "/"):
		return nil, "is no JSON pointer below the root: it must start with /, such as /spec/replicas"
	case strings.Count(text, "/") > maxDepth:
		return nil, fmt.Sprintf("has more than %d steps: use mergePatch, or a shorter path", maxDepth)
	}
	steps := strings.Split(text[1:], "/")
	for i, s := range steps {
		for j := strings.IndexByte(s, '~'); j >= 0 && j < len(s); j++ {
			if s[j] == '~' && (j+1 == len(s) || s[j+1] != '0' && s[j+1] != '1') {
				return nil, "is no JSON pointer: ~ must be written ~0, and / inside a key ~1"
			}
		}
		steps[i] = unescape.Replace(s)
	}
	return steps, ""
}

// String returns the pointer as text, for messages.
func (p pointer) String() string {
	var b strings.Builder
	for _, step := range p {
		b.WriteByte('/')
		b.WriteString(escape.Replace(step))
		if b.Len() > maxPointerBytes {
			break
		}
	}
	return printable(b.String())
}

// parent returns the pointer without its last step.
func (p pointer) parent() pointer { return p[:len(p)-1] }

func (p pointer) last() string { return p[len(p)-1] }

// isAtOrBelow reports whether p equals q or points to a value below q. For steps that select items, it reports whether
// this is possible.
func (p pointer) isAtOrBelow(q pointer) bool {
	if len(p) < len(q) {
		return false
	}
	for i, step := range q {
		if !meets(p[i], step) {
			return false
		}
	}
	return true
}

// over reports whether one of the two pointers points to a value in the value of the other one.
func (p pointer) over(q pointer) bool { return p.isAtOrBelow(q) || q.isAtOrBelow(p) }

// lookup returns the value at the pointer in v. The second result is false if there is no such value.
func (p pointer) lookup(v any) (any, bool) {
	for _, step := range p {
		var ok bool
		if v, ok = child(v, step); !ok {
			return nil, false
		}
	}
	return v, true
}

func child(v any, step string) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		c, ok := v[step]
		return c, ok
	case []any:
		if i, ok := index(step); ok && i < len(v) {
			return v[i], true
		}
	}
	return nil, false
}

// index parses a step of a pointer as a list index: decimal, without sign or leading zero, at most maxIndex. The second
// result is false if the step is no such index.
func index(step string) (int, bool) {
	if step == "" || len(step) > 5 || len(step) > 1 && step[0] == '0' {
		return 0, false
	}
	for i := range len(step) {
		if step[i] < '0' || step[i] > '9' {
			return 0, false
		}
	}
	i, err := strconv.Atoi(step)
	return i, err == nil && i <= maxIndex
}

// These are the reasons why override rules must not change or read the value at a path.
const (
	whyIdentity  = "is the identity of the object, which cannot be overridden: drop it from the rule"
	whyStatus    = "belongs to the controllers in the member: drop it from the rule"
	whyMetadata  = "is metadata that cannot be overridden: name one key of /metadata/labels or /metadata/annotations"
	whyOurs      = "is a label or annotation of Hanse, which cannot be overridden: drop it from the rule"
	readMetadata = "is metadata that cannot be copied: name one key of /metadata/labels or /metadata/annotations"
	readOurs     = "is a label or annotation of Hanse, which cannot be copied: drop it from the rule"
	whyString    = "is a label or annotation and takes only a string: put the value in quotes"
)

// closedToWrites returns why a rule may not change the value at the pointer. The text is empty if a rule may change the
// value.
func (p pointer) closedToWrites() string {
	switch p[0] {
	case "apiVersion", "kind":
		return whyIdentity
	case "status":
		return whyStatus
	case "metadata":
		return p.closedMetadata()
	}
	return ""
}

func (p pointer) closedMetadata() string {
	if len(p) > 1 && (p[1] == "name" || p[1] == "namespace" || p[1] == "uid") {
		return whyIdentity
	}
	if len(p) != 3 || !isKeyMap(p[1]) {
		return whyMetadata
	}
	if strings.HasPrefix(p[2], hubv1.Prefix) {
		return whyOurs
	}
	return ""
}

// closedToReads returns why a rule may not copy the value at the pointer. The text is empty if a rule may copy the
// value. Rules may copy metadata.name and metadata.namespace.
func (p pointer) closedToReads() string {
	switch {
	case p[0] == "status":
		return whyStatus
	case p[0] != "metadata" || len(p) == 1 || p[1] == "name" || p[1] == "namespace":
		return ""
	case !isKeyMap(p[1]):
		return readMetadata
	case len(p) > 2 && strings.HasPrefix(p[2], hubv1.Prefix):
		return readOurs
	}
	return ""
}

// isMetadata reports whether the pointer points to a label or an annotation. The caller has checked that rules may
// change the value at the pointer.
func (p pointer) isMetadata() bool { return p[0] == "metadata" }

func isKeyMap(field string) bool { return field == "labels" || field == "annotations" }
