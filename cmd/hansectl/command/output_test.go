package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/hanse-dev/hanse/view/preview"
)

// full is a writer that fails like a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestACommandFailsIfItsOutputCannotBeWritten(t *testing.T) {
	chart := filepath.Join("..", "..", "..", "docs", "examples", "operators", "rotors")
	for _, args := range []string{
		"operators rbac " + chart, "operators crds " + chart, "version --client", "version --client -o json", "plan --from " + os.DevNull,
	} {
		t.Run(args, func(t *testing.T) {
			root := New("hansectl", "test", genericiooptions.IOStreams{In: strings.NewReader(""), Out: full{}, ErrOut: &strings.Builder{}})
			root.SetArgs(strings.Fields(args))
			err := root.ExecuteContext(t.Context())
			refused(t, err, "no space left on device")
			exits(t, err, 1)
		})
	}
}

func TestAStoredPlanKeepsLargeIntegers(t *testing.T) {
	stored := storedPlan{Format: planFormat}
	stored.Plan.Changes = []preview.Change{{Groups: []preview.Group{{Fields: []preview.Field{{Path: "/spec/nanoseconds", After: int64(1234567890123456789)}}}}}}
	text, err := json.Marshal(stored)
	must(t, err)
	file := filepath.Join(t.TempDir(), "plan")
	must(t, os.WriteFile(file, text, 0o600))
	read, err := readPlan(file)
	must(t, err)
	if got := read.Plan.Changes[0].Groups[0].Fields[0].After; got != int64(1234567890123456789) {
		t.Errorf("got %v", got)
	}
}
