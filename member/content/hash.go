package content

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Hash covers the live values at the paths that the hub applied, and these paths themselves, so that an edit of one of our
// fields shows and a field of somebody else does not. It is the same for the answer to an apply and for what a watch brings.
// ours is false if the object has no readable entry of the hub in its managedFields.
//
// A leaf of the paths is hashed with all that is below it: without the schema, an atomic value cannot be told from an empty
// one that others add to. The latter costs one apply that changes nothing, and gives the new hash.
func Hash(obj *unstructured.Unstructured) (text string, isOurs bool) {
	set := ours(obj)
	if set == nil {
		return "", false
	}
	d := digest{sum: sha256.New()}
	d.write(set, obj.Object)
	return d.end(), true
}

// digest collects what is hashed, so that the hash is called for many parts at once.
type digest struct {
	sum     hash.Hash
	pending []byte
}

// write adds every member of the set and then what is below, in the set's own order, which is sorted.
func (d *digest) write(set *fieldpath.Set, live any) {
	l := listOf(live)
	for pe := range set.Members.All() {
		if below, ok := set.Children.Get(pe); ok && !below.Empty() {
			d.put("member", element(pe)) // such as a list item: its fields follow below
			continue
		}
		value, ok := child(live, l, pe)
		if !ok {
			d.put("missing", element(pe))
			continue
		}
		d.put("value", element(pe), canonical(value))
	}
	for pe := range set.Children.All() {
		below, _ := set.Children.Get(pe)
		value, ok := child(live, l, pe)
		d.put("into", element(pe), strconv.FormatBool(ok))
		d.write(below, value)
		d.put("out")
	}
}

func element(pe fieldpath.PathElement) string {
	if pe.FieldName != nil {
		return "f:" + *pe.FieldName // as below, at once
	}
	text, err := fieldpath.SerializePathElement(pe)
	if err != nil {
		return pe.String()
	}
	return text
}

// put adds each part with its length, so that no two sequences give the same bytes.
func (d *digest) put(parts ...string) {
	for _, p := range parts {
		d.pending = strconv.AppendInt(d.pending, int64(len(p)), 10)
		d.pending = append(append(d.pending, ':'), p...)
	}
	if len(d.pending) > 1<<10 {
		d.sum.Write(d.pending)
		d.pending = d.pending[:0]
	}
}

func (d *digest) end() string {
	d.sum.Write(d.pending)
	return hex.EncodeToString(d.sum.Sum(nil)[:16])
}
