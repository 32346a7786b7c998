package informer

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// unread is the object of a watch event. Only the identity and the resourceVersion of the object are decoded. If the
// kind already has this version of the object, the rest is never decoded.
type unread struct {
	data  []byte
	whole *unstructured.Unstructured // set instead of data, if the client has decoded the object
	glance
}

// unreadOf returns the object of a watch event. It returns false if the event has a Status instead of an object.
func unreadOf(o runtime.Object) (*unread, bool) {
	switch o := o.(type) {
	case *unread:
		return o, true
	case *unstructured.Unstructured:
		g := glance{o.GetKind(), o.GetNamespace(), o.GetName(), string(o.GetUID()), o.GetResourceVersion()}
		return &unread{whole: o, glance: g}, true
	}
	return nil, false
}

// GetObjectKind implements runtime.Object.
func (*unread) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object.
func (u *unread) DeepCopyObject() runtime.Object {
	return &unread{data: bytes.Clone(u.data), whole: u.whole.DeepCopy(), glance: u.glance}
}

// read decodes the whole object.
func (u *unread) read() (*unstructured.Unstructured, error) {
	if u.whole != nil {
		return u.whole, nil
	}
	out := &unstructured.Unstructured{}
	_, _, err := objects{unstructured.UnstructuredJSONScheme}.Decode(u.data, nil, out)
	return out, err
}

// is reports whether o has the UID and the resourceVersion of g. It returns false if g has no resourceVersion.
func (g *glance) is(o metav1.Object) bool {
	return g.version != "" && o.GetResourceVersion() == g.version && string(o.GetUID()) == g.uid
}

// glance has the fields that identify an object and its version.
type glance struct{ kind, namespace, name, uid, version string }

// look decodes only the identity and the resourceVersion from the JSON of an object. It returns false if the JSON has
// no identity. It does not check whether the rest of the JSON is valid.
func look(data []byte) (g glance, ok bool) {
	s := scanner{rest: data}
	metadata := false
	s.object(func(name string) {
		switch name {
		case "kind":
			g.kind = s.text()
		case "metadata":
			metadata = true
			s.object(func(name string) {
				switch name {
				case "namespace":
					g.namespace = s.text()
				case "name":
					g.name = s.text()
				case "uid":
					g.uid = s.text()
				case "resourceVersion":
					g.version = s.text()
				default:
					s.skip()
				}
			})
		default:
			s.skip()
		}
		s.done = s.done || metadata && g.kind != ""
	})
	return g, !s.failed && metadata && g.kind != ""
}

// scanner reads fields from JSON without decoding the rest. After an error, its methods do nothing. The same is true
// when all needed fields are read.
type scanner struct {
	rest         []byte
	failed, done bool
}

func (s *scanner) over() bool { return s.failed || s.done }

// next returns the next byte that is not white space. It returns 0 at the end.
func (s *scanner) next() byte {
	b := s.peek()
	if b != 0 {
		s.rest = s.rest[1:]
	}
	return b
}

func (s *scanner) peek() byte {
	s.rest = bytes.TrimLeft(s.rest, " \t\r\n")
	if len(s.rest) == 0 {
		return 0
	}
	return s.rest[0]
}

func (s *scanner) expect(b byte) {
	s.failed = s.failed || s.next() != b
}

// object calls the function field for each field of a JSON object. The function must read or skip the value of the
// field.
func (s *scanner) object(field func(name string)) {
	if s.expect('{'); s.peek() == '}' {
		s.next()
		return
	}
	for !s.over() {
		name := s.text()
		if s.expect(':'); s.over() {
			return
		}
		if field(name); s.over() {
			return
		}
		switch s.next() {
		case ',':
		case '}':
			return
		default:
			s.failed = true
		}
	}
}

// text reads a JSON string and returns its decoded text.
func (s *scanner) text() string {
	quoted := s.quoted()
	if s.failed {
		return ""
	}
	if inner := quoted[1 : len(quoted)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var text string
	s.failed = json.Unmarshal(quoted, &text) != nil
	return text
}

// quoted skips a JSON string, and returns it undecoded with its quotes.
func (s *scanner) quoted() []byte {
	if s.peek() != '"' {
		s.failed = true
		return nil
	}
	for i := 1; i < len(s.rest); i++ {
		switch s.rest[i] {
		case '\\':
			i++
		case '"':
			out := s.rest[:i+1]
			s.rest = s.rest[i+1:]
			return out
		}
	}
	s.failed = true
	return nil
}

// skip skips one JSON value. It does not check that the content of the value is valid JSON.
func (s *scanner) skip() {
	depth := 0
	for !s.over() {
		switch b := s.peek(); b {
		case '"':
			s.quoted()
		case '{', '[':
			s.next()
			depth++
			continue
		case '}', ']':
			s.next()
			depth--
		case ',', ':':
			s.next()
			continue
		case 0:
			s.failed = true
		default: // a number, true, false or null
			end := bytes.IndexAny(s.rest, ",:]} \t\r\n\"{[")
			if end <= 0 {
				s.failed = true
				return
			}
			s.rest = s.rest[end:]
		}
		if depth <= 0 {
			s.failed = s.failed || depth < 0
			return
		}
	}
}
