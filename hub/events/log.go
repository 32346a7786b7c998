package events

import (
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/reference"
)

// loggedEvents records events and also writes each event to the log. Logs are usually kept for longer than events.
type loggedEvents struct {
	events.EventRecorder
	scheme *runtime.Scheme
	log    logr.Logger
}

// Logged returns a loggedEvents that also logs each event with its object. scheme must have the types of the objects.
func Logged(to events.EventRecorder, scheme *runtime.Scheme, log logr.Logger) events.EventRecorder {
	return loggedEvents{to, scheme, log}
}

// Eventf implements events.EventRecorder.
func (e loggedEvents) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	e.EventRecorder.Eventf(regarding, related, kind, reason, action, note, args...)
	fields := []any{"reason", reason, "note", fmt.Sprintf(note, args...)}
	if ref, err := reference.GetReference(e.scheme, regarding); err == nil {
		fields = append([]any{"kind", ref.Kind, "namespace", ref.Namespace, "name", ref.Name}, fields...)
	}
	e.log.Info("Recorded an event", fields...)
}
