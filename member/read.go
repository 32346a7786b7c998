package member

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// ErrUnreadable means that a member's answer does not contain the requested objects.
var ErrUnreadable = errors.New("the answer cannot be read")

// Reader reads objects of a connected member for users of the hub, including objects that the hub does not manage. It
// writes nothing. The caller must check the rights of the user, and must remove values that the user may not see. An
// error may contain a text of the member that the user may not read.
type Reader interface {
	// List returns objects of a kind, either as rows of the table that the member prints or as whole objects.
	List(ctx context.Context, in ListIntent) (Listed, error)
	// Events returns the newest events about some objects, from old to new. namespace is the namespace of the events.
	Events(ctx context.Context, namespace string, about []Involved) (Events, error)
	// Log returns the last lines of one container's log.
	Log(ctx context.Context, in LogIntent) (Log, error)
}

// ListIntent selects objects of one kind.
type ListIntent struct {
	Kind     schema.GroupVersionKind
	Resource string
	// Namespace is empty for objects in all namespaces and for cluster-scoped objects.
	Namespace string
	// Name selects one object. If it is empty, all objects of the kind are listed.
	Name          string
	LabelSelector string
	// Whole requests whole objects instead of rows of a table.
	Whole bool
	// Limit is the maximum number of objects that are returned.
	Limit int
}

// Listed has either the rows or the whole objects of a list. All texts in rows are printable.
type Listed struct {
	Columns []Column         `json:"columns,omitempty"`
	Rows    []ListedRow      `json:"rows,omitempty"`
	Objects []map[string]any `json:"objects,omitempty"`
	// More is true if the member has more objects of the kind than were returned.
	More bool `json:"more,omitempty"`
}

// Column is a column of a table.
type Column struct {
	Name string `json:"name"`
	// Wide is true for a column that kubectl shows only with -o wide.
	Wide bool `json:"wide,omitempty"`
}

// ListedRow is one object in a table.
type ListedRow struct {
	Namespace       string   `json:"namespace,omitempty"`
	Name            string   `json:"name"`
	ResourceVersion string   `json:"resourceVersion,omitempty"`
	Cells           []string `json:"cells"`
}

// Involved is an object whose events are requested.
type Involved struct {
	Group, Kind, Name string
	// UID is the UID of the object whose events are requested. It is empty if the UID does not matter.
	UID types.UID
}

// Events are the events of a member about some objects.
type Events struct {
	Items []Event
	// More is true if the member has more events about these objects than were returned.
	More bool
}

// Event is one event of a member. All texts are printable.
type Event struct {
	Group   string      `json:"group,omitempty"` // API group of the object
	Kind    string      `json:"kind"`
	Name    string      `json:"name"`
	Type    string      `json:"type,omitempty"`
	Reason  string      `json:"reason,omitempty"`
	Message string      `json:"message,omitempty"`
	Count   int64       `json:"count,omitempty"`
	Last    metav1.Time `json:"last"`
}

// LogIntent selects a part of one container's log.
type LogIntent struct {
	Namespace, Pod, Container string
	// UID is the UID of the pod. The log of another pod of the same name is not returned.
	UID types.UID
	// Lines is the maximum number of lines of the log that are returned.
	Lines int64
	// Since is the time of the earliest line of the log that is returned. Zero means no limit.
	Since metav1.Time
	// Bytes is the maximum size of the part of the log that is returned.
	Bytes int64
}

// Log is the last part of a container's log. Each line begins with its time.
type Log struct {
	Text string
	// Cut is true if the returned log has the maximum size, so that a part of the requested lines may be missing.
	Cut bool
}

const (
	// maxMessage is the maximum length of the message of an event in Kubernetes.
	maxMessage = 1024
	maxReason  = 128
)

// EventOf converts an event for a user. For a series of events, it returns the count of the series and the time of the
// last one.
func EventOf(e *corev1.Event) Event {
	gv, _ := schema.ParseGroupVersion(e.InvolvedObject.APIVersion)
	out := Event{
		Group: gv.Group, Kind: e.InvolvedObject.Kind, Name: e.InvolvedObject.Name, Type: Line(e.Type, maxReason),
		Reason: Line(e.Reason, maxReason), Message: Line(e.Message, maxMessage),
		Count: int64(e.Count), Last: e.CreationTimestamp,
	}
	times := []metav1.Time{e.LastTimestamp, {Time: e.EventTime.Time}}
	if e.Series != nil {
		out.Count = int64(e.Series.Count)
		times = append(times, metav1.Time{Time: e.Series.LastObservedTime.Time})
	}
	for _, t := range times {
		if t.After(out.Last.Time) {
			out.Last = t
		}
	}
	out.Kind, out.Name = Line(out.Kind, hubv1.MaxNameLength), Line(out.Name, hubv1.MaxNameLength)
	return out
}
