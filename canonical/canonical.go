// Package canonical writes values of unstructured objects as canonical JSON: equal values give equal text.
//
// Annotations and rows keep digests and hashes of the text. A text that changes costs an apply of every copy.
package canonical

import "encoding/json"

// Bytes is the JSON of a value of an unstructured object, with the keys of maps in their order.
func Bytes(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil { // no JSON decoder makes such a value
		return []byte("?")
	}
	return text
}
