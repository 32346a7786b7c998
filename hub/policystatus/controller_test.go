package policystatus

import (
	"testing"
	"time"
)

func TestAPolicyThatKeepsChangingIsFoldedLessOften(t *testing.T) {
	var p pace
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	fold := func(wait time.Duration, writes bool, want time.Duration) {
		t.Helper()
		now = now.Add(wait)
		if p = p.foldedAt(now); writes {
			p = p.wroteAt(now)
		}
		if p.every != want {
			t.Errorf("it is folded every %s, want %s", p.every, want)
		}
	}
	fold(0, true, writeEvery)
	for _, want := range []time.Duration{2 * writeEvery, 4 * writeEvery, longestEvery, longestEvery} {
		fold(p.every, true, want)
	}
	fold(p.every, false, longestEvery)
	fold(p.every, true, writeEvery)
	fold(writeEvery, false, writeEvery) // such as for the event of its own write
	fold(writeEvery, true, writeEvery)
}
