package rollout

import (
	"testing"
	"time"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func TestNextWindow(t *testing.T) {
	nightly := hubv1.RolloutWindow{Schedule: "0 2 * * 1-5", DurationSeconds: 4 * 3600, TimeZone: "Asia/Shanghai"}
	for name, tc := range map[string]struct {
		windows []hubv1.RolloutWindow
		now     string
		open    bool
		next    string // next opening; empty: none
	}{
		"without windows it is always open":       {nil, "2026-11-26T12:00:00Z", true, ""},
		"a window opens at its time":              {[]hubv1.RolloutWindow{nightly}, "2026-11-26T18:00:00Z", true, ""},
		"a window is not open a second before":    {[]hubv1.RolloutWindow{nightly}, "2026-11-26T17:59:59Z", false, "2026-11-26T18:00:00Z"},
		"a window is open to its last moment":     {[]hubv1.RolloutWindow{nightly}, "2026-11-26T21:59:59.9Z", true, ""},
		"a window is closed after its duration":   {[]hubv1.RolloutWindow{nightly}, "2026-11-26T22:00:00Z", false, "2026-11-29T18:00:00Z"},
		"the window that opens first is the next": {[]hubv1.RolloutWindow{nightly, {Schedule: "30 13 * * *", DurationSeconds: 60}}, "2026-11-26T12:00:00Z", false, "2026-11-26T13:30:00Z"},
		"one open window is enough":               {[]hubv1.RolloutWindow{nightly, {Schedule: "0 12 * * *", DurationSeconds: 60}}, "2026-11-26T12:00:30Z", true, ""},
		"openings that overlap make one window":   {[]hubv1.RolloutWindow{{Schedule: "* * * * *", DurationSeconds: 600}}, "2026-11-26T12:00:30Z", true, ""},
		"a schedule that never fires never opens": {[]hubv1.RolloutWindow{{Schedule: "0 0 30 2 *", DurationSeconds: 60}}, "2026-11-26T12:00:00Z", false, ""},
		"a schedule that cannot be read never opens": {
			[]hubv1.RolloutWindow{{Schedule: "TZ=", DurationSeconds: 60}, {Schedule: "@daily", DurationSeconds: 60}, {Schedule: "* * * * *", DurationSeconds: 60, TimeZone: "Local"}},
			"2026-11-26T12:00:00Z", false, "",
		},
		"a time that a change of the clock leaves out does not fire": {
			[]hubv1.RolloutWindow{{Schedule: "30 2 29 3 *", DurationSeconds: 60, TimeZone: "Europe/Berlin"}}, "2026-03-29T00:00:00Z", false, "2027-03-29T00:30:00Z",
		},
	} {
		now, err := time.Parse(time.RFC3339, tc.now)
		if err != nil {
			t.Fatal(err)
		}
		open, next := nextWindow(tc.windows, now)
		text := ""
		if !next.IsZero() {
			text = next.Format(time.RFC3339)
		}
		if open != tc.open || text != tc.next {
			t.Errorf("%s: open %t, next %s; want %t, %s", name, open, text, tc.open, tc.next)
		}
	}
}
