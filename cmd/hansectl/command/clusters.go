package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/cmd/hansectl/view"
)

func newGetClusters(h *hub) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:     "clusters",
		Aliases: []string{"cluster", "memberclusters", "membercluster", "mcl"},
		Short:   "List the members, whether they are ready and how many objects each shall hold",
		Example: `  hansectl get clusters

  # Names of the members that are not ready
  hansectl get clusters -o json | jq -r '.clusters[] | select(.ready != "True") | .name'`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(cmd); err != nil {
				return err
			}
			return getClusters(cmd.Context(), h, out)
		},
	}
	out.addTo(cmd)
	return cmd
}

func getClusters(ctx context.Context, h *hub, out output) error {
	c, _, err := h.connect()
	if err != nil {
		return err
	}
	var members hubv1.MemberClusterList
	if err := c.List(ctx, &members); meta.IsNoMatchError(err) {
		return errNoHub
	} else if err != nil {
		return fmt.Errorf("listing MemberClusters: %w", err)
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
	if len(members.Items) == 0 && out.format == "" {
		fmt.Fprintln(h.streams.ErrOut, "No members. Join one: hansectl join NAME --member-kubeconfig FILE")
		return nil
	}
	return out.print(h.streams.Out, view.Clusters(members.Items, objects, silence, time.Now()))
}
