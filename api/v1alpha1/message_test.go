package v1alpha1

import (
	"strings"
	"testing"
)

func TestCutMessage(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		message string
		most    int
		want    string
	}{
		"a message that fits stays":                {"four", 4, "four"},
		"a longer one ends with an ellipsis":       {"fives", 4, "fiv…"},
		"characters count, not bytes":              {"äöüß", 4, "äöüß"},
		"a character is not cut apart":             {"äöüßä", 4, "äöü…"},
		"no character is left of none":             {"some", 0, ""},
		"an empty message stays, whatever is left": {"", 0, ""},
		"a long message is cut by its beginning":   {strings.Repeat("😀", 1000), 3, "😀😀…"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := CutMessage(tc.message, tc.most); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
