package overrides

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// mergeChange is a JSON merge patch (RFC 7386). It changes the object, or the part of the object at a path.
type mergeChange struct {
	at    pointer // nil: the patch is for the whole object
	patch map[string]any
}

func (m *mergeChange) apply(doc map[string]any, _ *budget) *fault {
	v, _ := m.at.lookup(doc)
	target, ok := v.(map[string]any)
	if !ok || target == nil {
		return &fault{path: m.at.String(), message: "is not an object: correct the path"}
	}
	merge(target, m.patch)
	return nil
}

func (m *mergeChange) claim(c *claims, state map[string]any) {
	at, _ := m.at.lookup(state)
	c.root.at(m.at).claimMerge(c.claimant, m.patch, at)
}

// touches reports whether the patch changes the value at the path, or a part of that value. A patch that changes only
// other fields of the same map does not count.
func (m *mergeChange) touches(path pointer) bool {
	if !path.isAtOrBelow(m.at) {
		return m.at.isAtOrBelow(path)
	}
	patch := m.patch
	path = path[len(m.at):]
	for i, step := range path {
		v, ok := patch[step]
		if !ok {
			return false
		}
		if patch, ok = v.(map[string]any); !ok || i == len(path)-1 {
			return true
		}
	}
	return true
}

// decodeMerge decodes a merge patch. The second result is an error message, or empty.
func decodeMerge(raw []byte) (map[string]any, string) {
	v, message := decode(raw)
	if message != "" {
		return nil, "its mergePatch " + message
	}
	merge, ok := v.(map[string]any)
	if !ok {
		return nil, "its mergePatch must be an object"
	}
	return merge, ""
}

func compileMerge(raw []byte) (map[string]any, *fault) {
	bad := func(path, message string) *fault { return &fault{path: path, message: message} }
	merge, message := decodeMerge(raw)
	if message != "" {
		return nil, bad("", message)
	}
	for _, field := range []string{"apiVersion", "kind", "status"} {
		if _, ok := merge[field]; ok {
			return nil, bad("/"+field, pointer{field}.closedToWrites())
		}
	}
	metadata, ok := merge["metadata"]
	if !ok {
		return merge, nil
	}
	if p, message := closedMerge(metadata); message != "" {
		return nil, bad(p.String(), message)
	}
	return merge, nil
}

// closedMerge returns the first metadata field of a merge patch that overrides must not change, with the reason. The
// reason is empty if there is no such field.
func closedMerge(v any) (pointer, string) {
	metadata, ok := v.(map[string]any)
	if !ok {
		return pointer{"metadata"}, whyMetadata
	}
	for _, field := range slices.Sorted(maps.Keys(metadata)) {
		keys, ok := metadata[field].(map[string]any)
		if p := (pointer{"metadata", field}); !ok || !isKeyMap(field) {
			return p, p.closedMetadata()
		}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			p := pointer{"metadata", field, key}
			if message := p.closedMetadata(); message != "" {
				return p, message
			}
			if _, ok := keys[key].(string); !ok && keys[key] != nil {
				return p, whyString
			}
		}
	}
	return nil, ""
}

// merge applies a JSON merge patch (RFC 7386) to target.
func merge(target, patch map[string]any) {
	for key, v := range patch {
		switch v := v.(type) {
		case nil:
			delete(target, key)
		case map[string]any:
			inner, ok := target[key].(map[string]any)
			if !ok || inner == nil {
				inner = make(map[string]any, len(v))
				target[key] = inner
			}
			merge(inner, v)
		default:
			target[key] = runtime.DeepCopyJSONValue(v) // later rules may change the copy
		}
	}
}
