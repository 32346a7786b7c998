package informer

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
)

func TestAWatchIsCutIntoItsEvents(t *testing.T) {
	long := `{"type":"ADDED","object":{"a":"` + strings.Repeat("x", 100_000) + `"}}`
	tests := map[string]struct {
		stream string
		want   []string
		end    error
	}{
		"as API servers write it":      {stream: "{\"a\":1}\n{\"b\":2}\n", want: []string{`{"a":1}`, `{"b":2}`}, end: io.EOF},
		"without a last newline":       {stream: "{\"a\":1}\n{\"b\":2}", want: []string{`{"a":1}`, `{"b":2}`}, end: io.EOF},
		"with empty lines":             {stream: "\n{\"a\":1}\r\n\n \n{\"b\":2}\n\n", want: []string{`{"a":1}`, `{"b":2}`}, end: io.EOF},
		"nothing":                      {end: io.EOF},
		"an event longer than buffers": {stream: long + "\n{\"b\":2}\n", want: []string{long, `{"b":2}`}, end: io.EOF},
		"cut off in an event":          {stream: "{\"a\":1}\n{\"b\":", want: []string{`{"a":1}`}, end: io.ErrUnexpectedEOF},
		"spread over lines": {
			stream: "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n{\"c\":2}\n", want: []string{"{\n  \"a\": {\n    \"b\": 1\n  }\n}\n", `{"c":2}`}, end: io.EOF,
		},
		"spread over lines and cut off": {stream: "{\n  \"a\": {\n", end: io.ErrUnexpectedEOF},
	}
	for name, tc := range tests {
		for chunks, slow := range map[string]bool{"": false, ", a byte at a time": true} {
			t.Run(name+chunks, func(t *testing.T) {
				var stream io.Reader = strings.NewReader(tc.stream)
				if slow {
					stream = iotest.OneByteReader(stream)
				}
				got, end := readAll(frames{json.Framer}.NewFrameReader(io.NopCloser(stream)))
				if diff := cmp.Diff(tc.want, got); diff != "" || !errors.Is(end, tc.end) {
					t.Errorf("ended with %v, want %v (-want +got):\n%s", end, tc.end, diff)
				}
			})
		}
	}
}

func TestAnEventWithoutEndIsRefused(t *testing.T) {
	endless := io.MultiReader(strings.NewReader("{\"a\":1}\n{"), repeat('x'))
	got, err := readAll(frames{json.Framer}.NewFrameReader(io.NopCloser(endless)))
	if len(got) != 1 || err == nil || !strings.Contains(err.Error(), "larger than 4194304 bytes") {
		t.Errorf("%d events, then %v", len(got), err)
	}
}

type repeat byte

func (r repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(r)
	}
	return len(p), nil
}

// readAll reads events with a buffer of only seven bytes. client-go reads in the same way with a larger buffer.
func readAll(r io.Reader) (events []string, err error) {
	var event strings.Builder
	buffer := make([]byte, 7)
	for {
		n, err := r.Read(buffer)
		event.Write(buffer[:n])
		switch {
		case err == nil:
			events = append(events, event.String())
			event.Reset()
		case !errors.Is(err, io.ErrShortBuffer):
			return events, err
		}
	}
}
