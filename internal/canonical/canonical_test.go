package canonical_test

import (
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/hanse-dev/hanse/internal/canonical"
)

// Annotations of copies and rows of bindings hold digests of these texts. A new version of a library must not change
// the texts.
func TestTheCanonicalTextNeverChanges(t *testing.T) {
	tests := map[string]struct{ json, want string }{
		"null and booleans":               {`[null, true, false]`, `[null,true,false]`},
		"integers":                        {`[0, -12, 9223372036854775807]`, `[0,-12,9223372036854775807]`},
		"numbers that are large or small": {`[1e21, 1e20, 1e-7, 0.000001, -0.0, 123.456e-9]`, `[1e+21,100000000000000000000,1e-7,0.000001,-0,1.23456e-7]`},
		"whole numbers with a point":      {`[3.0, 0.5]`, `[3,0.5]`},
		"keys are in their order":         {`{"b": 1, "a": {"é": [null], "": " "}, "B": {}}`, `{"B":{},"a":{"":" ","é":[null]},"b":1}`},
		"characters of HTML are escaped":  {`"<&>"`, `"\u003c\u0026\u003e"`},
		"so are control characters":       {`"\u0000\u001f\"\\\/\b\f\n\r\t"`, `"\u0000\u001f\"\\/\b\f\n\r\t"`},
		"so are separators of lines":      {`"\u2028\u2029"`, `"\u2028\u2029"`},
		"other characters are not":        {`"\ud83d\ude00ä"`, `"😀ä"`},
		"text that is no UTF-8":           {"\"a\xffb\"", `"a` + "\ufffd" + `b"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var v any
			if err := utiljson.Unmarshal([]byte(tt.json), &v); err != nil {
				t.Fatal(err)
			}
			if got := string(canonical.Bytes(v)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestCompressionKeepsTheText(t *testing.T) {
	for _, text := range []string{"", "a", strings.Repeat("Hanse ", 10000)} {
		compressed, err := canonical.Compress([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := canonical.Decompress(compressed, len(text)); err != nil || string(got) != text {
			t.Errorf("%d bytes became %d: %v", len(text), len(got), err)
		}
		if _, err := canonical.Decompress(compressed, len(text)-1); err == nil {
			t.Errorf("%d bytes are decompressed although %d are the limit", len(text), len(text)-1)
		}
		if _, err := canonical.Decompress(compressed[:len(compressed)/2], len(text)); err == nil {
			t.Errorf("half of %d compressed bytes is decompressed", len(compressed))
		}
	}
}
