package view

import (
	"bytes"
	"strings"
	"testing"
	"unicode"

	"github.com/hanse-dev/hanse/hub/memberview"
)

func FuzzLinesOfALogArePrintable(f *testing.F) {
	f.Add("2026-01-01T00:00:00Z plain\n\x1b[2J\u202e\r\n\xff", false)
	f.Add("", true)
	f.Fuzz(func(t *testing.T, text string, cut bool) {
		var out bytes.Buffer
		NewLogReader().Print(&out, "eu-fra-1", memberview.ContainerLog{Pod: "web-0", Container: "main", Text: text, Cut: cut})
		for line := range strings.Lines(out.String()) {
			if !strings.HasPrefix(line, "[eu-fra-1 web-0 main] ") || !strings.HasSuffix(line, "\n") {
				t.Errorf("got %q", line)
			}
			if strings.ContainsFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool { return r != '\t' && !unicode.IsPrint(r) }) {
				t.Errorf("got %q", line)
			}
		}
	})
}
