package canonical

import (
	"bytes"
	"encoding/json"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// FuzzBytes compares with encoding/json, whose text it is, for all that can be read from JSON.
func FuzzBytes(f *testing.F) {
	for _, s := range []string{
		`null`, `true`, `0`, `-12`, `9223372036854775807`, `1e21`, `1e20`, `1e-7`, `0.000001`, `-0.0`, `123.456e-9`, `"a"`, `"<&>\u2028\u2029\u0000\u001f\"\\/\b\f\n\r\t"`,
		`"\ud83d\ude00ä"`, `[]`, `[1,[2,{}]]`, `{}`, `{"b":1,"a":{"é":[null],"":" "}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var v any
		if utiljson.Unmarshal(data, &v) != nil {
			return
		}
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if got := Bytes(v); !bytes.Equal(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestAnEncoderIsUsedAgain(t *testing.T) {
	var e Encoder
	e.Value(map[string]any{"a": "b"})
	e.Forget()
	e.Value([]any{int64(1)})
	if got := string(e.Text); got != "[1]" {
		t.Errorf("got %s", got)
	}
}
