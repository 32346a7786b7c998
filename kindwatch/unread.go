package kindwatch

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// unread is an object of a watch of which only that was read by which it is told from others: it may be known already.
type unread struct {
	data  []byte
	whole *unstructured.Unstructured // instead, if the client has read it
	glance
}

// unreadOf the object of an event; false if that is not an object of a kind.
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

// read decodes all of it.
func (u *unread) read() (*unstructured.Unstructured, error) {
	if u.whole != nil {
		return u.whole, nil
	}
	out := &unstructured.Unstructured{}
	_, _, err := objects{unstructured.UnstructuredJSONScheme}.Decode(u.data, nil, out)
	return out, err
}

// is says whether this is that very version of that very object.
func (g *glance) is(o metav1.Object) bool {
	return g.version != "" && o.GetResourceVersion() == g.version && string(o.GetUID()) == g.uid
}

// glance is what tells an object from others.
type glance struct{ kind, namespace, name, uid, version string }

// look reads no more of the JSON of an object than what tells it from others. It is false for what does not look like
// one; whether the rest is JSON it does not say.
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

// scanner goes through JSON without keeping what it does not have to. After a failure, and once it is done, it does
// nothing.
type scanner struct {
	rest         []byte
	failed, done bool
}

func (s *scanner) over() bool { return s.failed || s.done }

// next takes one byte that is no white space; 0 at the end.
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

// object calls field for each field of an object, which has to go past its value.
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

// text is a string.
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

// quoted goes past a string and returns it with its quotes.
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

// skip goes past a value of any kind, without a look at whether what is inside of it is well-formed.
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
