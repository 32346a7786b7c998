package format

import (
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// MaxMessage is the maximum number of characters in a message, as in the note of an Event.
const MaxMessage = 1024

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

// CloudEvent returns a notice as the JSON of a CloudEvent. hub is the hub's UID.
func (n Notice) CloudEvent(hub string) ([]byte, error) {
	e := cloudEvent{
		SpecVersion: "1.0", ID: n.ID, Source: "/hanse.dev/hubs/" + hub, Type: "dev.hanse." + Clean(n.Reason), Subject: subject(n.Regarding),
		Time: n.At.UTC().Format(time.RFC3339), DataContentType: "application/json", Severity: n.Severity(),
		Data: data{
			Type: Clean(n.Type), Reason: Clean(n.Reason), Action: Clean(n.Action),
			Message: hubv1.CutMessage(Clean(n.Detail), MaxMessage), Regarding: objectOf(n.Regarding),
		},
	}
	if n.Related != nil {
		o := objectOf(*n.Related)
		e.Data.Related = &o
	}
	body, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("encoding event %s of %s: %w", n.Reason, e.Subject, err)
	}
	return body, nil
}

func objectOf(r corev1.ObjectReference) object {
	return object{APIVersion: Clean(r.APIVersion), Kind: Clean(r.Kind), Namespace: Clean(r.Namespace), Name: Clean(r.Name), UID: Clean(string(r.UID))}
}
