package content

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/internal/canonical"
)

// Hash returns a hash of the fields that the hub has applied, with their live values. It changes if another client
// changes these values. It does not change if other managers change their own fields. It is the same for the response
// to an apply and for a watch event. isOurs is false if managedFields has no entry of the hub that can be parsed.
//
// At the end of an owned path, the whole live value is hashed. managedFields do not tell whether this value is atomic,
// or is a map or list that the hub applied empty. Other clients may add items to such a map or list. The hash then
// changes, and the hub sends one apply that changes nothing.
//
// The hash of a Secret is an HMAC with the key. Without a key, a reader of the binding's rows could guess the values.
//
// The rows of bindings store these hashes. If the algorithm changed, every copy would be applied again. Hash is called
// for each event of a member, so that it must be fast.
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

// Applied reports whether managedFields has an entry of the hub that can be parsed. It does not compute the hash.
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

// digest collects the parts to hash in a buffer, so that the hash function is called seldom.
type digest struct {
	sum      hash.Hash
	pending  []byte
	elements []element // path elements of the places that are being written
}

// digests is a pool of digests for reuse, because a hub hashes thousands of small objects a second.
var digests = sync.Pool{New: func() any { return &digest{sum: sha256.New()} }}

// maxKeptBytes limits the memory that a digest keeps after a large object.
const maxKeptBytes = 64 << 10

func (d *digest) free() {
	if cap(d.pending) > maxKeptBytes {
		return
	}
	d.sum.Reset()
	clear(d.elements[:cap(d.elements)])
	d.pending, d.elements = d.pending[:0], d.elements[:0]
	digests.Put(d)
}

// write adds every field that the hub owns to the hash, and then the fields below it, both in the order of package
// fieldpath. It returns false if a path element cannot be parsed.
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
			d.put("member", e.text) // an element without a value; its fields are written next
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

// child returns the value below v to which the text of a path element leads.
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

// put adds a part together with its length. Different sequences of parts therefore never give the same bytes.
func put[T string | []byte](d *digest, part T) {
	d.pending = strconv.AppendInt(d.pending, int64(len(part)), 10)
	d.pending = append(append(d.pending, ':'), part...)
	if len(d.pending) > 1<<10 {
		d.sum.Write(d.pending)
		d.pending = d.pending[:0]
	}
}

// end returns the hash. The slice is valid until the digest is used again.
func (d *digest) end() []byte {
	d.sum.Write(d.pending)
	d.pending = d.sum.Sum(d.pending[:0])
	return d.pending
}
