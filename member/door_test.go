package member

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestALineIsShortAndValid(t *testing.T) {
	for _, text := range []string{"", "plain", strings.Repeat("😀", 300), strings.Repeat("\xff", 1<<16), "a\nb\x00c", strings.Repeat("é", 31) + "\xc3", strings.Repeat("x", 2<<20)} {
		line := Line(text, 64)
		if !utf8.ValidString(line) || utf8.RuneCountInString(line) > 64 || strings.ContainsAny(line, "\n\x00") {
			t.Errorf("%.80q became %q", text, line)
		}
	}
}
