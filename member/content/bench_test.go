package content_test

import (
	"os"
	"testing"

	"github.com/hanse-dev/hanse/member/content"
)

// widget returns an object of 1 KiB as a member's server returns it: the hub has applied it, and an operator has
// written its status.
func widget(tb testing.TB) string {
	tb.Helper()
	text, err := os.ReadFile("testdata/widget.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

func BenchmarkHash(b *testing.B) {
	for name, text := range map[string]string{"widget": widget(b), "deployment": live} {
		b.Run(name, func(b *testing.B) {
			u := object(b, text)
			b.ReportAllocs()
			for b.Loop() {
				if _, ours := content.Hash(nil, u); !ours {
					b.Fatal("not ours")
				}
			}
		})
	}
}
