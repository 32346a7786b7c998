// Package docs compares the documentation with the code.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryClaimHasItsTest checks the tests that the threat model and the promises about upgrades name. The package and
// the function of each test must exist.
func TestEveryClaimHasItsTest(t *testing.T) {
	root := filepath.Join("..", "..")
	tests := testsBelow(t, root)
	for _, page := range []string{"docs/security.md", "docs/upgrade.md"} {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		claims := regexp.MustCompile("`([a-z0-9-]+)\\.(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(text), -1)
		if len(claims) == 0 {
			t.Errorf("%s names no test", page)
		}
		for _, claim := range claims {
			if name := claim[1] + "." + claim[2]; !tests[name] {
				t.Errorf("%s names %s, which does not exist", page, name)
			}
		}
	}
}

// testsBelow returns the tests of all packages, in the form "apply.TestPause".
func testsBelow(t *testing.T, root string) map[string]bool {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9]+)\(t \*testing\.T\)`)
	found := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != root:
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, test := range declared.FindAllSubmatch(source, -1) {
			found[filepath.Base(filepath.Dir(path))+"."+string(test[1])] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
