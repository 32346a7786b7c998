package health

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// loss removes one value from a projection, which is the kept part of a status. It returns the number of bytes of JSON
// that this saves.
type loss func() (saved int)

// A projection is the kept part of a status. If a projection is too large, it loses one group of values after the
// other. losses has one function for each group, which finds the values of the group. The order is that of the Loss
// constants, from LostStrings on.
var losses = []func(map[string]any) []loss{ofStrings, ofNested, ofReasons, ofBooleans, ofNumbers, ofConditions, ofNamed}

// shrink returns the projection as JSON of at most maxProjection bytes. It removes values until the JSON is small
// enough, and records the last removed group as the Loss. It returns nil if nothing is left.
func shrink(kept map[string]any) []byte {
	data := encode(kept)
	size := len(data)
	for i, of := range losses {
		if len(data) <= maxProjection {
			break
		}
		if kept[lossField] == nil {
			size += len(`"~":1,`)
		}
		kept[lossField] = int64(LostStrings) + int64(i)
		for _, lose := range of(kept) {
			if size -= lose(); size > maxProjection {
				continue
			}
			// The estimated size may be too large by a comma or two. The real size decides.
			if data = encode(kept); len(data) <= maxProjection {
				break
			}
			size = len(data)
		}
		dropEmpty(kept)
		data = encode(kept)
		size = len(data)
	}
	if len(kept) == 0 {
		return nil
	}
	return data
}

func encode(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // a projection contains only maps, lists, strings, numbers and booleans
	}
	return data
}

type field struct {
	in   map[string]any
	name string
	path string
	size int
}

func (f field) lose() int {
	delete(f.in, f.name)
	return f.size
}

// ofStrings returns functions that each remove one string from a projection (the kept part of a status), the longest
// string first. No function removes a string from a condition.
func ofStrings(kept map[string]any) []loss {
	return inOrder(fields(kept, "", nil, func(v any) bool { _, ok := v.(string); return ok }))
}

// ofNested returns functions that each remove one nested map or list from a projection (the kept part of a status), the
// largest first. A list that was too large, and whose value is therefore null, goes last.
func ofNested(kept map[string]any) []loss {
	return inOrder(slices.DeleteFunc(topLevel(kept, func(v any) bool {
		switch v.(type) {
		case map[string]any, []any, nil:
			return true
		}
		return false
	}), func(f field) bool { return f.name == "conditions" }))
}

func ofBooleans(kept map[string]any) []loss {
	return inOrder(topLevel(kept, func(v any) bool { _, ok := v.(bool); return ok }))
}

func ofNumbers(kept map[string]any) []loss {
	return inOrder(topLevel(kept, func(v any) bool { _, ok := v.(int64); return ok }))
}

// ofReasons returns functions that each remove the reason of one condition from a projection (the kept part of a
// status), the longest reason first.
func ofReasons(kept map[string]any) []loss {
	var out []field
	list, _ := kept["conditions"].([]any)
	for _, c := range list {
		m, _ := c.(map[string]any)
		if reason, ok := m["reason"]; ok {
			out = append(out, field{in: m, name: "reason", path: conditionType(c), size: len(encode(reason)) + len(`"reason":,`)})
		}
	}
	return inOrder(out)
}

// ofConditions returns functions that each remove one condition from a projection (the kept part of a status), from the
// last condition to the first.
func ofConditions(kept map[string]any) []loss {
	list, _ := kept["conditions"].([]any)
	var out []loss
	for range list {
		out = append(out, func() int {
			now, _ := kept["conditions"].([]any)
			last := len(now) - 1
			kept["conditions"] = now[:last]
			return len(encode(now[last]))
		})
	}
	return out
}

// ofNamed returns one function for each named value in a projection (the kept part of a status). A named value is at a
// path that a placement names. The function removes the value. The function for the largest value is the first.
func ofNamed(kept map[string]any) []loss {
	var out []field
	for name, value := range kept {
		if name != lossField && reserved(name) {
			out = append(out, field{in: kept, name: name, path: name, size: len(encode(name)) + len(encode(value)) + len(":,")})
		}
	}
	return inOrder(out)
}

func topLevel(kept map[string]any, of func(any) bool) []field {
	var out []field
	for name, value := range kept {
		if of(value) && !reserved(name) {
			out = append(out, field{in: kept, name: name, path: name, size: len(encode(name)) + len(encode(value)) + len(":,")})
		}
	}
	return out
}

// fields appends to out each value v in m and in its nested maps for which of(v) is true, and returns out.
func fields(m map[string]any, path string, out []field, of func(any) bool) []field {
	for name, value := range m {
		if reserved(name) {
			continue
		}
		if nested, ok := value.(map[string]any); ok {
			out = fields(nested, path+name+".", out, of)
		}
		if of(value) {
			out = append(out, field{in: m, name: name, path: path + name, size: len(encode(name)) + len(encode(value)) + len(":,")})
		}
	}
	return out
}

// inOrder returns the functions that remove the fields: the largest value first, and of equally large values the one
// whose path sorts last.
func inOrder(found []field) []loss {
	slices.SortFunc(found, func(a, b field) int { return cmp.Or(cmp.Compare(b.size, a.size), strings.Compare(b.path, a.path)) })
	out := make([]loss, 0, len(found))
	for _, f := range found {
		out = append(out, f.lose)
	}
	return out
}

// dropEmpty removes maps and lists that have become empty.
func dropEmpty(m map[string]any) {
	for name, value := range m {
		if reserved(name) {
			continue
		}
		switch v := value.(type) {
		case map[string]any:
			if dropEmpty(v); len(v) == 0 {
				delete(m, name)
			}
		case []any:
			if len(v) == 0 {
				delete(m, name)
			}
		}
	}
}
