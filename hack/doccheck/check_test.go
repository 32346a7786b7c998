package main

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestCheck(t *testing.T) {
	long := strings.Repeat("x", 130)
	wide := strings.Repeat("word ", 30)
	tests := map[string]struct {
		files map[string]string
		want  []Fault
	}{
		"a link to a file and its heading leads somewhere": {
			files: map[string]string{
				"README.md":    "See [the map](docs/map.md#who-may-import-whom) and [docs](docs/).",
				"docs/map.md":  "## Who may import whom?\n[up](../README.md)",
				"docs/code.go": "",
			},
		},
		"a link to a file that is not there is broken": {
			files: map[string]string{"docs/a.md": "text\n\n[gone](b.md)"},
			want:  []Fault{{File: "docs/a.md", Line: 3, What: "b.md: no such file"}},
		},
		"a link to a heading that is not there is broken": {
			files: map[string]string{"a.md": "# One\n[two](#two)"},
			want:  []Fault{{File: "a.md", Line: 2, What: "#two: no such heading"}},
		},
		"the second heading of one name has a number": {
			files: map[string]string{"a.md": "# One\n# One\n[second](#one-1)"},
		},
		"a link out of the repository is broken": {
			files: map[string]string{"a.md": "[out](../b.md)"},
			want:  []Fault{{File: "a.md", Line: 1, What: "../b.md: leaves the repository"}},
		},
		"a named link is followed": {
			files: map[string]string{"a.md": "[one][1]\n\n[1]: b.md \"title\""},
			want:  []Fault{{File: "a.md", Line: 3, What: "b.md: no such file"}},
		},
		"links in code and links to the network are left alone": {
			files: map[string]string{
				"a.md": "`[x](y.md)`\n~~~md\n[x](y.md)\n```\n~~~\n[site](https://example.com/y.md) [mail](mailto:a@example.com)",
			},
		},
		"a line of a paragraph, an item or a quote that could break is too wide": {
			files: map[string]string{"a.md": wide + "\n\n- " + wide + "\n\n> " + wide},
			want: []Fault{
				{File: "a.md", Line: 1, What: "wider than 120 columns"},
				{File: "a.md", Line: 3, What: "wider than 120 columns"},
				{File: "a.md", Line: 5, What: "wider than 120 columns"},
			},
		},
		"a line of 120 columns is not too wide, whatever its bytes": {
			files: map[string]string{"a.md": strings.Repeat("ü ", 60)},
		},
		"a line that cannot break may be wide": {
			files: map[string]string{
				"a.md": "# " + wide + "\n\n| " + wide + " |\n\n- [x](https://example.com/" + long + ")\n\n`" + wide + "`\n\n```text\n" + wide + "\n```",
			},
		},
		"hidden folders and testdata are passed over": {
			files: map[string]string{".cache/a.md": "[x](y.md)", "testdata/a.md": "[x](y.md)"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tree := fstest.MapFS{}
			for file, text := range tc.files {
				tree[file] = &fstest.MapFile{Data: []byte(text)}
			}
			got, err := Check(tree)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}
