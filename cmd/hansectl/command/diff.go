package command

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/wire"
)

// diff has the arguments of one run of the command diff.
type diff struct {
	hub      *hub
	window   window
	out      output
	clusters []string
	all      bool
}

func newDiff(h *hub) *cobra.Command {
	d := &diff{hub: h}
	cmd := &cobra.Command{
		Use:   "diff (KIND NAME | KIND/NAME)",
		Short: "Show what the hub would change on the members",
		Long: `Show what the hub would change of an object on the members to which it goes, as a unified diff.

The hub renders the object as it does for a write, and each member returns the result of a dry run, with its own
defaults and webhooks. The diff omits status, managed fields, marks of the hub and values of Secrets. For a
Secret that the hub would write, all values are *** (before) and *** (after). Nothing is changed. If you have the verb
adopt on the MemberCluster, an object on a member that the hub did not create is compared, too: it is "not Hanse's",
and the diff shows what an adoption would change.

A difference is drift that the hub has not corrected yet, or a change that it has not applied yet. If the cluster's
admission changes fields in each write, a line that begins with # names up to three of them. A warning says why the hub
does not write now, such as Suspended, Paused or AlreadyExists. hansectl plan shows what a change of policies would do.

The exit code is 0 if there is no difference, 1 if there is one, and 2 if a cluster could not be compared or there was
an error.`,
		Example: `  # What is there against what shall be there, on every cluster
  hansectl diff prometheus web -n monitoring

  # On one cluster
  hansectl diff prometheus web -n monitoring --cluster cn-sha-1`,
		Args:              objectArguments,
		ValidArgsFunction: h.completeObjects,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := d.out.check(cmd); err != nil {
				return failed(err)
			}
			if d.all && len(d.clusters) > 0 {
				return failed(usageError(cmd, errors.New("--all and --cluster exclude each other")))
			}
			kind, name := kindAndName(args)
			return failed(d.run(cmd.Context(), kind, name))
		},
	}
	d.out.addTo(cmd)
	d.window.addTo(cmd.Flags())
	cmd.Flags().StringSliceVar(&d.clusters, "cluster", nil, "Compare only on this cluster. Can be repeated.")
	cmd.Flags().BoolVar(&d.all, "all", false, "Compare on every cluster that shall hold the object, as without --cluster.")
	_ = cmd.RegisterFlagCompletionFunc("cluster", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return h.completeClusters(cmd, nil, typed)
	})
	return cmd
}

func (d *diff) run(ctx context.Context, kind, name string) error {
	c, err := d.hub.reader(&d.window)
	if err != nil {
		return err
	}
	id, version, err := d.hub.identify(ctx, c, kind, name)
	if err != nil {
		return err
	}
	binding, err := d.hub.readPlaced(ctx, c, id, version)
	if err != nil {
		return err
	}
	clusters, err := sentTo(id, binding, d.clusters)
	if err != nil {
		return err
	}
	var questions []memberQuestion
	for _, cluster := range clusters {
		questions = append(questions, memberQuestion{cluster, id})
	}
	answers, err := d.hub.askMembers(ctx, &d.window, c, questions, &fleetFiles{})
	if err != nil {
		return err
	}
	result := view.Diff{Object: wire.ObjectOf(id), Clusters: []view.ClusterDiff{}}
	for _, a := range answers {
		result.Clusters = append(result.Clusters, view.DiffOf(a.cluster, id, a.DiffAnswer, a.err))
	}
	return d.show(result)
}

// sentTo returns the clusters that get an object, sorted by name. It leaves out targets in the state Absent, unless the
// argument "also" contains Absent. If the user has named clusters, it returns only those.
func sentTo(id hubv1.ObjectIdentity, binding hubv1.BindingObject, named []string, also ...hubv1.TargetState) ([]string, error) {
	var there []string
	for _, t := range binding.BindingSpec().Clusters {
		if t.State != hubv1.TargetAbsent || slices.Contains(also, t.State) {
			there = append(there, t.Name)
		}
	}
	slices.Sort(there)
	for _, name := range named {
		if !slices.Contains(there, name) {
			return nil, fmt.Errorf("%s does not go to %s: see hansectl explain", id, name)
		}
	}
	if len(named) > 0 {
		return named, nil
	}
	return there, nil
}

// show prints the differences. On standard error, it prints why clusters could not be compared.
func (d *diff) show(result view.Diff) error {
	w := d.hub.streams.Out
	if d.out.format == "" && coloured(w) {
		result.Colours = true
	}
	if err := d.out.print(w, result); err != nil {
		return err
	}
	var faults, differs int
	for _, c := range result.Clusters {
		switch {
		case c.Error != "":
			faults++
			fmt.Fprintf(d.hub.streams.ErrOut, "error: %s: %s\n", c.Cluster, c.Error)
		case c.Unadopted && !c.Differs:
			fmt.Fprintf(d.hub.streams.ErrOut, "warning: %s: not Hanse's, but as the hub would have it\n", c.Cluster)
		case c.Refused != nil && c.Differs:
			fmt.Fprintf(d.hub.streams.ErrOut, "warning: %s: not written now: %s: %s\n", c.Cluster, c.Refused.Reason, c.Refused.Message)
		}
		if c.Differs {
			differs++
		}
	}
	switch {
	case faults > 0:
		return &ExitError{Code: 2, Err: fmt.Errorf("%s could not be compared", counted(faults, "cluster"))}
	case differs > 0:
		return &ExitError{Code: 1}
	}
	return nil
}
