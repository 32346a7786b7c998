package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"mvdan.cc/sh/v3/syntax"

	"github.com/hanse-dev/hanse/test/console"
)

// onLab are the commands of docs/kind.md that test/e2e runs on the lab, in TestTheKindPageRunsOnTheLab.
var onLab = []string{"hansectl", "helm", "kubectl"}

// unrun are the commands of docs/kind.md that need a container runtime, root, or minutes. A test checks their words.
var unrun = map[string]func(makefile string, args []string) error{"kind": checkKind, "make": checkMake, "sudo": checkSudo}

// TestTheKindPageSaysWhichOfItsCommandsRun checks the commands of docs/kind.md that do not run on the lab: the
// subcommands and flags of kind, the targets and variables of make, and the names of sysctl. The page must name them.
func TestTheKindPageSaysWhichOfItsCommandsRun(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "kind.md"))
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]int{}
	for _, block := range console.Blocks(string(page)) {
		for _, args := range callsIn(t, block) {
			used[args[0]]++
			check := unrun[args[0]]
			switch {
			case check == nil && !slices.Contains(onLab, args[0]):
				t.Errorf("no test runs or checks %s", strings.Join(args, " "))
			case check != nil:
				if err := check(string(makefile), args[1:]); err != nil {
					t.Errorf("%s: %v", strings.Join(args, " "), err)
				}
			}
		}
	}
	row := func(beginning string) []string {
		found := regexp.MustCompile("(?m)^\\| (`[^|]*) \\| " + beginning).FindStringSubmatch(string(page))
		if found == nil {
			t.Fatalf("the page has no row of a table that says %q", beginning)
		}
		names := strings.Split(strings.ReplaceAll(found[1], "`", ""), ", ")
		slices.Sort(names)
		return names
	}
	if got := row("run on the"); !slices.Equal(got, onLab) {
		t.Errorf("the page says that the lab runs %v, want %v", got, onLab)
	}
	var want []string
	for name := range unrun {
		want = append(want, name)
	}
	slices.Sort(want)
	if got := row("are not run"); !slices.Equal(got, want) {
		t.Errorf("the page says that no test runs %v, want %v", got, want)
	}
	for _, name := range append(want, onLab...) {
		if used[name] == 0 {
			t.Errorf("the page does not use %s", name)
		}
	}
}

// callsIn returns the commands of a block with their words. Words with variables keep their text.
func callsIn(t *testing.T, block string) [][]string {
	t.Helper()
	script, err := syntax.NewParser().Parse(strings.NewReader(block), "docs/kind.md")
	if err != nil {
		t.Fatal(err)
	}
	var out [][]string
	printer := syntax.NewPrinter()
	syntax.Walk(script, func(node syntax.Node) bool {
		call, ok := node.(*syntax.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		var words []string
		for _, word := range call.Args {
			var text strings.Builder
			if err := printer.Print(&text, word); err != nil {
				t.Fatal(err)
			}
			words = append(words, text.String())
		}
		out = append(out, words)
		return true
	})
	return out
}

// checkKind knows the commands and flags of kind that its documentation lists, as far as guides need them.
func checkKind(_ string, args []string) error {
	flags := pflag.NewFlagSet("kind", pflag.ContinueOnError)
	flags.Usage = func() {}
	for _, name := range []string{"name", "kubeconfig", "config", "image"} {
		flags.String(name, "", "")
	}
	flags.Duration("wait", 0, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	words := flags.Args()
	if len(words) < 2 {
		return fmt.Errorf("a subcommand is missing")
	}
	switch command := strings.Join(words[:2], " "); {
	case command == "create cluster" && len(words) == 2, command == "delete clusters" && len(words) > 2, command == "get kubeconfig" && len(words) == 2:
		return nil
	default:
		return fmt.Errorf("kind has no such command, or not with these arguments")
	}
}

func checkMake(makefile string, args []string) error {
	for _, arg := range args {
		name, _, variable := strings.Cut(arg, "=")
		pattern := `(?m)^` + regexp.QuoteMeta(name) + `:`
		if variable {
			pattern = `\$[({]` + regexp.QuoteMeta(name) + `[)}]`
		}
		if !regexp.MustCompile(pattern).MatchString(makefile) {
			return fmt.Errorf("the Makefile has no %s", name)
		}
	}
	return nil
}

func checkSudo(_ string, args []string) error {
	if len(args) < 2 || args[0] != "sysctl" {
		return fmt.Errorf("want sysctl alone with the rights of root")
	}
	for _, arg := range args[1:] {
		if !regexp.MustCompile(`^fs\.inotify\.max_user_(watches|instances)=[0-9]+$`).MatchString(arg) {
			return fmt.Errorf("%s is no limit of inotify", arg)
		}
	}
	return nil
}

func TestAWrongCommandOfTheKindPageIsFound(t *testing.T) {
	const makefile = "images: ## Write\n\tVERSION='$(VERSION)' hack/images.sh\n"
	for command, right := range map[string]bool{
		"kind create cluster --name hub --wait 2m": true, "kind create clusters --name hub": false, "kind create cluster --nam hub": false,
		"kind create cluster --wait soon": false, "kind delete clusters hub": true, "kind delete clusters": false, "kind": false,
		"make images VERSION=1": true, "make image": false, "make images VERSIONS=1": false,
		"sudo sysctl fs.inotify.max_user_watches=1": true, "sudo sysctl kernel.panic=1": false, "sudo rm -rf /": false,
	} {
		words := strings.Fields(command)
		if err := unrun[words[0]](makefile, words[1:]); (err == nil) != right {
			t.Errorf("%s: %v", command, err)
		}
	}
}
