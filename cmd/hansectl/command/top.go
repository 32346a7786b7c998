package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/cmd/hansectl/view"
)

func newTop(h *hub) *cobra.Command {
	var out output
	limit := 10
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show what takes longest: clusters that are behind, copies that differ, fields that are fought for",
		Long: `Show what takes longest, from what the hub knows; no member is asked:

  Slowest clusters       those that do not hold what is desired, the one first whose oldest copy has been waiting for longest
  Oldest drift           copies that are not as the hub wants them and are left so: paused on the member, only reported, or fought for
  Most contested fields  what somebody keeps changing, with the field manager that does, and on how many copies

All namespaces are looked at unless you name one.`,
		Example: `  hansectl top

  # In one namespace, and more of it
  hansectl top -n monitoring --limit 50

  # Clusters that are behind, for a script
  hansectl top -o json | jq -r '.slowestClusters[].cluster'`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(cmd); err != nil {
				return err
			}
			if limit < 1 {
				return usageError(cmd, fmt.Errorf("--limit %d: want at least 1", limit))
			}
			return h.top(cmd.Context(), out, limit)
		},
	}
	out.addTo(cmd)
	cmd.Flags().IntVar(&limit, "limit", limit, "How many lines each part has at most.")
	return cmd
}

func (h *hub) top(ctx context.Context, out output, limit int) error {
	c, _, err := h.connect()
	if err != nil {
		return err
	}
	var members hubv1.MemberClusterList
	err = h.unlessForbidden(c.List(ctx, &members), "regions and states of clusters are missing")
	switch {
	case meta.IsNoMatchError(err):
		return errNoHub
	case err != nil:
		return fmt.Errorf("listing MemberClusters: %w", err)
	}
	if _, err := h.warnOfSilence(ctx, c); err != nil {
		return err
	}
	top := view.NewTop(members.Items)
	visit := func(b hubv1.BindingObject) { top.Add(b) }
	if namespace := *h.flags.Namespace; namespace != "" {
		err = eachBindingIn(ctx, c, namespace, visit)
	} else {
		err = eachBinding(ctx, c, visit)
	}
	if err != nil {
		return err
	}
	return out.print(h.streams.Out, top.Longest(limit))
}
