package v1alpha1

import (
	"strings"
	"testing"
)

func TestCutMessage(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		message string
		limit   int
		want    string
	}{
		"a message that fits stays":                        {"four", 4, "four"},
		"a longer one ends with an ellipsis":               {"fives", 4, "fiv…"},
		"characters count, not bytes":                      {"äöüß", 4, "äöüß"},
		"a character is not cut apart":                     {"äöüßä", 4, "äöü…"},
		"no character is left of none":                     {"some", 0, ""},
		"an empty message stays, whatever is left":         {"", 0, ""},
		"of a long text, only the part that stays is read": {strings.Repeat("😀", 1000), 3, "😀😀…"},
		"a message loses its middle, and keeps the way out": {
			"field manager x keeps changing .spec: " + strings.Repeat("ü", 1000) + ": stop that manager", 100,
			"field manager x keeps changing .spec: üüüüüüüüüüü…" + strings.Repeat("ü", 31) + ": stop that manager",
		},
		"a text that is no UTF-8 is cut, too": {strings.Repeat("\xff", 1000), 100, strings.Repeat("\xff", 49) + "…" + strings.Repeat("\xff", 50)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := CutMessage(tc.message, tc.limit); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
