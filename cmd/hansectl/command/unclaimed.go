package command

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hanse-dev/hanse/hub/views"
	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/wire"
)

func newUnclaimed(h *hub) *cobra.Command {
	var out output
	var window window
	cmd := &cobra.Command{
		Use:   "unclaimed [CLUSTER...]",
		Short: "List the copies on members that no binding claims",
		Long: `List the copies on members that this hub wrote and that no binding claims. Such copies remain, for example, if the hub
was restored from a backup that lacks their objects. All members are asked unless you name some. Nothing is changed.

REMOVAL is what hansectl prune would do: Delete, or Orphan for CustomResourceDefinitions, Namespaces and copies that
were on the member before Hanse took them over. The list contains only kinds that the member grants to the hub in
all namespaces and that you may list on the hub, and at most 5,000 copies of a member. A warning names the kinds that
could not be listed, and counts the copies that you may not see.

The exit code is 1 if a cluster could not be asked.`,
		Example: `  hansectl unclaimed

  hansectl unclaimed eu-fra-1 -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.check(cmd); err != nil {
				return err
			}
			c, _, err := h.connect()
			if err != nil {
				return err
			}
			viewer, err := window.open(cmd.Context(), h, c)
			if err != nil {
				return err
			}
			found, faults, err := h.unclaimed(cmd.Context(), c, viewer, args)
			if err != nil {
				return err
			}
			if err := out.print(h.streams.Out, found); err != nil {
				return err
			}
			return h.noteUnclaimed(found, faults)
		},
		ValidArgsFunction: h.completeMoreClusters,
	}
	out.addTo(cmd)
	window.addTo(cmd.Flags())
	return cmd
}

// completeMoreClusters completes the names of MemberClusters for each argument.
func (h *hub) completeMoreClusters(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	names, directive := h.completeClusters(cmd, nil, typed)
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) }), directive
}

// unclaimed lists the copies for which the hub has no binding. It asks the given clusters, or all clusters if there are
// none. faults are the errors of clusters that did not answer.
func (h *hub) unclaimed(ctx context.Context, c client.Client, viewer *views.Client, clusters []string) (found view.Unclaimed, faults []view.ClusterNote, err error) {
	if err := existing(ctx, c, clusters, nil); err != nil {
		return found, nil, err
	}
	if len(clusters) == 0 {
		if clusters, err = memberNames(ctx, c); err != nil {
			return found, nil, err
		}
	}
	slices.Sort(clusters)
	clusters = slices.Compact(clusters)
	answers, errs := make([]wire.UnclaimedAnswer, len(clusters)), make([]error, len(clusters))
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(askedAtOnce)
	for i, cluster := range clusters {
		asking.Go(func() error {
			errs[i] = viewer.Ask(ctx, cluster, wire.Unclaimed, "", wire.UnclaimedRequest{}, &answers[i])
			return nil
		})
	}
	_ = asking.Wait() // never fails: errors are stored for each cluster
	found.Copies = []view.UnclaimedCopy{}
	for i, cluster := range clusters {
		if errs[i] != nil {
			faults = append(faults, view.ClusterNote{Cluster: cluster, Note: errs[i].Error()})
		}
		for _, copied := range answers[i].Copies {
			found.Copies = append(found.Copies, view.UnclaimedCopy{Cluster: cluster, UnclaimedCopy: copied})
		}
		for _, note := range answers[i].Notes {
			found.Notes = append(found.Notes, view.ClusterNote{Cluster: cluster, Note: note})
		}
	}
	return found, faults, nil
}

func memberNames(ctx context.Context, c client.Client) ([]string, error) {
	members, err := listClusters(ctx, c)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, m := range members {
		names = append(names, m.Name)
	}
	return names, nil
}

// noteUnclaimed prints on standard error which kinds the list lacks. It returns an error if a cluster did not answer.
func (h *hub) noteUnclaimed(found view.Unclaimed, faults []view.ClusterNote) error {
	return h.noteMembers(found.Notes, faults)
}
