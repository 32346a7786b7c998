package command

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	cliresource "k8s.io/cli-runtime/pkg/resource"

	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/preview"
)

// simulate has the arguments of one run of the command simulate.
type simulate struct {
	hub     *hub
	window  window
	out     output
	files   cliresource.FilenameOptions
	offline bool
	all     bool
	changes fleetChanges
}

func newSimulate(h *hub) *cobra.Command {
	s := &simulate{hub: h}
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Show which objects would move if clusters were lost, joined or got other labels, or placements changed",
		Long: `Show which objects would move if clusters were lost, joined or got other labels, or placements changed.

All decisions are made with the code of the hub, for the current state and for the changed state, until they no longer
change. It is assumed that every cluster that answers carries out the decisions. The difference is printed. Nothing is
written.

--without-cluster simulates an unreachable cluster, not a removed one: objects move if their placement sets
failover.evictAfterSeconds, and all others stay. -f simulates files as if they were applied to the hub. With
--offline, only the files count.

Each line is for all objects with the same placement and the same change:

  GAINED, LOST  clusters that hold the object only after the changes, or only before
  AWAY          clusters that hold the object and no longer answer; whether the workload runs there is not known
  REPLICAS      the divided replicas of all objects of the line, before and after, on each cluster where they differ
  RUNS ON       how many clusters hold the object and answer, before and after
  NO ROOM       how many replicas fit nowhere, before and after
  PROBLEM       the condition Scheduled that the hub would write

If more than half of the clusters would not answer, the hub moves no object, and a note says so. A cluster of
--add-cluster NAME is Ready, open to every namespace, and serves every kind; it has no room for replicas that are
divided by capacity. --offline assumes: objects without a namespace are cluster-scoped, clusters without the condition
Ready are Ready, and the hub runs no workloads. Limits of the rate, such as evictions per second, have no effect.
Objects are decided kind by kind, in the order of the names of the kinds, which can change results with the score
FewestObjects. Kinds that the hub's API server does not serve are left out, with a note.
A file that the hub would refuse is an error.

Exit code: 0 nothing changes, 1 something changes, 2 an error.`,
		Example: `  # A region is lost
  hansectl simulate --without-region eu-central-1

  # A cluster joins, and another one gets a label
  hansectl simulate --add-cluster us-west-2,tier=gold --set-label eu-fra-1:tier=gold

  # What a changed placement would do
  hansectl simulate -f placement.yaml

  # Without a hub: what is there, and what it would be without a cluster
  hansectl simulate --offline -f fleet/ --without-cluster eu-fra-1`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.check(cmd); err != nil {
				return failed(err)
			}
			return failed(s.run(cmd.Context()))
		},
	}
	s.out.addTo(cmd)
	flags := cmd.Flags()
	s.window.addTo(flags)
	flags.StringArrayVar(&s.changes.withoutClusters, "without-cluster", nil, "A cluster that does not answer. Can be repeated.")
	flags.StringArrayVar(&s.changes.withoutRegions, "without-region", nil, "A region in which no cluster answers. Can be repeated.")
	flags.StringArrayVar(&s.changes.addClusters, "add-cluster", nil, "A cluster that joins: NAME[,LABEL=VALUE...], or a file with MemberClusters. Can be repeated.")
	flags.StringArrayVar(&s.changes.setLabels, "set-label", nil, "A label of a cluster: CLUSTER:KEY=VALUE, or CLUSTER:KEY- to remove the label. Can be repeated.")
	flags.StringSliceVarP(&s.files.Filenames, "filename", "f", nil, "Files or directories with objects to treat as if they were applied; - for standard input.")
	flags.BoolVarP(&s.files.Recursive, "recursive", "R", false, "Also read subdirectories.")
	flags.BoolVar(&s.offline, "offline", false, "Send no request to a hub: read MemberClusters, placements, objects and bindings from the files.")
	flags.BoolVar(&s.all, "all", false, "List every object with its clusters, one object per line.")
	_ = cmd.RegisterFlagCompletionFunc("without-cluster", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return h.completeClusters(cmd, nil, typed)
	})
	_ = cmd.RegisterFlagCompletionFunc("without-region", h.completeRegions)
	return cmd
}

var errNoFiles = errors.New("--offline needs files: give them with -f")

func (s *simulate) check(cmd *cobra.Command) error {
	if err := s.out.check(cmd); err != nil {
		return err
	}
	if s.offline && len(s.files.Filenames) == 0 {
		return usageError(cmd, errNoFiles)
	}
	return nil
}

func (s *simulate) run(ctx context.Context) error {
	progress := &progressPrinter{to: s.hub.streams.ErrOut, began: time.Now()}
	files, err := readFiles(ctx, s.files)
	if err != nil {
		return err
	}
	if err := files.refused(); err != nil {
		return err
	}
	in := snapshotInput{files: files, changes: s.changes}
	if s.offline {
		in.from, in.files = files, &fleetFiles{}
	}
	snap, err := s.hub.snapshot(ctx, &s.window, in, progress)
	if err != nil {
		return err
	}
	changes, notes := snap.changes, snap.notes
	if !in.files.empty() {
		changes = append([]string{in.files.summary() + " applied"}, changes...)
		if len(in.files.overrides)+len(in.files.objects) > 0 {
			notes = append(notes, "content of copies not compared: hansectl diff compares it")
		}
	}
	if len(changes) == 0 {
		next, err := preview.DecideNext(ctx, snap.before, progress.decided("as it is"))
		if err != nil {
			return err
		}
		return s.print(view.Simulate(next, nil, notes, s.all))
	}
	decisions, err := preview.Decide(ctx, snap.before, snap.after, progress.decided("as it is"), progress.decided("with the changes"))
	if err != nil {
		return err
	}
	if n := decisions.Underway(); n > 0 {
		notes = append(notes, "the current decision on "+counted(n, "object")+" is not carried out yet: the simulation compares with that decision")
	}
	return s.print(view.Simulate(decisions, changes, notes, s.all))
}

func (s *simulate) print(result view.Simulation) error {
	if err := s.out.print(s.hub.streams.Out, result); err != nil {
		return err
	}
	if result.Changed() {
		return &ExitError{Code: 1}
	}
	return nil
}
