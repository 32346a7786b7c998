package health

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

const (
	maxProjection = 512 // bytes of JSON
	maxString     = 64  // longer strings are prose
	maxDepth      = 4   // of nested maps
)

// Project keeps what rows and the hub object's status need of a status, as canonical JSON of at most 512 bytes: conditions
// without their messages, whole numbers, booleans, short strings, and the same of nested maps. Arrays are dropped, and names that
// PerCluster says have no meaning on another cluster. Points in time are dropped as well unless they say when something expires or
// failed: heartbeats would change the row for ever.
//
// What is too large loses, in this order, strings (the longest first), nested maps, the reasons of conditions, booleans,
// numbers and conditions. nil means that nothing is left.
func Project(status map[string]any) []byte {
	kept := scalars(status, 0)
	delete(kept, "conditions") // if it is no list
	var conditions []any
	for _, c := range readConditions(status) {
		m := map[string]any{"type": c.kind, "status": c.status}
		if c.reason != "" {
			m["reason"] = c.reason
		}
		if c.observed >= 0 {
			m["observedGeneration"] = c.observed
		}
		conditions = append(conditions, m)
	}
	slices.SortStableFunc(conditions, func(a, b any) int { return cmp.Compare(conditionType(a), conditionType(b)) })
	if len(conditions) > 0 {
		kept["conditions"] = conditions
	}
	if len(kept) == 0 {
		return nil
	}
	return shrink(kept)
}

func conditionType(c any) string {
	kind, _ := c.(map[string]any)["type"].(string)
	return kind
}

func scalars(m map[string]any, depth int) map[string]any {
	out := map[string]any{}
	for name, value := range m {
		if PerCluster(name) {
			continue
		}
		switch v := value.(type) {
		case bool, int64:
			out[name] = v
		case int:
			out[name] = int64(v)
		case float64:
			if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
				out[name] = int64(v)
			}
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
		}
	}
	return out
}

// ticks is true for points in time that nothing can be said of across clusters.
func ticks(name, value string) bool {
	if _, err := time.Parse(time.RFC3339, value); err != nil {
		return false
	}
	return !IsExpiry(name) && !IsFailureTime(name)
}

// IsExpiry is true for names of times at which something ends: notAfter, expirationTimestamp.
func IsExpiry(name string) bool {
	name = strings.ToLower(name)
	return name == "notafter" || strings.Contains(name, "expir")
}

// IsFailureTime is true for names of times at which something failed: lastFailureTime.
func IsFailureTime(name string) bool {
	return strings.Contains(strings.ToLower(name), "fail")
}
