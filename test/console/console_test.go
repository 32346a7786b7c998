package console

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCommandsAreDistinguishedFromTheirOutput(t *testing.T) {
	for name, tc := range map[string]struct{ block, want string }{
		"a command and its output":           {"$ kubectl get mcl\nNAME\ncn-sha-1\n", "kubectl get mcl\n"},
		"a command on two lines":             {"$ helm install \\\n    --wait\nNOTES\n$ ls\n", "helm install \\\n    --wait\nls\n"},
		"a here-document":                    {"$ kubectl apply -f - <<EOF\na: b\nEOF\nobject a created\n", "kubectl apply -f - <<EOF\na: b\nEOF\n"},
		"a script":                           {"make lab\nls bin\n", "make lab\nls bin\n"},
		"output before the first command":    {"...\n$ ls\n", "ls\n"},
		"output that ends with a backslash":  {"$ ls\na\\\nb\n", "ls\n"},
		"a here-document with quoted ending": {"$ cat <<'END'\n$x\nEND\nx\n", "cat <<'END'\n$x\nEND\n"},
	} {
		page := "Text.\n\n```console\n" + tc.block + "```\n\n```yaml\nspec: {}\n```\n"
		if diff := cmp.Diff([]string{tc.want}, Blocks(page)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
