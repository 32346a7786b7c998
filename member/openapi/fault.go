package openapi

import (
	"encoding/json"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Fault is a value in an object that violates the schema.
type Fault struct {
	// Path is the JSON pointer of the value that violates the schema, or of the missing field.
	Path string
	// Declared is the path with "*" for each step that the schema does not name: an index, or a key of a map.
	Declared string
	// Message is the requirement of the schema, such as "must be an integer".
	Message string
	// Value is the value as JSON, cut to a maximum length. It is empty if the value is a map or a list, or is missing.
	Value string
}

// Undeclared is the message for a field that is not in the schema.
const Undeclared = "is not a field of the schema"

// String returns a text such as `/spec/replicas must be an integer, not "three"`.
func (f Fault) String() string {
	if f.Value == "" {
		return f.Path + " " + f.Message
	}
	return f.Path + " " + f.Message + ", not " + f.Value
}

// Redacted returns the fault for users who may not read the object. literals are the texts that these users know, see
// Literals. Other values and path steps may come from the object. A value that is not in literals is removed. A path
// step that is neither in literals nor in the schema becomes "*".
func (f Fault) Redacted(literals sets.Set[string]) Fault {
	if !literals.Has(f.Value) {
		f.Value = ""
	}
	path, declared := strings.Split(f.Path, "/"), strings.Split(f.Declared, "/")
	for i := 1; i < len(path) && i < len(declared); i++ {
		if !literals.Has("/" + path[i]) {
			path[i] = declared[i]
		}
	}
	f.Path = strings.Join(path, "/")
	return f
}

// Shown returns a scalar as JSON, cut to about 64 bytes. It returns an empty text for a map or a list.
func Shown(value any) string {
	const limit = 64
	switch value.(type) {
	case nil, map[string]any, []any:
		return ""
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	if len(raw) > limit {
		return strings.ToValidUTF8(string(raw[:limit]), "") + "..."
	}
	return string(raw)
}

// Literals returns all scalars of a JSON text, each in the form that Shown returns. It also returns all keys, and all
// steps of JSON pointers, each with a slash before it.
func Literals(raw []byte) sets.Set[string] {
	out := sets.New[string]()
	var collect func(any)
	collect = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			for key, part := range v {
				out.Insert(escaped(key))
				collect(part)
			}
		case []any:
			for _, part := range v {
				collect(part)
			}
		case nil:
		default:
			out.Insert(Shown(v))
			if text, ok := v.(string); ok {
				for _, step := range strings.Split(text, "/")[1:] {
					out.Insert("/" + step)
				}
			}
		}
	}
	var all any
	if utiljson.Unmarshal(raw, &all) == nil {
		collect(all)
	}
	return out
}

// escaped returns a key as a step of a JSON pointer, with the slash before it.
func escaped(key string) string { return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }
