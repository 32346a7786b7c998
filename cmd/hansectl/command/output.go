package command

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"

	"github.com/hanse-dev/hanse/view"
)

// shown is the result of a command, which can print itself as text.
type shown interface {
	Write(w io.Writer, now time.Time)
}

// shownWide is a result that has more columns for -o wide.
type shownWide interface {
	WriteWide(w io.Writer, now time.Time)
}

// shownNames is a result with object names for -o name. Other commands accept these names as arguments.
type shownNames interface {
	Names() []string
}

// output is the flag -o with its value.
type output struct {
	format string
	// formats are the output formats that the command has, except jsonpath.
	formats []string
}

const jsonpathFormat = "jsonpath="

// addTo adds the flag -o to a command. The argument "also" contains "wide" if the result is a shownWide, and "name" if
// the result is a shownNames.
func (o *output) addTo(cmd *cobra.Command, also ...string) {
	o.formats = append(also, "json", "yaml")
	cmd.Flags().StringVarP(&o.format, "output", "o", "", "Output format: "+o.choice()+". The default is text.")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(append(o.formats, jsonpathFormat), cobra.ShellCompDirectiveNoFileComp))
}

// choice lists the formats, such as "json, yaml or jsonpath=TEMPLATE".
func (o *output) choice() string {
	return strings.Join(o.formats, ", ") + " or " + jsonpathFormat + "TEMPLATE"
}

func (o *output) check(cmd *cobra.Command) error {
	if o.format == "" || slices.Contains(o.formats, o.format) {
		return nil
	}
	_, err := jsonpathPrinter(o.format)
	switch {
	case genericclioptions.IsNoCompatiblePrinterError(err):
		return usageError(cmd, fmt.Errorf("--output %q: want %s", o.format, o.choice()))
	case err != nil:
		return usageError(cmd, fmt.Errorf("--output %q: %w", o.format, err))
	}
	return nil
}

// jsonpathPrinter returns kubectl's printer for jsonpath=, jsonpath-as-json= and jsonpath-file=.
func jsonpathPrinter(format string) (printers.ResourcePrinter, error) {
	missing, template := true, ""
	return (&genericclioptions.JSONPathPrintFlags{AllowMissingKeys: &missing, TemplateArgument: &template}).ToPrinter(format)
}

func (o *output) print(w io.Writer, what shown) error {
	switch o.format {
	case "json":
		text, err := json.MarshalIndent(what, "", "  ")
		if err != nil {
			return fmt.Errorf("writing JSON: %w", err)
		}
		_, err = fmt.Fprintln(w, string(text))
		return err
	case "yaml":
		text, err := yaml.Marshal(what)
		if err != nil {
			return fmt.Errorf("writing YAML: %w", err)
		}
		_, err = w.Write(text)
		return err
	case "name":
		for _, name := range what.(shownNames).Names() {
			fmt.Fprintln(w, name)
		}
		return nil
	case "", "wide":
	default:
		return printPath(w, o.format, what)
	}
	w = o.screen(w, w)
	if o.format == "wide" {
		what.(shownWide).WriteWide(w, time.Now())
		return nil
	}
	what.Write(w, time.Now())
	return nil
}

// printPath applies a JSONPath template to the JSON of the result, and prints the output.
func printPath(w io.Writer, format string, what shown) error {
	printer, err := jsonpathPrinter(format)
	if err != nil {
		return fmt.Errorf("reading the template: %w", err)
	}
	text, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	content := map[string]any{}
	if err := utiljson.Unmarshal(text, &content); err != nil { // a float64 would be printed as 1e+06
		return fmt.Errorf("reading JSON: %w", err)
	}
	return printer.PrintObj(&unstructured.Unstructured{Object: content}, w)
}

// screen adds the colours and the width of a terminal to w, if the output is a terminal. The output of -o wide is not
// cut.
func (o *output) screen(w, terminal io.Writer) io.Writer {
	f, ok := fileOf(terminal)
	if !ok || !isTerminal(f) {
		return w
	}
	s := &view.Screen{Writer: w, Colours: coloured(f)}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && o.format != "wide" {
		s.Width = width
	}
	return s
}

// written is a writer that keeps its first error. Commands print tables and lines without checking for errors.
// checkAfter checks the error at the end.
type written struct {
	io.Writer
	err error
}

// Write implements io.Writer.
func (w *written) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if w.err == nil {
		w.err = err
	}
	return n, err
}

// checkAfter makes every command fail if its output could not be written.
func (w *written) checkAfter(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if err := run(cmd, args); err != nil || w.err == nil {
				return err
			}
			return fmt.Errorf("writing the output: %w", w.err)
		}
	}
	for _, sub := range cmd.Commands() {
		w.checkAfter(sub)
	}
}

// fileOf returns the file to which a writer writes, and false if the writer does not write to a file.
func fileOf(w io.Writer) (*os.File, bool) {
	if out, ok := w.(*written); ok {
		w = out.Writer
	}
	f, ok := w.(*os.File)
	return f, ok
}

func isTerminal(w io.Writer) bool {
	f, ok := fileOf(w)
	return ok && term.IsTerminal(int(f.Fd()))
}

// coloured reports whether the output is a terminal and the user has not turned colours off.
func coloured(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
