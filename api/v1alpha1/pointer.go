package v1alpha1

import "strings"

// PointerKeys returns the unescaped keys of a valid JSON pointer (RFC 6901).
func PointerKeys(pointer string) []string {
	keys := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, k := range keys {
		keys[i] = strings.ReplaceAll(strings.ReplaceAll(k, "~1", "/"), "~0", "~")
	}
	return keys
}
