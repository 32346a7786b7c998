// Package command has the commands of hansectl, one file each, and their shared code.
//
// Commands send requests to API servers with the user's own rights. They contain few rules of their own. Package view
// determines the output of commands. Package placement determines which placement an object follows. Package decide
// makes the decisions that explain and plan show. The hub decides everything else.
//   - A command that changes objects prints one line for each change on standard output, right after the change.
//   - A user can run every command again after an interruption. The command then finishes the work.
//   - Commands write credentials of members to the hub and never read them back.
package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// New returns the root command. name is the command with which the user has called the program: "hansectl" or "kubectl
// hanse".
func New(name, version string, streams genericiooptions.IOStreams) *cobra.Command {
	out := &written{Writer: streams.Out}
	streams.Out = out
	root := &cobra.Command{
		Use:           "hansectl",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: name},
		Short:         "Join clusters to a hub of Hanse and see what runs where",
		Long:          "hansectl joins clusters to a hub of Hanse and shows what runs where. The usual flags of kubectl name the hub.",
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Args:          usage(knownCommand),
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetFlagErrorFunc(flagError)

	h := &hub{flags: genericclioptions.NewConfigFlags(true).WithDiscoveryBurst(300).WithDiscoveryQPS(50), streams: streams, version: version}
	h.flags.WrapConfigFn = h.adjust
	h.flags.AddFlags(root.PersistentFlags())
	_ = root.RegisterFlagCompletionFunc("namespace", h.completeNamespaces)
	root.SetUsageTemplate(usageTemplate)

	root.AddCommand(newJoin(h), newUnjoin(h), newApprove(h), newRevoke(h), newRotate(h), newCordon(h), newUncordon(h), newDrain(h), newConfirm(h), newClusters(h), newGet(h),
		newStatus(h), newWait(h), newExplain(h), newProblems(h), newKinds(h), newHealth(h), newDiff(h), newTree(h), newEvents(h), newLogs(h), newRender(h), newPlan(h), newSuspend(h), newResume(h), newAdopt(h), newFederate(h),
		newWithdraw(h), newRollout(h), newOperators(h), newDashboard(h), newSink(h), newAcceptRestore(h), newPrune(h), newUninstall(h), newVersion(h), newOptions())
	addGroups(root)
	rename(root, name)
	h.forgetAfter(root)
	out.checkAfter(root)
	return root
}

// forgetAfter makes every command delete the object that it created on the hub to identify the user: a
// CertificateSigningRequest. It does so also after an error.
func (h *hub) forgetAfter(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			defer h.forget(cmd.Context())
			return run(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		h.forgetAfter(sub)
	}
}

// rename replaces "hansectl" in the examples of all commands by the name with which the user calls the program.
func rename(cmd *cobra.Command, name string) {
	cmd.Example = strings.ReplaceAll(cmd.Example, "  hansectl ", "  "+name+" ")
	for _, sub := range cmd.Commands() {
		rename(sub, name)
	}
}

// usage wraps a check of arguments. It adds a hint to the errors of the check.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError(cmd, err)
		}
		return nil
	}
}

// usageError returns the error with a hint and the exit code 2.
func usageError(cmd *cobra.Command, err error) error {
	return &ExitError{Code: 2, Err: fmt.Errorf("%w\nsee '%s --help'", err, cmd.CommandPath())}
}

// knownCommand checks the arguments of a command that has only subcommands. Any argument is an error, because it is not
// the name of a subcommand.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	return fmt.Errorf("there is no command %q%s", args[0], didYouMean(cmd.SuggestionsFor(args[0])))
}

// arguments requires as many arguments as there are names. The names are used in errors.
func arguments(names ...string) cobra.PositionalArgs {
	return usage(func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return fmt.Errorf("%s is missing", names[len(args)])
		case len(args) > len(names):
			return fmt.Errorf("unexpected argument %q", args[len(names)])
		}
		return nil
	})
}
