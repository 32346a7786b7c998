package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/hanse-dev/hanse/cmd/hansectl/view"
)

func newClusters(h *hub) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:        "clusters",
		Aliases:    []string{"cluster", "memberclusters", "membercluster", "mcl"},
		SuggestFor: []string{"members", "nodes", "list"},
		Short:      "List the members, whether they are ready and how many objects each shall hold",
		Example: `  hansectl clusters

  # Names of the members that are not ready
  hansectl clusters -o json | jq -r '.clusters[] | select(.ready != "True") | .name'`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(cmd); err != nil {
				return err
			}
			return clusters(cmd.Context(), h, out)
		},
	}
	out.addTo(cmd, "name")
	return cmd
}

func clusters(ctx context.Context, h *hub, out output) error {
	c, _, err := h.connect()
	if err != nil {
		return err
	}
	members, err := listClusters(ctx, c)
	if err != nil {
		return err
	}
	silence, err := h.warnOfSilence(ctx, c)
	if err != nil {
		return err
	}
	objects, err := countObjects(ctx, c)
	if err != nil {
		fmt.Fprintf(h.streams.ErrOut, "warning: the objects of each cluster cannot be counted: %v\n", err)
		objects = nil
	}
	if len(members) == 0 && out.format == "" {
		fmt.Fprintln(h.streams.ErrOut, "No members. Join one: hansectl join NAME --member-kubeconfig FILE")
		return nil
	}
	return out.print(h.streams.Out, view.Clusters(members, objects, silence, time.Now()))
}
