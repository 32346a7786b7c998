package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestEveryReasonHasItsLineInTroubleshooting compares three sources: docs/troubleshooting.md, the constants of the API,
// and the tables in docs/conditions.md. Each reason has exactly one line that says what to do. No line has an unknown
// reason.
func TestEveryReasonHasItsLineInTroubleshooting(t *testing.T) {
	root := filepath.Join("..", "..")
	reference := chapters(t, filepath.Join(root, "docs", "conditions.md"), "Conditions and reasons", "Events")
	required := reasonConstants(t, filepath.Join(root, "api", "v1alpha1", "conditions.go"))
	for _, row := range reasonRows(reference) {
		for _, reason := range row.reasons {
			required[reason] = true
		}
	}
	lines := map[string]int{}
	for _, row := range reasonRows(chapters(t, filepath.Join(root, "docs", "troubleshooting.md"), "Every reason")) {
		for _, reason := range row.reasons {
			lines[reason]++
			if row.text == "" {
				t.Errorf("docs/troubleshooting.md does not say what to do about %s", reason)
			}
			if !required[reason] && !strings.Contains(reference, "`"+reason+"`") {
				t.Errorf("docs/troubleshooting.md has a line for %s, which is neither a constant of the API nor in docs/conditions.md", reason)
			}
		}
	}
	for reason := range required {
		if lines[reason] != 1 {
			t.Errorf("docs/troubleshooting.md has %d lines for %s, want 1", lines[reason], reason)
		}
	}
}

// reasonConstants returns the values of the constants whose name begins with Reason.
func reasonConstants(t *testing.T, path string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range spec.Names {
			if !strings.HasPrefix(name.Name, "Reason") || i >= len(spec.Values) {
				continue
			}
			literal, ok := spec.Values[i].(*ast.BasicLit)
			if !ok {
				t.Fatalf("%s of %s is no literal", name.Name, path)
			}
			value, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			values[value] = true
		}
		return true
	})
	if len(values) == 0 {
		t.Fatalf("%s has no reasons", path)
	}
	return values
}

// chapters returns the text below these headings of the second level.
func chapters(t *testing.T, path string, headings ...string) string {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var found strings.Builder
	for _, heading := range headings {
		_, text, ok := strings.Cut("\n"+string(page), "\n## "+heading+"\n")
		if !ok {
			t.Fatalf("%s has no chapter %q", path, heading)
		}
		text, _, _ = strings.Cut(text, "\n## ")
		found.WriteString(text + "\n")
	}
	return found.String()
}

type reasonRow struct {
	reasons []string
	text    string // the last cell of the row
}

var quoted = regexp.MustCompile("`([A-Za-z]+)`")

// reasonRows returns the rows of all tables whose first column has the heading "reason".
func reasonRows(text string) []reasonRow {
	var rows []reasonRow
	inTable := false
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		first := strings.TrimSpace(cells[0])
		switch {
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case first == "reason":
			inTable = true
		case inTable && !strings.HasPrefix(first, "---"):
			row := reasonRow{text: strings.TrimSpace(cells[len(cells)-1])}
			for _, name := range quoted.FindAllStringSubmatch(first, -1) {
				row.reasons = append(row.reasons, name[1])
			}
			rows = append(rows, row)
		}
	}
	return rows
}
