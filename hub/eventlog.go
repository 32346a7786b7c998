package hub

import (
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/reference"
)

// loggedEvents logs each event that the hub records: refusals, evictions, withdrawals, corrected drift. The log of the
// hub keeps them longer than the API server keeps events.
type loggedEvents struct {
	events.EventRecorder
	scheme *runtime.Scheme
	log    logr.Logger
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
