//go:build !race

package health

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// A member may send a status as large as its API server allows. The hub judges it at each event, so judging must be
// fast.
func TestALargeStatusIsJudgedInNoTime(t *testing.T) {
	many := func(n int, entry string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(entry+",", n), ",") + "]"
	}
	condition := `{"type":"SomethingReady","status":"False","reason":"Because","message":"m"}`
	tests := map[string]string{
		"conditions":            fmt.Sprintf(`{"conditions":%s}`, many(20_000, condition)),
		"readers":               fmt.Sprintf(`{"parents":%s}`, many(10_000, `{"conditions":[`+condition+`]}`)),
		"a long phase":          fmt.Sprintf(`{"phase":%q}`, strings.Repeat("word ", 300_000)),
		"a long message":        fmt.Sprintf(`{"conditions":[{"type":"Ready","status":"False","message":%q}]}`, strings.Repeat("word ", 300_000)),
		"a deep status":         strings.Repeat(`{"a":`, 5_000) + "1" + strings.Repeat("}", 5_000),
		"fields without an end": fmt.Sprintf(`{"a":%s}`, many(300_000, "[]")),
	}
	for name, status := range tests {
		t.Run(name, func(t *testing.T) {
			obj := object(t, `{"apiVersion":"example.com/v1","kind":"Widget","status":{}}`)
			var s map[string]any
			if err := json.Unmarshal([]byte(status), &s); err != nil {
				t.Fatal(err)
			}
			obj.Object["status"] = s
			// The shortest of ten runs must be fast enough, because other processes may slow a run down.
			took := time.Hour
			for i := 0; i < 10 && took > time.Second; i++ {
				start := time.Now()
				fits(t, Assess(obj, Conventions{HasStatus: true}))
				took = min(took, time.Since(start))
			}
			if took > time.Second {
				t.Errorf("it takes %s", took)
			}
		})
	}
}
