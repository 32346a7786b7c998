package chaos

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// History has what users wrote to the namespace with waves, and their approvals. The run notes each write before it is
// sent, so the history may have writes that the hub refused. It then allows more than the hub may do, and never less.
type History struct {
	mu        sync.Mutex
	versions  map[Key][]version
	approvals []time.Time
}

// version is one content of an object. The first revision of an object needs no approval.
type version struct {
	value string
	at    time.Time
	first bool
}

// Write notes that a user writes this number to an object. first is true if the hub may take it for the first revision
// of the object.
func (h *History) Write(k Key, value int64, at time.Time, first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.versions == nil {
		h.versions = map[Key][]version{}
	}
	h.versions[k] = append(h.versions[k], version{value: fmt.Sprint(value), at: at, first: first})
}

// Approve notes an approval, which holds for all earlier writes.
func (h *History) Approve(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.approvals = append(h.approvals, at)
}

// Early reports whether a content needs an approval and has none: a user wrote it to an existing object, and no
// approval came after that. Contents that no user wrote are not early.
func (h *History) Early(k Key, content map[string]any) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	early := false
	for _, v := range h.versions[k] {
		if v.value != text(content) {
			continue
		}
		if v.first || slices.ContainsFunc(h.approvals, func(a time.Time) bool { return !v.at.After(a) }) {
			return false
		}
		early = true
	}
	return early
}

// Wrote reports whether a user ever wrote this content.
func (h *History) Wrote(k Key, content map[string]any) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.versions[k], func(v version) bool { return v.value == text(content) })
}

// text returns the number in a content, as users write it.
func text(content map[string]any) string {
	if f, ok := content["value"].(float64); ok {
		return fmt.Sprint(int64(f))
	}
	return fmt.Sprint(content["value"])
}
