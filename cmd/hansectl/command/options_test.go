package command

import (
	"strings"
	"testing"
)

func TestOptionsListsTheGlobalFlagsAndHelpDoesNot(t *testing.T) {
	out, err := run(t, "options")
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--kubeconfig", "--context", "-n, --namespace", "--as"} {
		if !strings.Contains(out, flag) {
			t.Errorf("options does not list %s:\n%s", flag, out)
		}
	}
	for _, args := range [][]string{{"--help"}, {"status", "--help"}, {"get", "--help"}, {"completion", "bash", "--help"}} {
		out, err := run(t, args...)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out, "--kubeconfig string") || strings.Contains(out, "--as-group") {
			t.Errorf("%v repeats the global flags:\n%s", args, out)
		}
		if !strings.Contains(out, `Use "hansectl options" for a list of global flags`) {
			t.Errorf("%v does not say where the global flags are:\n%s", args, out)
		}
	}
	if out, _ := run(t, "status", "--help"); !strings.Contains(out, "--watch") {
		t.Errorf("the help of status does not have its own flags:\n%s", out)
	}
}
