package command

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// run runs hansectl without a terminal, and returns the output.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return runVersion(t, "test", args...)
}

// runVersion does the same as run for a hansectl of this version.
func runVersion(t *testing.T, version string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := New("hansectl", version, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}
