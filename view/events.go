package view

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/hanse-dev/hanse/member"
	"github.com/hanse-dev/hanse/view/wire"
)

// Events are the events about an object, its copies and the children of the copies, the oldest first.
type Events struct {
	Items []ClusterEvent `json:"items"`
	// NotAsked are the clusters whose events could not be read because the cluster did not answer, each with the reason.
	NotAsked []ClusterNote `json:"notAsked,omitempty"`
	// Notes say for which clusters events are missing, and why.
	Notes []ClusterNote `json:"notes,omitempty"`
}

// ClusterEvent is an event of one cluster.
type ClusterEvent struct {
	// Cluster is the name of the cluster that has the event. It is empty for an event of the hub.
	Cluster string `json:"cluster,omitempty"`
	member.Event
}

// Add adds the events that a cluster has returned.
func (e *Events) Add(cluster string, answer wire.EventsAnswer) {
	note := func(text string) { e.Notes = append(e.Notes, ClusterNote{Cluster: cluster, Note: text}) }
	for _, found := range answer.Events {
		e.Items = append(e.Items, ClusterEvent{cluster, found})
	}
	for _, text := range answer.Notes {
		note(text)
	}
	if answer.Refused != nil {
		note(answer.Refused.Message)
	}
	if answer.More {
		note("the cluster has more events than shown")
	}
}

// AddHub adds an event of the hub.
func (e *Events) AddHub(found corev1.Event) {
	e.Items = append(e.Items, ClusterEvent{Event: member.EventOf(&found)})
}

// Sort orders the events by time, and the notes by cluster.
func (e *Events) Sort() {
	slices.SortStableFunc(e.Items, func(a, b ClusterEvent) int {
		return cmp.Or(a.Last.Compare(b.Last.Time), cmp.Compare(a.Cluster, b.Cluster))
	})
	slices.SortStableFunc(e.Notes, func(a, b ClusterNote) int { return cmp.Compare(a.Cluster, b.Cluster) })
}

// Write writes a table with one row for each event.
func (e *Events) Write(w io.Writer, now time.Time) {
	if len(e.Items) == 0 {
		_, _ = io.WriteString(w, "No events found\n")
		return
	}
	var rows [][]string
	for _, item := range e.Items {
		count := ""
		if item.Count > 1 {
			count = strconv.FormatInt(item.Count, 10)
		}
		rows = append(rows, []string{
			age(item.Last, now), cmp.Or(item.Cluster, "(hub)"), item.Type, item.Reason,
			strings.ToLower(item.Kind) + "/" + item.Name, count, item.Message,
		})
	}
	table(w, []string{"LAST SEEN", "CLUSTER", "TYPE", "REASON", "OBJECT", "COUNT", "MESSAGE"}, rows)
}
