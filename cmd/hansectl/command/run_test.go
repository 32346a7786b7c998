package command

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// run runs hansectl without a terminal, and returns the output.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return runVersion(t, "test", args...)
}

// runQuietly does the same as run, without the standard error, such as the progress of long work.
func runQuietly(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := New("hansectl", "test", genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: io.Discard})
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
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
