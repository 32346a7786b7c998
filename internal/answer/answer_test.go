package answer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// bounded returns the limited body of a response to a request with this context.
func bounded(ctx context.Context, t *testing.T, text string, share *Budget, watch bool) io.ReadCloser {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://member.example.com/api", nil)
	if err != nil {
		t.Fatal(err)
	}
	response := &http.Response{Request: request, Body: io.NopCloser(strings.NewReader(text)), Header: http.Header{}}
	if err := Bound(response, share, watch); err != nil {
		t.Fatal(err)
	}
	return response.Body
}

func TestAnAnswerIsWholeOrFails(t *testing.T) {
	tests := map[string]struct {
		text  string
		watch bool
		want  string
	}{
		"as many bytes as may be":                    {text: `"0123456789`},
		"one byte more":                              {text: `"0123456789"`, want: "the answer is larger than 11 bytes"},
		"as many values as may be":                   {text: `[0,1]`},
		"one value more":                             {text: `[0,1,2]`, want: "the answer is larger than 2 JSON values"},
		"what stands in a text is no value":          {text: `"[,\"{[,"`},
		"events together may be larger":              {text: "{\"a\":1}\n{\"a\":1}\n{\"a\":1}\n", watch: true},
		"an event that is larger than it may be":     {text: "{\"a\":1}\n{\"a\":\"0123456789\"}\n", watch: true, want: "an event of the watch is larger than 11 bytes"},
		"an event with more values than it may have": {text: "{\"a\":1}\n[[[\n", watch: true, want: "an event of the watch is larger than 2 JSON values"},
	}
	for name, tc := range tests {
		for chunks, slow := range map[string]bool{"": false, ", a byte at a time": true} {
			t.Run(name+chunks, func(t *testing.T) {
				body := bounded(Within(t.Context(), Bounds{Bytes: 11, Values: 2}), t, tc.text, NewShare(), tc.watch)
				var from io.Reader = body
				if slow {
					from = iotest.OneByteReader(from)
				}
				got, err := io.ReadAll(from)
				switch {
				case tc.want == "" && (err != nil || string(got) != tc.text):
					t.Errorf("read %q: %v", got, err)
				case tc.want != "" && (!IsTooLarge(err) || err.Error() != tc.want):
					t.Errorf("error %v, want %s", err, tc.want)
				}
			})
		}
	}
}

func TestAValueCostsNoMoreThanItIsTakenFor(t *testing.T) {
	for name, unit := range map[string]string{
		"maps with an entry": `{"":0},`, "empty maps": `{},`, "lists": `[[]],`, "numbers": `1,`, "texts": `"",`, "nested": `{"a":{"a":{"a":{"a":{}}}}},`,
	} {
		text := []byte("[" + strings.Repeat(unit, 20_000) + "0]")
		var c Counter
		c.Add(text)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var value any
		if err := json.Unmarshal(text, &value); err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		took := int64(after.HeapAlloc) - int64(before.HeapAlloc)
		runtime.KeepAlive(value)
		if most := valueCost*c.Values + int64(len(text)); took > most {
			t.Errorf("%s: took %d bytes, taken for %d", name, took, most)
		}
	}
}

func TestAResponseThatWaitsForMemoryEventuallyEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		share := newBudget(4 << 20)
		large := `["` + strings.Repeat("x", 3<<20) + `"]`
		kept := make(chan func(), 10)
		for range 10 {
			go func() {
				ctx, done := Keep(t.Context())
				body := bounded(ctx, t, large, share, false)
				if _, err := io.ReadAll(body); err != nil {
					t.Error(err)
				}
				_ = body.Close()
				kept <- done
			}()
		}
		inMemory := 0
		for range 10 {
			synctest.Wait()
			inMemory = max(inMemory, len(kept))
			(<-kept)()
		}
		if inMemory > 3 { // two fit into the share, and one may exceed the share
			t.Errorf("%d answers were in memory at once", inMemory)
		}
		if share.taken != 0 || len(share.beyond) != 0 {
			t.Errorf("%d bytes were not given back", share.taken)
		}
	})
}

// TestACallWithSeveralAnswersDoesNotWaitForItself makes calls that read an object and then the response to its write.
// Each response is larger than the share of the server.
func TestACallWithSeveralAnswersDoesNotWaitForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		share := newBudget(1 << 20)
		large := `["` + strings.Repeat("x", 3<<20) + `"]`
		ended := make(chan struct{}, 8)
		for range cap(ended) {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // fake time: it passes only while all goroutines wait
				defer cancel()
				ctx, done := Keep(ctx)
				defer done()
				for range 2 {
					body := bounded(ctx, t, large, share, false)
					if _, err := io.ReadAll(body); err != nil {
						t.Error(err)
					}
					_ = body.Close()
				}
				ended <- struct{}{}
			}()
		}
		for range cap(ended) {
			<-ended
		}
		synctest.Wait()
		if share.taken != 0 || len(share.beyond) != 0 {
			t.Errorf("%d bytes were not given back", share.taken)
		}
	})
}

func TestAResponseThatWaitsForMemoryEndsWithItsRequest(t *testing.T) {
	share := newBudget(0)
	share.beyond <- struct{}{} // another call exceeds the share now
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := io.ReadAll(bounded(ctx, t, strings.Repeat("x", 2<<20), share, false))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if _, err := io.ReadAll(bounded(t.Context(), t, "small", share, false)); err != nil {
		t.Errorf("a small answer waits: %v", err)
	}
}

func TestAListIsReadObjectByObject(t *testing.T) {
	tests := map[string]struct {
		text  string
		items []string
		next  string
		err   string
	}{
		"as an API server writes it": {
			text:  `{"kind":"NodeList","metadata":{"continue":"there"},"items":[{"a":1},{"b":[2]}],"other":{}}`,
			items: []string{`{"a":1}`, `{"b":[2]}`}, next: "there",
		},
		"an empty one":          {text: `{"items":[]}`},
		"nothing":               {text: `{"items":null}`},
		"no list":               {text: `{"items":{}}`, err: errNoList.Error()},
		"no field of the list":  {text: `{"kind":"NodeList","metadata":{"continue":"there"}}`, err: "the answer has no field items: " + errNoList.Error()},
		"an empty object":       {text: `{}`, err: "the answer has no field items: " + errNoList.Error()},
		"no object":             {text: `[]`, err: errNoList.Error()},
		"cut off":               {text: `{"items":[{"a":1},`, items: []string{`{"a":1}`}, err: "unexpected EOF"},
		"cut off in an object":  {text: `{"items":[{"a":`, err: "unexpected EOF"},
		"more objects":          {text: `{"items":[1,2,3,4]}`, items: []string{"1", "2", "3"}, err: "the list is larger than 3 objects"},
		"twice as many objects": {text: `{"items":[1,2],"items":[3,4]}`, items: []string{"1", "2", "3"}, err: "the list is larger than 3 objects"},
		"a long object":         {text: `{"items":["` + strings.Repeat("x", 5000) + `"]}`, err: "an object of the list is larger than 1 KiB"},
		"something long beside": {text: `{"x":"` + strings.Repeat("x", 5000) + `"}`, err: "an object of the list is larger than 1 KiB"},
		"a long name":           {text: `{"` + strings.Repeat("x", 5000) + `":1}`, err: "an object of the list is larger than 1 KiB"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var items []string
			next, err := List(strings.NewReader(tc.text), "items", ListBounds{Items: 3, ItemBytes: 1 << 10}, func(item []byte) error {
				items = append(items, string(item))
				return nil
			})
			if diff := cmp.Diff(tc.items, items); diff != "" || next != tc.next {
				t.Errorf("continues at %q (-want +got):\n%s", next, diff)
			}
			if got := fmt.Sprint(err); tc.err != "" && got != tc.err || tc.err == "" && err != nil {
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
}

func FuzzList(f *testing.F) {
	f.Add([]byte(`{"metadata":{"continue":"a"},"items":[{"a":1},{}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var items []json.RawMessage
		_, err := List(bytes.NewReader(text), "items", ListBounds{Items: 100, ItemBytes: 1 << 10}, func(item []byte) error {
			items = append(items, bytes.Clone(item))
			return nil
		})
		for _, item := range items {
			if !json.Valid(item) {
				t.Errorf("%q is no JSON: %v", item, err)
			}
		}
	})
}
