package policies

import (
	"fmt"
	"strings"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// named is the maximum number of objects or clusters that a message names.
const named = 3

// someOf returns a text such as "2 of 10 objects: Prometheus monitoring/a, Prometheus monitoring/b".
func someOf(names []string, total int) string {
	return cut(fmt.Sprintf("%d of %d objects: %s", len(names), total, firstOf(names)))
}

// firstOf returns the first names, and counts the others.
func firstOf(names []string) string {
	out := strings.Join(names[:min(named, len(names))], ", ")
	if more := len(names) - named; more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out
}

// cut shortens a message to 1024 characters.
func cut(s string) string { return hubv1.CutMessage(s, 1024) }
