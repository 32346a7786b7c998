package command

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestTheHealthOfFilesIsJudged(t *testing.T) {
	file := func(name string) string { return filepath.Join("testdata", "health", name) }
	// The order matters: a vocabulary stays for the rest of the process.
	tests := []struct {
		name string
		args []string
		err  string
	}{
		{name: "without a definition", args: []string{"-f", file("lamps.yaml")}},
		{name: "with a definition", args: []string{"-f", file("lamps.yaml"), "--definition", file("crd.yaml")}},
		{name: "as JSON", args: []string{"-f", file("lamps.yaml"), "-f", file("crd.yaml"), "-o", "json"}},
		{name: "no file", err: "--filename is missing"},
		{name: "a file that is not there", args: []string{"-f", file("none.yaml")}, err: "none.yaml"},
		{name: "a definition that is none", args: []string{"-f", file("lamps.yaml"), "--definition", file("lamps.yaml")}, err: "--definition has the Lamp hall: want CustomResourceDefinitions"},
		{name: "values without a vocabulary", args: []string{"-f", file("lamps.yaml"), "--vocabulary", file("crd.yaml")}, err: "it has no statusVocabulary"},
		{name: "a wrong vocabulary", args: []string{"-f", file("lamps.yaml"), "--vocabulary", file("wrong-values.yaml")}, err: `conditions[0].says is "Shining"`},
		{name: "with a vocabulary", args: []string{"-f", file("lamps.yaml"), "--definition", file("crd.yaml"), "--vocabulary", file("values.yaml")}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			root := New("hansectl", "test", genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &bytes.Buffer{}})
			root.SetArgs(append([]string{"health"}, tc.args...))
			err := root.ExecuteContext(t.Context())
			if tc.err != "" {
				refused(t, err, tc.err)
				return
			}
			must(t, err)
			isWhatIsPrinted(t, "health", tc.name, out.String())
		})
	}
}
