package read

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/hanse-dev/hanse/internal/answer"
	"github.com/hanse-dev/hanse/member"
)

// maxEvents is the maximum number of events that are returned.
const maxEvents = 200

// Events returns the newest events about some objects. It implements a method of member.Reader. It reads all events of
// the namespace, because API servers cannot select the events of several objects.
func (r *Reader) Events(ctx context.Context, namespace string, about []member.Involved) (member.Events, error) {
	ctx = answer.Within(ctx, ofPage)
	var out member.Events
	add := func(body []byte) (next string, err error) {
		var got struct {
			Metadata metav1.ListMeta `json:"metadata"`
			Items    []corev1.Event  `json:"items"`
		}
		if err := utiljson.Unmarshal(body, &got); err != nil {
			return "", errNoList
		}
		for i := range got.Items {
			if e := &got.Items[i]; concerns(e.InvolvedObject, about) {
				out.Items = append(out.Items, member.EventOf(e))
			}
		}
		return got.Metadata.Continue, nil
	}
	options := metav1.ListOptions{Limit: pageSize}
	events := schema.GroupVersionResource{Version: "v1", Resource: "events"}
	for pages := 1; ; pages++ {
		next, err := page(ctx, r.get(events, namespace), asJSON, options, add)
		if err != nil {
			return member.Events{}, err
		}
		newest(&out)
		if options.Continue = next; next == "" {
			return out, nil
		}
		if pages == maxPages {
			out.More = true
			return out, nil
		}
	}
}

// concerns reports whether an event is about one of the objects. The version of the object's kind does not matter.
func concerns(object corev1.ObjectReference, about []member.Involved) bool {
	gv, _ := schema.ParseGroupVersion(object.APIVersion)
	return slices.ContainsFunc(about, func(o member.Involved) bool {
		return o.Group == gv.Group && o.Kind == object.Kind && o.Name == object.Name && (o.UID == "" || o.UID == object.UID)
	})
}

// newest sorts the events by time and drops the oldest if there are more than maxEvents.
func newest(events *member.Events) {
	slices.SortStableFunc(events.Items, func(a, b member.Event) int { return a.Last.Compare(b.Last.Time) })
	if beyond := len(events.Items) - maxEvents; beyond > 0 {
		events.Items, events.More = slices.Delete(events.Items, 0, beyond), true
	}
}
