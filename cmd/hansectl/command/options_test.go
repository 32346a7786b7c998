package command

import (
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
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

func TestTheHelpListsEveryCommandInAGroup(t *testing.T) {
	out, err := run(t, "--help")
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, title := range []string{"\nLook:\n", "\nBefore a change:\n", "\nChange:\n", "\nClusters:\n", "\nRepair:\n", "\nOther:\n"} {
		next := strings.Index(out, title)
		if next <= at {
			t.Fatalf("%q is not where it should be:\n%s", title, out)
		}
		at = next
	}
	root := New("hansectl", "test", genericiooptions.NewTestIOStreamsDiscard())
	for _, cmd := range root.Commands() {
		if cmd.GroupID == "" {
			t.Errorf("%s is in no group", cmd.Name())
		}
		if strings.Count(out, "\n  "+cmd.Name()+" ") != 1 {
			t.Errorf("%s is not listed once:\n%s", cmd.Name(), out)
		}
	}
}

func TestOnlyCommandsThatWriteLeaveChangesWhenTheyAreInterrupted(t *testing.T) {
	root := New("hansectl", "test", genericiooptions.NewTestIOStreamsDiscard())
	for line, want := range map[string]bool{
		"status": true, "plan": true, "plan show": true, "rollout status": true, "rollout history": true,
		"rollout undo": false, "join": false, "drain": false, "operators regenerate": false, "federate": false,
	} {
		cmd, _, err := root.Find(strings.Fields(line))
		if err != nil || Reads(cmd) != want {
			t.Errorf("%s reads only: %v, want %v, %v", line, Reads(cmd), want, err)
		}
	}
}
