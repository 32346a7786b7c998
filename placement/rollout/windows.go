package rollout

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // The hub's image has no time zones, and all replicas must use the same ones.

	"github.com/robfig/cron/v3"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

var errTimeZoneInSchedule = errors.New("set timeZone: a schedule has no time zone")

// schedule is a parsed RolloutWindow: a time window in which clusters may begin to change.
type schedule struct {
	cron     cron.Schedule
	zone     *time.Location
	duration time.Duration
}

// after returns the time of the first opening of the window after t. The result is zero if the window does not open
// within five years.
func (s schedule) after(t time.Time) time.Time { return s.cron.Next(t.In(s.zone)).UTC() }

// parseSchedule parses a schedule with the five fields of cron. It refuses names such as @daily.
func parseSchedule(text string) (cron.Schedule, error) {
	if strings.Contains(text, "=") {
		return nil, errTimeZoneInSchedule
	}
	return cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(text)
}

func parseZone(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, fmt.Errorf("%s is no time zone of the IANA database", name)
	}
	return time.LoadLocation(name)
}

func parseWindow(w hubv1.RolloutWindow) (schedule, error) {
	fields, err := parseSchedule(w.Schedule)
	if err != nil {
		return schedule{}, err
	}
	zone, err := parseZone(w.TimeZone)
	return schedule{cron: fields, zone: zone, duration: seconds(w.DurationSeconds)}, err
}

// nextWindow reports whether at least one of the windows is open. If none is open, next is the time of the next
// opening, or zero if no window will ever open. Without windows, open is always true. An invalid window never opens, so
// that a typing error starts no change.
func nextWindow(windows []hubv1.RolloutWindow, now time.Time) (open bool, next time.Time) {
	if len(windows) == 0 {
		return true, time.Time{}
	}
	for _, w := range windows {
		s, err := parseWindow(w)
		if err != nil {
			continue
		}
		opens := s.after(now.Add(-s.duration))
		switch {
		case opens.IsZero():
		case !opens.After(now):
			return true, time.Time{}
		case next.IsZero() || opens.Before(next):
			next = opens
		}
	}
	return false, next
}
