// Package canonical writes the values of unstructured objects as canonical JSON: equal values give the same bytes.
//
// Annotations of copies and rows of bindings contain digests and hashes of this JSON. If the format changed, all
// digests would change, and the hub would apply every copy again.
package canonical

import "encoding/json"

// Bytes returns a value of an unstructured object as JSON with sorted keys.
func Bytes(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil { // no JSON decoder creates such a value
		return []byte("?")
	}
	return text
}
