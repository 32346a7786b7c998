package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// TestTheManifestsOfATaskAreInTheFileThatItApplies compares a block of YAML of each page with the file that the page
// applies.
func TestTheManifestsOfATaskAreInTheFileThatItApplies(t *testing.T) {
	for _, tc := range []struct {
		page, file string
		block      int
	}{
		{"place.md", "metrics/placement.yaml", 0},
		{"place-your-own-kind.md", "caches/hub-values.yaml", 0},
		{"place-your-own-kind.md", "caches/cache.yaml", 1},
		{"roll-out.md", "metrics/rollout.yaml", 0},
	} {
		page, err := os.ReadFile(filepath.Join("..", "..", "docs", "tasks", tc.page))
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.ReadFile(filepath.Join("..", "..", "docs", "examples", tc.file))
		if err != nil {
			t.Fatal(err)
		}
		blocks := yamlBlock.FindAllStringSubmatch(string(page), -1)
		if len(blocks) <= tc.block {
			t.Errorf("%s has only %d blocks of YAML", tc.page, len(blocks))
		} else if !strings.Contains(string(file), blocks[tc.block][1]) {
			t.Errorf("docs/examples/%s does not have the manifests of %s:\n%s", tc.file, tc.page, blocks[tc.block][1])
		}
	}
}
