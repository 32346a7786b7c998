package report

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/changes"
	"github.com/hanse-dev/hanse/member/health"
)

// StatusSettings has, for each object, the rules for judging and merging statuses that its placement sets. It reads the
// rules from the bindings. StatusSettings has no entry for an object without such rules. Objects with equal rules share
// one pointer.
type StatusSettings struct {
	changed func(hubv1.ObjectIdentity)

	none  atomic.Bool // true while no object has settings, as in most fleets, so that callers need not take the lock
	mu    sync.RWMutex
	known map[hubv1.ObjectIdentity]*sharedSettings
	all   map[string]*sharedSettings // settings by their text
}

type sharedSettings struct {
	health.Settings
	text string
	uses int
}

// NewStatusSettings returns StatusSettings without any object.
func NewStatusSettings() *StatusSettings {
	s := &StatusSettings{changed: func(hubv1.ObjectIdentity) {}, known: map[hubv1.ObjectIdentity]*sharedSettings{}, all: map[string]*sharedSettings{}}
	s.none.Store(true)
	return s
}

// OnChange sets the function that is called for an object whose settings changed. The function must not block. Call
// OnChange before the first BindingChanged.
func (s *StatusSettings) OnChange(f func(hubv1.ObjectIdentity)) { s.changed = f }

// Of returns the settings of one object. It returns nil if the object's placement sets none.
func (s *StatusSettings) Of(id hubv1.ObjectIdentity) *health.Settings {
	if s.none.Load() {
		return nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if shared := s.known[id]; shared != nil {
		return &shared.Settings
	}
	return nil
}

// BindingChanged updates the settings after a change of a binding.
func (s *StatusSettings) BindingChanged(_ context.Context, c changes.Binding) {
	if c.After == nil {
		s.set(hubv1.ObjectOf(c.Before), "")
		return
	}
	s.set(hubv1.ObjectOf(c.After), settingsText(c.After))
}

// settingsOf parses the settings in a binding. It returns nil if the binding has none.
func settingsOf(b hubv1.BindingObject) *health.Settings {
	if text := settingsText(b); text != "" {
		return &parseSettings(text).Settings
	}
	return nil
}

// settingsText returns the settings in the annotation of the binding. It is empty if there are none.
func settingsText(b hubv1.BindingObject) string {
	text := b.GetAnnotations()[hubv1.SettingsAnnotation]
	if !strings.Contains(text, `"statusAggregation"`) {
		return ""
	}
	s := hubv1.LastSettings(b).StatusAggregation
	var parts []string
	for _, r := range s.Reducers {
		parts = append(parts, r.Path)
	}
	if s.HealthExpression == "" && len(parts) == 0 {
		return ""
	}
	return strings.Join(append(parts, s.HealthExpression), "\x00")
}

// set stores the settings of an object. If they changed, it calls the function that OnChange has set.
func (s *StatusSettings) set(id hubv1.ObjectIdentity, text string) {
	if text == "" && s.none.Load() {
		return
	}
	s.mu.Lock()
	before := s.known[id]
	if before == nil && text == "" || before != nil && before.text == text {
		s.mu.Unlock()
		return
	}
	if before != nil {
		if before.uses--; before.uses == 0 {
			delete(s.all, before.text)
		}
		delete(s.known, id)
	}
	if text != "" {
		shared := s.all[text]
		if shared == nil {
			shared = parseSettings(text)
			s.all[text] = shared
		}
		shared.uses++
		s.known[id] = shared
	}
	s.none.Store(len(s.known) == 0)
	s.mu.Unlock()
	s.changed(id)
}

func parseSettings(text string) *sharedSettings {
	s := &sharedSettings{text: text}
	parts := strings.Split(text, "\x00")
	last := len(parts) - 1
	s.Paths = parts[:last]
	if parts[last] != "" {
		// An invalid expression makes the health Unknown, and the row shows the error.
		s.Expression, _ = health.Compile(parts[last])
	}
	return s
}
