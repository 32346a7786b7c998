package events

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// maxMessage is the maximum number of characters in a message, as in the note of an Event.
const maxMessage = 1024

// notice is an event that the hub has recorded.
type notice struct {
	id                           string
	at                           time.Time
	regarding                    corev1.ObjectReference
	related                      *corev1.ObjectReference
	kind, reason, action, detail string // kind is Normal or Warning
}

// severity returns how urgent a notice is.
func (n notice) severity() hubv1.NotificationSeverity { return hubv1.SeverityOf(n.kind, n.reason) }

// cloudEvent is a CloudEvents 1.0 event in structured mode. Its nine fields are written directly, without the SDK.
type cloudEvent struct {
	SpecVersion     string                     `json:"specversion"`
	ID              string                     `json:"id"`
	Source          string                     `json:"source"`
	Type            string                     `json:"type"`
	Subject         string                     `json:"subject"`
	Time            string                     `json:"time"`
	DataContentType string                     `json:"datacontenttype"`
	Severity        hubv1.NotificationSeverity `json:"severity"` // an extension attribute, so that routers can read it
	Data            data                       `json:"data"`
}

type data struct {
	Type      string  `json:"type"`
	Reason    string  `json:"reason"`
	Action    string  `json:"action"`
	Message   string  `json:"message"`
	Regarding object  `json:"regarding"`
	Related   *object `json:"related,omitempty"`
}

type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	UID        string `json:"uid,omitempty"`
}

// encode returns a notice as the JSON of a CloudEvent. hub is the hub's UID.
func (n notice) encode(hub string) ([]byte, error) {
	e := cloudEvent{
		SpecVersion: "1.0", ID: n.id, Source: "/hanse.dev/hubs/" + hub, Type: "dev.hanse." + clean(n.reason), Subject: subject(n.regarding),
		Time: n.at.UTC().Format(time.RFC3339), DataContentType: "application/json", Severity: n.severity(),
		Data: data{
			Type: clean(n.kind), Reason: clean(n.reason), Action: clean(n.action),
			Message: hubv1.CutMessage(clean(n.detail), maxMessage), Regarding: objectOf(n.regarding),
		},
	}
	if n.related != nil {
		o := objectOf(*n.related)
		e.Data.Related = &o
	}
	body, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encoding event %s of %s: %w", n.reason, e.Subject, err)
	}
	return body, nil
}

func objectOf(r corev1.ObjectReference) object {
	return object{APIVersion: clean(r.APIVersion), Kind: clean(r.Kind), Namespace: clean(r.Namespace), Name: clean(r.Name), UID: clean(string(r.UID))}
}

// subject returns a text such as Prometheus.monitoring.coreos.com/shop/web.
func subject(r corev1.ObjectReference) string {
	parts := []string{kindOf(r), r.Namespace, r.Name}
	if r.Namespace == "" {
		parts = []string{kindOf(r), r.Name}
	}
	return clean(strings.Join(parts, "/"))
}

// kindOf returns the kind of an object as Kind.group.
func kindOf(r corev1.ObjectReference) string {
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	if err != nil || gv.Group == "" {
		return r.Kind
	}
	return r.Kind + "." + gv.Group
}

// clean removes characters that could forge lines or reverse the direction of text. The text contains messages of
// members and names that users choose.
func clean(text string) string {
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
