package command

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the expected texts under testdata")

// isWhatIsPrinted compares the output of a command with the file of the test case in a folder of testdata.
func isWhatIsPrinted(t *testing.T, folder, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", folder, strings.ReplaceAll(strings.ReplaceAll(name, ",", ""), " ", "-")+".txt")
	if *update {
		must(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
