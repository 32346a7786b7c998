package content

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"

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
	h := sha256.New()
	write(h, set, obj.Object)
	return hex.EncodeToString(h.Sum(nil)[:16]), true
}

// write adds every member of the set and then what is below, in the set's own order, which is sorted.
func write(h hash.Hash, set *fieldpath.Set, live any) {
	l := listOf(live)
	for pe := range set.Members.All() {
		if below, ok := set.Children.Get(pe); ok && !below.Empty() {
			put(h, "member", element(pe)) // such as a list item: its fields follow below
			continue
		}
		value, ok := child(live, l, pe)
		if !ok {
			put(h, "missing", element(pe))
			continue
		}
		put(h, "value", element(pe), canonical(value))
	}
	for pe := range set.Children.All() {
		below, _ := set.Children.Get(pe)
		value, ok := child(live, l, pe)
		put(h, "into", element(pe), fmt.Sprint(ok))
		write(h, below, value)
		put(h, "out")
	}
}

func element(pe fieldpath.PathElement) string {
	text, err := fieldpath.SerializePathElement(pe)
	if err != nil {
		return pe.String()
	}
	return text
}

// put writes each part with its length, so that no two sequences give the same bytes.
func put(h hash.Hash, parts ...string) {
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
}
