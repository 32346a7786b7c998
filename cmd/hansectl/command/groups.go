package command

import (
	"slices"

	"github.com/spf13/cobra"
)

// groups are the groups of commands in the help, with the names of their commands.
var groups = []struct {
	id, title string
	commands  []string
}{
	{"look", "Look:", []string{"status", "problems", "explain", "tree", "get", "events", "logs", "clusters", "kinds", "operators", "health", "dashboard"}},
	{"before", "Before a change:", []string{"plan", "diff", "render"}},
	{"change", "Change:", []string{"federate", "rollout", "wait", "suspend", "resume", "adopt", "withdraw", "confirm"}},
	{"members", "Clusters:", []string{"join", "unjoin", "approve", "revoke", "rotate", "cordon", "uncordon", "drain"}},
	{"repair", "Repair:", []string{"prune", "accept-restore", "uninstall"}},
	{"other", "Other:", []string{"sink", "version", "options", "completion", "help"}},
}

// addGroups puts the commands into the groups of the help.
func addGroups(root *cobra.Command) {
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, cmd := range root.Commands() {
			if slices.Contains(g.commands, cmd.Name()) {
				cmd.GroupID = g.id
			}
		}
	}
	root.SetHelpCommandGroupID("other")
	root.SetCompletionCommandGroupID("other")
}

// Reads reports whether a command changes nothing, so that an interruption leaves no changes behind.
func Reads(cmd *cobra.Command) bool {
	if parent := cmd.Parent(); parent != nil && parent.Name() == "rollout" {
		return cmd.Name() == "status" || cmd.Name() == "history"
	}
	for cmd.HasParent() && cmd.Parent().HasParent() {
		cmd = cmd.Parent()
	}
	return cmd.Name() != "operators" && (cmd.GroupID == "look" || cmd.GroupID == "before")
}
