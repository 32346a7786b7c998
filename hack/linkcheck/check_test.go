package main

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

func TestCheck(t *testing.T) {
	tests := map[string]struct {
		files map[string]string
		want  []Broken
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
			want:  []Broken{{File: "docs/a.md", Line: 3, Target: "b.md", Reason: "no such file"}},
		},
		"a link to a heading that is not there is broken": {
			files: map[string]string{"a.md": "# One\n[two](#two)"},
			want:  []Broken{{File: "a.md", Line: 2, Target: "#two", Reason: "no such heading"}},
		},
		"the second heading of one name has a number": {
			files: map[string]string{"a.md": "# One\n# One\n[second](#one-1)"},
		},
		"a link out of the repository is broken": {
			files: map[string]string{"a.md": "[out](../b.md)"},
			want:  []Broken{{File: "a.md", Line: 1, Target: "../b.md", Reason: "leaves the repository"}},
		},
		"a named link is followed": {
			files: map[string]string{"a.md": "[one][1]\n\n[1]: b.md \"title\""},
			want:  []Broken{{File: "a.md", Line: 3, Target: "b.md", Reason: "no such file"}},
		},
		"links in code and links to the network are left alone": {
			files: map[string]string{
				"a.md": "`[x](y.md)`\n~~~md\n[x](y.md)\n```\n~~~\n[site](https://example.com/y.md) [mail](mailto:a@example.com)",
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
				t.Errorf("broken links (-want +got):\n%s", diff)
			}
		})
	}
}
