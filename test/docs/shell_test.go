package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"github.com/hanse-dev/hanse/test/console"
)

// TestCommandsOfTheDocsAreShell checks that a shell can parse the commands of each code block.
func TestCommandsOfTheDocsAreShell(t *testing.T) {
	root := filepath.Join("..", "..")
	blocks := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != root:
			return filepath.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		page, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, commands := range console.Blocks(string(page)) {
			blocks++
			if _, err := syntax.NewParser().Parse(strings.NewReader(commands), path); err != nil {
				t.Errorf("%v, in the commands\n%s", err, commands)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if blocks < 50 {
		t.Errorf("only %d blocks were found", blocks)
	}
}
