package docs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/hanse-dev/hanse/cmd/hansectl/command"
)

// TestThePageOfHansectlHasTheHelpOfEveryCommand generates docs/hansectl.md from the commands.
//
// The package doc of cobra would write one file for each command, and needs two modules for man pages.
func TestThePageOfHansectlHasTheHelpOfEveryCommand(t *testing.T) {
	t.Setenv("KUBECACHEDIR", "$HOME/.kube/cache") // the default of --cache-dir names the home directory of the user
	root := command.New("hansectl", "", genericiooptions.NewTestIOStreamsDiscard())
	var index, sections strings.Builder
	named := map[string]bool{}
	for _, cmd := range everyCommand(root) {
		name := strings.TrimPrefix(cmd.CommandPath(), "hansectl ")
		fmt.Fprintf(&index, "| [%s](#%s) | %s |\n", name, strings.ReplaceAll(name, " ", "-"), markdown(cmd.Short))
		sections.WriteString(section(cmd, name, samplesOf(t, name)))
		named[name], named[fileOf(name)] = true, true
	}
	files, err := filepath.Glob(fileOf("*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(files, slices.Collect(maps.Keys(outputs))...) {
		if !named[name] {
			t.Errorf("%s has the output of no command", name)
		}
	}
	isGenerated(t, "hansectl.md", "## Commands\n", "\n| command | what it does |\n|---|---|\n"+index.String()+
		"\n## Global flags\n\n"+globalFlags+flagTable(root.PersistentFlags())+sections.String())
}

const globalFlags = `Every command takes these flags. They are for the hub. If a command has a flag --cluster of its own, that flag names a
member.

`

// everyCommand returns the commands below a command, each before its subcommands, in alphabetical order. It leaves out
// hidden commands, and the commands help and completion, which cobra adds.
func everyCommand(cmd *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, sub := range cmd.Commands() {
		if !sub.Hidden && sub.Name() != "completion" && sub.Name() != "help" {
			all = append(append(all, sub), everyCommand(sub)...)
		}
	}
	return all
}

// section returns the section of a command. Subcommands have a heading of the next level.
func section(cmd *cobra.Command, name, samples string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "\n%s %s\n\n", strings.Repeat("#", 2+strings.Count(name, " ")), name)
	fmt.Fprintf(&out, "```text\n%s\n```\n", cmd.UseLine())
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(&out, "\nOther names: `%s`.\n", strings.Join(cmd.Aliases, "`, `"))
	}
	out.WriteString("\n" + prose(firstOf(cmd.Long, cmd.Short)))
	if cmd.Example != "" {
		fmt.Fprintf(&out, "\n```sh\n%s\n```\n", dedent(cmd.Example))
	}
	if samples != "" {
		out.WriteString("\n```console\n" + samples + "```\n")
	}
	if table := flagTable(cmd.LocalNonPersistentFlags()); table != "" {
		out.WriteString("\n" + table)
	}
	return out.String()
}

func firstOf(long, short string) string {
	if long != "" {
		return long
	}
	return short + "."
}

// prose returns the Markdown of a help text. Indented blocks, such as lists of columns, become blocks of code.
func prose(help string) string {
	var blocks []string
	for block := range strings.SplitSeq(strings.TrimSpace(help), "\n\n") {
		if strings.HasPrefix(block, "  ") {
			blocks = append(blocks, "```text\n"+dedent(block)+"\n```\n")
			continue
		}
		blocks = append(blocks, wrap(markdown(block)))
	}
	return strings.Join(blocks, "\n")
}

func dedent(text string) string {
	return strings.TrimPrefix(strings.ReplaceAll(text, "\n  ", "\n"), "  ")
}

var (
	// code matches the words of a help text or comment that a page shows as code: flags with their values, words with a
	// dot or a slash inside, and quoted expressions.
	code = regexp.MustCompile(`(^|[\s("])(--?[a-zA-Z][\w-]*(?:=[\w/-]+)?|[\w-]{2,}(?:[./][\w-]+)+(?:/|:[A-Z]\w+)?|"[^"]*[=(*][^"]*")`)
	// escaped has the characters that Markdown would take as marks.
	escaped = strings.NewReplacer("*", `\*`, "<", `\<`, "|", `\|`)
)

func markdown(text string) string {
	var out strings.Builder
	at := 0
	for _, m := range code.FindAllStringSubmatchIndex(text, -1) {
		out.WriteString(escaped.Replace(text[at:m[4]]) + "`" + text[m[4]:m[5]] + "`")
		at = m[5]
	}
	return out.String() + escaped.Replace(text[at:])
}

// wrap breaks a paragraph into lines of at most 120 columns.
func wrap(text string) string {
	var out strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		width := utf8.RuneCountInString(word)
		switch {
		case column == 0:
		case column+1+width > 120:
			out.WriteString("\n")
			column = 0
		default:
			out.WriteString(" ")
			column++
		}
		out.WriteString(word)
		column += width
	}
	return out.String() + "\n"
}

// flagTable returns a table of flags, in alphabetical order. It is empty without flags.
func flagTable(flags *pflag.FlagSet) string {
	var rows strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name, value, usage := "--"+f.Name, "", ""
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if value, usage = pflag.UnquoteUsage(f); value != "" {
			name += " " + value
		}
		if !slices.Contains([]string{"", "0", "0s", "false", "[]"}, f.DefValue) {
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(&rows, "| `%s` | %s |\n", name, markdown(usage))
	})
	if rows.Len() == 0 {
		return ""
	}
	return "| flag | meaning |\n|---|---|\n" + rows.String()
}

// output is a file with the expected output in the test of a command. call is the call, unless the file has it.
type output struct{ file, call string }

// outputs are the sample outputs that other tests compare. Further ones, which need several clusters, are in files of
// testdata/hansectl that have the name of their command.
var outputs = map[string][]output{
	"explain": {
		{"view/testdata/explain/spread-over-regions.txt", "explain prometheus web -n monitoring"},
		{"view/testdata/explain/one-cluster-of-them.txt", "explain prometheus web -n monitoring --cluster cn-sha-2"},
		{"view/testdata/fields/a-copy-that-others-edit.txt", "explain prometheus web -n monitoring --cluster cn-sha-1 --fields"},
	},
	"health": {{"cmd/hansectl/command/testdata/health/with-a-definition.txt", "health -f lamps.yaml --definition crd.yaml"}},
	"render": {
		{"cmd/hansectl/command/testdata/render/for-the-clusters-of-a-placement.txt", ""},
		{"cmd/hansectl/command/testdata/render/with-another-policy.txt", ""},
	},
	"rollout status": {
		{"view/testdata/rollout/a-wave-is-changing.txt", "rollout status prometheus web -n monitoring"},
		{"view/testdata/rollout/placement-objects-move.txt", "rollout status placement metrics -n monitoring"},
	},
	"status": {
		{"view/testdata/status/one-cluster-is-away.txt", "status prometheus web -n monitoring"},
		{"view/testdata/status/a-link-was-just-lost.wide.txt", "status prometheus web -n monitoring -o wide"},
		{"view/testdata/tree/stack.status.txt", "status bundle stack -n monitoring"},
	},
	"tree": {
		{"view/testdata/tree/whole.txt", "tree metrics -n monitoring"},
		{"view/testdata/tree/stack.txt", "tree bundle stack -n monitoring"},
	},
}

// samplesOf returns the sample outputs of a command, with its calls.
func samplesOf(t *testing.T, name string) string {
	t.Helper()
	var samples []string
	for _, o := range outputs[name] {
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(o.file)))
		if err != nil {
			t.Fatal(err)
		}
		sample := strings.TrimRight(string(text), "\n") + "\n"
		if o.call != "" {
			sample = "$ hansectl " + o.call + "\n" + sample
		}
		samples = append(samples, sample)
	}
	text, err := os.ReadFile(fileOf(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err == nil {
		samples = append(samples, string(text))
	}
	return strings.Join(samples, "\n")
}

func fileOf(name string) string {
	return filepath.Join("testdata", "hansectl", strings.ReplaceAll(name, " ", "-")+".txt")
}
