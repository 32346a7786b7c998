// Package format renders the hub's events for receivers: as CloudEvents, or as messages for Slack, Microsoft Teams and
// PagerDuty. It decides which events have one cause, and which event ends an incident.
//
// Texts of events have names that users choose, and messages of members. In each format they stay text: they mention
// nobody, forge no link and no line, and have a bounded length.
package format

import (
	"regexp"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// Reasons of events on a NotificationSink.
const (
	// SinkChanged is the reason of the first event for a new or changed sink.
	SinkChanged = "SinkChanged"
	// SinkTest is the reason of the event that a user requests with hansectl sink test.
	SinkTest = "SinkTest"
)

// Kind of a NotificationSink, and its group.
const sinkKind = "NotificationSink"

// Notice is an event that the hub has recorded.
type Notice struct {
	ID        string
	At        time.Time
	Regarding corev1.ObjectReference
	Related   *corev1.ObjectReference
	// Type is Normal or Warning.
	Type, Reason, Action, Detail string
}

// Severity returns how urgent a notice is.
func (n Notice) Severity() hubv1.NotificationSeverity { return hubv1.SeverityOf(n.Type, n.Reason) }

// Kind returns the kind of the object that a notice is about, as Kind.group.
func (n Notice) Kind() string { return kindOf(n.Regarding) }

// Subject returns a text such as Prometheus.monitoring.coreos.com/shop/web.
func (n Notice) Subject() string { return subject(n.Regarding) }

// IsAboutSink reports whether a notice is about the NotificationSink of this name.
func (n Notice) IsAboutSink(name string) bool {
	return n.Kind() == sinkKind+"."+hubv1.GroupVersion.Group && n.Regarding.Name == name
}

// placement returns the placement that a notice is about, or that its object follows. It returns nil if there is none.
func (n Notice) placement() *corev1.ObjectReference {
	for _, r := range []*corev1.ObjectReference{&n.Regarding, n.Related} {
		if IsPlacement(r) {
			return r
		}
	}
	return nil
}

// IsPlacement reports whether a reference names a Placement or a ClusterPlacement. The reference may be nil.
func IsPlacement(r *corev1.ObjectReference) bool {
	return r != nil && isOurs(*r) && (r.Kind == "Placement" || r.Kind == "ClusterPlacement")
}

func isOurs(r corev1.ObjectReference) bool {
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	return err == nil && gv.Group == hubv1.GroupVersion.Group
}

func subject(r corev1.ObjectReference) string {
	parts := []string{kindOf(r), r.Namespace, r.Name}
	if r.Namespace == "" {
		parts = []string{kindOf(r), r.Name}
	}
	return Clean(strings.Join(parts, "/"))
}

// kindOf returns the kind of an object as Kind.group.
func kindOf(r corev1.ObjectReference) string {
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	if err != nil || gv.Group == "" {
		return r.Kind
	}
	return r.Kind + "." + gv.Group
}

// named returns an object as people say it, such as "Prometheus shop/web".
func named(r corev1.ObjectReference) string {
	if r.Namespace == "" {
		return Clean(r.Kind + " " + r.Name)
	}
	return Clean(r.Kind + " " + r.Namespace + "/" + r.Name)
}

// Clean removes characters that could forge lines or reverse the direction of text. The text contains messages of
// members and names that users choose.
func Clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), r == '\u2028', r == '\u2029':
			return ' '
		case unicode.Is(unicode.Cf, r):
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(text, string(unicode.ReplacementChar)))
}

var mention = regexp.MustCompile(`(?i)@(channel|here|everyone)|<(/?at)`)

// unmentioned separates the characters by which chats call everybody, or which begin a mention or a field of a card.
func unmentioned(text string) string {
	text = mention.ReplaceAllStringFunc(text, func(found string) string { return found[:1] + "\u200b" + found[1:] })
	text = strings.ReplaceAll(text, "{{", "{\u200b{")
	return strings.ReplaceAll(text, "{{", "{\u200b{") // the second and third of three braces
}
