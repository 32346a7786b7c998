package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// isGenerated compares a page with what the code says. The page has a text by hand, the line begin, and then the
// generated text. With -update, it writes the generated text.
func isGenerated(t *testing.T, page, begin, generated string) {
	t.Helper()
	path := filepath.Join("..", "..", "docs", page)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	byHand, _, found := strings.Cut(string(content), begin)
	if !found {
		t.Fatalf("docs/%s does not have the line %q", page, begin)
	}
	want := byHand + begin + generated
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(content)); diff != "" {
		t.Errorf("docs/%s is out of date; run 'make generate' (-want +got):\n%s", page, diff)
	}
}
