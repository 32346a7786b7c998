// Package docs holds docs to what the code has.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryClaimHasItsTest finds each test that the threat model and the promises of upgrades name, as the folder of
// its package and its function.
func TestEveryClaimHasItsTest(t *testing.T) {
	root := filepath.Join("..", "..")
	tests := testsBelow(t, root)
	for _, page := range []string{"docs/security.md", "docs/upgrade.md"} {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		claims := regexp.MustCompile("`([a-z0-9]+)\\.(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(text), -1)
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

// testsBelow are the tests of all packages, such as "apply.TestPause".
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
