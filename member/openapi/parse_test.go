package openapi_test

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/hanse-dev/hanse/member/openapi"
)

func TestADocumentThatIsOfNoUse(t *testing.T) {
	var many strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&many, `"f%d":{"type":"string"},`, i)
	}
	tests := map[string]struct {
		raw  []byte
		want error
	}{
		"no JSON":                   {raw: []byte(`<html>`)},
		"another document":          {raw: []byte(`{"swagger":"2.0"}`), want: openapi.ErrNoSchema},
		"no schema of this kind":    {raw: []byte(`{"components":{"schemas":{"a":{"type":"object"}}}}`), want: openapi.ErrNoSchema},
		"more fields than are kept": {raw: withProperties(strings.TrimSuffix(many.String(), ","), "")},
		"a kind of another shape":   {raw: withSpec(`"text"`, "")},
		"a schema of another shape": {raw: withProperties(`"spec":"text"`, "")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := openapi.Parse(tt.raw, gadget)
			if err == nil || s != nil || (tt.want != nil && !errors.Is(err, tt.want)) {
				t.Errorf("got %v, %v, want an error %v", s, err, tt.want)
			}
		})
	}
}

// The hub keeps the schemas of all kinds in use in memory. Therefore equal parts of a schema must share memory.
func TestEqualPartsOfASchemaAreKeptOnce(t *testing.T) {
	const part = `{"type":"object","required":["name"],"properties":{"name":{"type":"string","minLength":1,"pattern":"^[a-z]+$"},
		"mode":{"type":"string","enum":["Slow","Fast"]},"either":{"oneOf":[{"required":["a"]},{"required":["b"]}]}}}`
	heap := func() int64 { // the runtime frees the memory of earlier tests in goroutines that run after a collection
		least := int64(math.MaxInt64)
		for unchanged := 0; unchanged < 3; unchanged++ {
			runtime.GC()
			runtime.Gosched()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			if now := int64(m.HeapAlloc); now < least-1024 {
				least, unchanged = now, -1
			}
		}
		return least
	}
	var kept []*openapi.Schema
	sizeOf := func(parts int) int64 {
		var properties []string
		for i := range parts {
			properties = append(properties, fmt.Sprintf(`"f%04d":%s`, i, part))
		}
		raw := withProperties(strings.Join(properties, ","), "")
		before := heap()
		s, err := openapi.Parse(raw, gadget)
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, s)
		runtime.KeepAlive(raw)
		return heap() - before
	}
	sizeOf(1000) // fills the process-wide store of field names before the measurement
	if one, many := sizeOf(1), sizeOf(1000); many-one > 100*1000 {
		t.Errorf("1000 equal parts take %d bytes, one %d", many, one)
	}
	runtime.KeepAlive(kept)
}
