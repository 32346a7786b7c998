package events

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/events/format"
)

// maxGrouped is the maximum number of events in a group. Further ones are only counted.
const maxGrouped = 50

// isChat reports whether people read the messages of a format, so that the events of one cause are one message.
func isChat(f hubv1.NotificationFormat) bool {
	return f == hubv1.FormatSlack || f == hubv1.FormatTeams
}

// group has the events of one cause for one sink.
type group struct {
	sink        *hubv1.NotificationSink
	message     format.Message
	first, last time.Time
}

type groupKey struct {
	sink  types.UID
	cause string
}

// groups are the events that wait for further events of the same cause.
type groups struct {
	limits limits
	open   []*group // in the order of their first events
	byKey  map[groupKey]*group
}

// add adds the notice of a message to the group of its cause. Of two notices with the same reason and object, only the
// newer one is kept.
func (g *groups) add(sink *hubv1.NotificationSink, one format.Message, now time.Time) {
	n := one.Notices[0]
	key := groupKey{sink.UID, n.Cause()}
	of := g.byKey[key]
	if of == nil {
		if g.byKey == nil {
			g.byKey = map[groupKey]*group{}
		}
		of = &group{sink: sink, message: format.Message{Hub: one.Hub}, first: now}
		g.byKey[key] = of
		g.open = append(g.open, of)
	}
	of.sink, of.last = sink, now
	for i, is := range of.message.Notices {
		if is.Reason == n.Reason && is.Subject() == n.Subject() {
			of.message.Notices[i] = n
			return
		}
	}
	if len(of.message.Notices) == maxGrouped {
		of.message.Left++
		return
	}
	of.message.Notices = append(of.message.Notices, n)
}

// due removes and returns the groups that are complete.
func (g *groups) due(now time.Time) []*group {
	var complete, open []*group
	for _, of := range g.open {
		if now.Sub(of.last) < g.limits.groupQuiet && now.Sub(of.first) < g.limits.groupMax {
			open = append(open, of)
			continue
		}
		complete = append(complete, of)
		delete(g.byKey, groupKey{of.sink.UID, of.message.Notices[0].Cause()})
	}
	g.open = open
	return complete
}

// encode returns a message in a format. It returns nil if the format has no message for the notice.
func encode(as hubv1.NotificationFormat, content format.Message) (*message, error) {
	n := content.Notices[0]
	m := &message{id: n.ID, at: n.At, what: n.Reason + " of " + n.Subject(), format: as}
	var err error
	switch as {
	case hubv1.FormatSlack:
		m.body, err = content.Slack()
	case hubv1.FormatTeams:
		m.body, err = content.Teams()
	case hubv1.FormatPagerDuty:
		m.body, err = n.PagerDuty(content.Hub)
	default:
		m.body, err = n.CloudEvent(content.Hub)
	}
	if err != nil {
		return nil, fmt.Errorf("making a message of format %s: %w", as, err)
	}
	if m.body == nil {
		return nil, nil
	}
	return m, nil
}
