package content

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/canonical"
)

// Hash covers the paths that the hub applied and the live values there. So it changes with an edit of our fields and
// not with fields of other managers. It is the same for the response to an apply and for a watch event. isOurs is false
// if the managedFields have no readable entry of the hub.
//
// For the last field of a path, the whole value below it is hashed. Without the schema, the hash cannot distinguish an
// atomic value from a map or list that we applied empty and that others add to. In the second case the hash changes
// with their additions, which costs one apply that changes nothing.
//
// The hash of a Secret is keyed. Otherwise a reader of rows could guess its values.
//
// Rows store hashes, so another algorithm would cause an apply of every copy. The function runs for each event of a
// member.
func Hash(key canonical.Key, obj *unstructured.Unstructured) (text string, isOurs bool) {
	fields := oursRaw(obj)
	if fields == nil {
		return "", false
	}
	d, _ := digests.Get().(*digest)
	defer d.free()
	if !d.write(fields, obj.Object) {
		return "", false
	}
	sum := d.end()
	if hubv1.IsSecret(obj.GroupVersionKind().GroupKind()) {
		sum = key.Sum(sum)
	}
	return hex.EncodeToString(sum[:sha256.Size/2]), true
}

// Applied reports whether Hash finds the object to be ours: its managedFields have a readable entry of the hub.
func Applied(obj *unstructured.Unstructured) bool {
	fields := oursRaw(obj)
	return fields != nil && readable(fields)
}

func readable(fields map[string]any) bool {
	for raw, value := range fields {
		e, _, ok := readElement(raw, value)
		if !ok || !readable(e.below) {
			return false
		}
	}
	return true
}

// digest collects the hashed parts, so that it calls the hash function once for many parts.
type digest struct {
	sum      hash.Hash
	pending  []byte
	elements []element // elements of the places being written
}

// digests are reused, because a hub hashes thousands of small objects a second.
var digests = sync.Pool{New: func() any { return &digest{sum: sha256.New()} }}

// largestKept limits the memory that a digest keeps after a large object.
const largestKept = 64 << 10

func (d *digest) free() {
	if cap(d.pending) > largestKept {
		return
	}
	d.sum.Reset()
	clear(d.elements[:cap(d.elements)])
	d.pending, d.elements = d.pending[:0], d.elements[:0]
	digests.Put(d)
}

// write adds every place that a manager owns, and then the places below, both in the order of fieldpath. It returns
// false if one of them cannot be read.
func (d *digest) write(fields map[string]any, live any) bool {
	from, ok := len(d.elements), false
	if d.elements, ok = appendElements(d.elements, fields); !ok {
		return false
	}
	to := len(d.elements)
	l := listOf(live)
	for _, e := range d.elements[from:to] {
		if !e.member {
			continue
		}
		if e.below != nil {
			d.put("member", e.text) // such as a list item: its fields come below
			continue
		}
		value, ok := child(live, l, e.text)
		if !ok {
			d.put("missing", e.text)
			continue
		}
		d.put("value", e.text)
		put(d, canonical.Bytes(value))
	}
	for i := from; i < to; i++ {
		e := d.elements[i]
		if e.below == nil {
			continue
		}
		value, ok := child(live, l, e.text)
		d.put("into", e.text, strconv.FormatBool(ok))
		if !d.write(e.below, value) {
			return false
		}
		d.put("out")
	}
	d.elements = d.elements[:from]
	return true
}

// child returns the value below v that the text of a path element names.
func child(v any, l *list, text string) (any, bool) {
	if text[0] != 'f' {
		return l.find(text)
	}
	m, _ := v.(map[string]any)
	c, ok := m[text[2:]]
	return c, ok
}

func (d *digest) put(parts ...string) {
	for _, p := range parts {
		put(d, p)
	}
}

// put adds a part with its length, so that no two sequences give the same bytes.
func put[T string | []byte](d *digest, part T) {
	d.pending = strconv.AppendInt(d.pending, int64(len(part)), 10)
	d.pending = append(append(d.pending, ':'), part...)
	if len(d.pending) > 1<<10 {
		d.sum.Write(d.pending)
		d.pending = d.pending[:0]
	}
}

// end returns the hash. It stays valid until the digest's next use.
func (d *digest) end() []byte {
	d.sum.Write(d.pending)
	d.pending = d.sum.Sum(d.pending[:0])
	return d.pending
}
