// Package examples tests the examples of Markdown files: a block with an input, followed by a block with the output. A
// guide shows the examples that readers need, and a file in testdata covers the other rules.
package examples

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// File is a Markdown file with examples. AtLeast is the minimum number of its examples.
type File struct {
	Path    string
	AtLeast int
}

// Run compares the output of each example with the result of output, in a test with the name of the heading above. The
// first group of the pattern blocks is the input, and its second group the output. output also gets the text of the
// whole file. If update is true, Run writes the results into the files.
func Run(t *testing.T, update bool, blocks *regexp.Regexp, files []File, output func(t *testing.T, page, input string) string) {
	t.Helper()
	for _, file := range files {
		t.Run(filepath.Base(file.Path), func(t *testing.T) {
			raw, err := os.ReadFile(file.Path)
			if err != nil {
				t.Fatal(err)
			}
			page := string(raw)
			text := page
			found := blocks.FindAllStringSubmatchIndex(text, -1)
			if len(found) < file.AtLeast {
				t.Fatalf("the file has %d examples only, want at least %d", len(found), file.AtLeast)
			}
			for _, at := range slices.Backward(found) { // from the end, so that earlier offsets stay valid
				t.Run(headingBefore(text, at[0]), func(t *testing.T) {
					got := output(t, page, text[at[2]:at[3]])
					if diff := cmp.Diff(text[at[4]:at[5]], got); diff != "" && !update {
						t.Errorf("run the test with -update and read the difference (-file +result):\n%s", diff)
					}
					text = text[:at[4]] + got + text[at[5]:]
				})
			}
			if update {
				if err := os.WriteFile(file.Path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

var fleetBlock = regexp.MustCompile("```yaml\n(fleet:\n[^`]*)```")

// Fleet reads the first block of a page that begins with the field fleet.
func Fleet[C any](t *testing.T, page string) []C {
	t.Helper()
	block := fleetBlock.FindStringSubmatch(page)
	if block == nil {
		t.Fatal("the file has no fleet")
	}
	var common struct {
		Fleet []C `json:"fleet"`
	}
	if err := yaml.UnmarshalStrict([]byte(block[1]), &common); err != nil {
		t.Fatalf("reading the fleet: %v", err)
	}
	return common.Fleet
}

func headingBefore(text string, at int) string {
	for _, line := range slices.Backward(strings.Split(text[:at], "\n")) {
		if title, ok := strings.CutPrefix(line, "#"); ok {
			return strings.Trim(title, "# ")
		}
	}
	return ""
}
