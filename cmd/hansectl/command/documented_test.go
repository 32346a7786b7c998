package command

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// TestDocumentedCommandsHaveTheirFlagsAndArguments finds every call of hansectl in the Markdown files and in the
// examples of help texts, and parses its flags and arguments. It runs none of the commands.
func TestDocumentedCommandsHaveTheirFlagsAndArguments(t *testing.T) {
	calls := examples(New("hansectl", "test", genericiooptions.NewTestIOStreamsDiscard()))
	root := filepath.Join("..", "..", "..")
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
		for _, line := range lines(string(page)) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				calls = append(calls, callsIn(command)...)
			}
		}
		return err
	})
	must(t, err)
	if len(calls) < 100 {
		t.Fatalf("only %d calls were found", len(calls))
	}
	for _, call := range calls {
		if err := parse(call); err != nil {
			t.Errorf("hansectl %s: %v", strings.Join(call, " "), err)
		}
	}
}

// parse parses flags and arguments as cobra does before it runs a command.
func parse(args []string) error {
	root := New("hansectl", "test", genericiooptions.NewTestIOStreamsDiscard())
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return cmd.FlagErrorFunc()(cmd, err)
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// examples returns the calls in the help of a command and of its subcommands.
func examples(cmd *cobra.Command) [][]string {
	var calls [][]string
	for _, line := range lines(cmd.Example) {
		calls = append(calls, callsIn(strings.TrimSpace(line))...)
	}
	for _, sub := range cmd.Commands() {
		calls = append(calls, examples(sub)...)
	}
	return calls
}

// lines returns the lines of a text. A line that ends with a backslash is joined with the next line.
func lines(text string) []string { return strings.Split(strings.ReplaceAll(text, "\\\n", " "), "\n") }

// callsIn returns the arguments of each call of hansectl in a line of a shell.
func callsIn(line string) [][]string {
	var calls [][]string
	for _, words := range commandsOf(line) {
		switch {
		case len(words) > 0 && words[0] == "hansectl":
			calls = append(calls, words[1:])
		case len(words) > 1 && words[0] == "kubectl" && words[1] == "hanse":
			calls = append(calls, words[2:])
		}
	}
	return calls
}

// commandsOf splits a line into commands, and the commands into words. It handles quotes, pipes, lists, redirections
// and comments.
func commandsOf(line string) [][]string {
	var commands [][]string
	var words []string
	var word strings.Builder
	var quote rune
	inWord, comment := false, false
	endWord := func() {
		if inWord {
			words = append(words, word.String())
		}
		word.Reset()
		inWord = false
	}
	endCommand := func() {
		endWord()
		commands, words = append(commands, words), nil
	}
	for _, r := range line {
		switch {
		case comment:
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ':
			endWord()
		case r == '#' && !inWord:
			comment = true
		case strings.ContainsRune("|;&()<>", r):
			endCommand()
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	endCommand()
	return commands
}
