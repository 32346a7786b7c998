package health

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"
)

const (
	maxProjection = 512 // bytes of JSON
	maxString     = 64  // longer strings are prose
	maxDepth      = 4   // of nested maps and lists
	maxEntries    = 16  // of a list
	maxNamed      = 256 // bytes of JSON of one value that was named
)

// Project keeps what rows and the hub object's status need of a status, as canonical JSON of at most 512 bytes:
// conditions without their messages, whole numbers, booleans, short strings, and the same of nested maps. Of lists it
// keeps those of named entries with something in them that can be merged, and of their entries only that; null stands
// for such a list that cannot be kept. Names that PerCluster says have no meaning on another cluster are dropped.
// Points in time are dropped as well unless they say when something expires or failed: heartbeats would change the row
// for ever.
//
// paths are JSON pointers, such as /status/storage/used, to values that are kept as they are, whatever they are: see
// Projection.Named.
//
// What is too large loses, in this order, strings (the longest first), nested maps and lists, the reasons of
// conditions, booleans, numbers, conditions and named values, and says up to which of these it did. nil means that
// nothing is left.
func Project(status map[string]any, paths ...string) []byte {
	kept := scalars(status, 0)
	addNamed(kept, status, paths)
	if len(kept) == 0 {
		return nil
	}
	return shrink(kept)
}

// conditionsIn returns the well-formed conditions of a map without messages and times, sorted by type.
func conditionsIn(m map[string]any) []any {
	var out []any
	for _, c := range readConditions(m) {
		entry := map[string]any{"type": c.kind, "status": c.status}
		if c.reason != "" {
			entry["reason"] = c.reason
		}
		if c.observed >= 0 {
			entry["observedGeneration"] = c.observed
		}
		out = append(out, entry)
	}
	slices.SortStableFunc(out, func(a, b any) int { return cmp.Compare(conditionType(a), conditionType(b)) })
	return out
}

func conditionType(c any) string {
	kind, _ := c.(map[string]any)["type"].(string)
	return kind
}

// scalars keeps of a map what is said of statuses and of the maps in them.
func scalars(m map[string]any, depth int) map[string]any {
	out := map[string]any{}
	for name, value := range m {
		if PerCluster(name) || reserved(name) {
			continue
		}
		if name == "conditions" {
			if list := conditionsIn(m); len(list) > 0 {
				out[name] = list
			}
			continue
		}
		switch v := value.(type) {
		case bool:
			out[name] = v
		case string:
			if len(v) <= maxString && v != "" && !ticks(name, v) {
				out[name] = v
			}
		case map[string]any:
			if depth == maxDepth {
				continue
			}
			if nested := scalars(v, depth+1); len(nested) > 0 {
				out[name] = nested
			}
		case []any:
			if entries, reported := listed(v, depth+1); reported {
				out[name] = entries
			}
		default:
			if n, ok := whole(v); ok {
				out[name] = n
			}
		}
	}
	return out
}

// whole reads a whole number that JSON can tell from its neighbours.
func whole(value any) (int64, bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case int:
		return int64(v), true
	case float64:
		return int64(v), v == math.Trunc(v) && math.Abs(v) < 1<<53
	}
	return 0, false
}

// listed keeps a list of a few named entries. A list in which something can be merged, but that cannot be kept whole,
// is nil: what others report of it is not all there is. reported is false if nothing in it can be merged.
func listed(list []any, depth int) (kept any, reported bool) {
	if depth > maxDepth {
		return nil, false
	}
	out := make([]any, 0, min(len(list), maxEntries))
	whole := len(list) <= maxEntries
	for _, e := range list {
		m, _ := e.(map[string]any)
		entry, named, mergeable := entryOf(m, depth)
		whole, reported = whole && named, reported || mergeable
		switch {
		case whole:
			out = append(out, entry)
		case reported:
			return nil, true
		}
	}
	return out, reported
}

// entryOf keeps of an entry its names and what can be merged.
func entryOf(m map[string]any, depth int) (entry map[string]any, named, mergeable bool) {
	entry = map[string]any{}
	for name, value := range m {
		if PerCluster(name) {
			continue
		}
		if key := keyOf(name, value); key != nil {
			entry[name], named = key, true
			continue
		}
		kept := summary(name, value)
		reported := kept != nil
		switch list, _ := value.([]any); {
		case name == "conditions":
			if conditions := conditionsIn(m); len(conditions) > 0 {
				kept, reported = conditions, true
			}
		case list != nil:
			kept, reported = listed(list, depth+1)
		}
		if reported {
			entry[name], mergeable = kept, true
		}
	}
	return entry, named, mergeable
}

// keyOf is a name or number by which an entry is told from others; nil if it is none.
func keyOf(name string, value any) any {
	if !IsKey(name) {
		return nil
	}
	if n, ok := whole(value); ok {
		return n
	}
	if text, _ := value.(string); text != "" && len(text) <= maxString {
		return text
	}
	return nil
}

// summary is a value that can be merged although it is not at the top of the status; nil if it is none.
func summary(name string, value any) any {
	counts := IsCount(name) || name == "observedGeneration"
	if n, ok := whole(value); ok && counts {
		return n
	}
	text, _ := value.(string)
	dates := (IsExpiry(name) || IsFailureTime(name)) && !ticks(name, text)
	if text != "" && len(text) <= maxString && (counts || dates || IsPhase(name)) {
		return text
	}
	return nil
}

// ticks is true for points in time that nothing can be said of across clusters.
func ticks(name, value string) bool {
	if _, err := time.Parse(time.RFC3339, value); err != nil {
		return false
	}
	return !IsExpiry(name) && !IsFailureTime(name)
}

// addNamed adds the values at paths, each under its pointer below the status, and null where there is none. One that is
// too large is missing, which is news of that value alone: it is no loss of the projection.
func addNamed(kept, status map[string]any, paths []string) {
	for _, path := range paths {
		pointer, ok := strings.CutPrefix(path, "/status/")
		if !ok {
			continue
		}
		value, found := valueAt(status, pointer)
		if !found {
			value = nil
		}
		if data, err := json.Marshal(value); err == nil && len(data) <= maxNamed {
			kept["/"+pointer] = value
		}
	}
}

// valueAt finds a value by its pointer without the leading slash. A value that belongs to one cluster is not there,
// unless it is a number.
func valueAt(m map[string]any, pointer string) (value any, found bool) {
	value = m
	perCluster := false
	for _, segment := range strings.Split(pointer, "/") {
		name := unescape.Replace(segment)
		inner, ok := value.(map[string]any)
		if !ok {
			return nil, false
		}
		if value, ok = inner[name]; !ok {
			return nil, false
		}
		perCluster = perCluster || PerCluster(name)
	}
	switch value.(type) {
	case int64, int, float64:
		return value, true
	}
	return value, value != nil && !perCluster
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")
