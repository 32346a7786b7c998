package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

var (
	consoleBlock = regexp.MustCompile("(?s)```console\n(.*?)```")
	hereDocument = regexp.MustCompile(`<<-?'?(\w+)'?`)
)

// TestCommandsOfTheDocsAreShell parses the commands of each block: the lines after "$ ", with the lines to which they go
// on. A block without "$ " is a script.
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
		for _, found := range consoleBlock.FindAllStringSubmatch(string(page), -1) {
			blocks++
			commands := commandsOf(found[1])
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

// commandsOf returns the commands of a block without what they print.
func commandsOf(block string) string {
	if !strings.HasPrefix(block, "$ ") && !strings.Contains(block, "\n$ ") {
		return block
	}
	var commands strings.Builder
	goesOn, until := false, "" // until is the last line of a here-document
	for line := range strings.Lines(block) {
		command, ok := strings.CutPrefix(line, "$ ")
		if ok || goesOn {
			commands.WriteString(command)
		}
		if begins := hereDocument.FindStringSubmatch(command); (ok || goesOn) && begins != nil {
			until = begins[1]
		} else if strings.TrimSpace(line) == until {
			until = ""
		}
		goesOn = until != "" || (ok || goesOn) && strings.HasSuffix(line, "\\\n")
	}
	return commands.String()
}
