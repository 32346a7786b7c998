package health

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	maxString  = 64  // in bytes; longer strings are text for people
	maxDepth   = 4   // levels of nested maps and lists
	maxEntries = 16  // entries of a list
	maxNamed   = 256 // bytes of JSON of one value in Named
)

// MaxProjection is the maximum size of a projection in bytes of JSON. A binding with a row for each of 140 clusters
// stays below its limit of 200 KiB if all projections are that large, which those of few kinds are.
const MaxProjection = 1024

// Project returns the parts of a status that the rows of bindings and the status of the hub object need. The result is
// canonical JSON of at most MaxProjection bytes. Project keeps whole numbers, booleans, short strings, and conditions
// (without their messages) at the top level and in nested maps. Of a list whose items have names, it keeps the names
// and the values that can be merged. If such a list is too large, its value is null. It drops fields with a meaning in
// one cluster only (PerCluster). It also drops times, because each heartbeat would change the row. It keeps the times
// of an expiry or a failure.
//
// paths are JSON pointers, such as /status/storage/used. The values at these paths are kept unchanged, see
// Projection.Named.
//
// If the result (the projection) is too large, it loses groups of values by their weight, from LostDetails to
// LostNamed. Conditions that are bad for an object of the kind weigh most. The projection records the groups of which
// it has lost values. The result is nil if nothing is left.
func Project(kind schema.GroupKind, status map[string]any, paths ...string) []byte {
	kept := scalars(status, 0)
	addNamed(kept, status, paths)
	if len(kept) == 0 {
		return nil
	}
	return lossy{kind: kind, kept: kept}.shrink()
}

// conditionsIn returns the well-formed conditions of a map, without messages and times, sorted by type.
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
	slices.SortStableFunc(out, byType)
	return out
}

func byType(a, b any) int {
	one, _ := a.(map[string]any)
	other, _ := b.(map[string]any)
	return cmp.Compare(conditionType(one), conditionType(other))
}

func conditionType(c map[string]any) string {
	kind, _ := c["type"].(string)
	return kind
}

func conditionStatus(c map[string]any) string {
	status, _ := c["status"].(string)
	return status
}

// scalars returns the values of a map that a projection contains, including values in nested maps.
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

// whole returns a whole number that JSON represents exactly. ok is false for any other value.
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

// listed returns the part of a list that is kept, if the list is short and its items have names. If the list has values
// to merge but cannot be kept completely, kept is nil, because a sum over clusters would be incomplete. reported is
// false if the list has no values to merge.
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

// entryOf returns the identifying fields and the mergeable values of an item of a list.
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

// keyOf returns the value of a field that identifies an item of a list. The result is nil if the field does not
// identify an item.
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

// summary returns a value below the top level of a status if it can be merged over clusters. It returns nil for any
// other value.
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

// ticks reports whether the value is a time that Project drops. Project keeps the time of an expiry or a failure.
func ticks(name, value string) bool {
	if _, err := time.Parse(time.RFC3339, value); err != nil {
		return false
	}
	return !IsExpiry(name) && !IsFailureTime(name)
}

// addNamed adds the values at the paths to the projection. Each value is stored under its JSON pointer below the
// status. A missing value is null. A value that is too large is left out, and Loss does not record this.
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

// valueAt returns the value at a JSON pointer that has no leading slash. It does not return a value that is meaningful
// in one cluster only, unless the value is a number.
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
