package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/hanse-dev/hanse/view"
)

func newClusters(h *hub) *cobra.Command {
	var out output
	var w window
	cmd := &cobra.Command{
		Use:        "clusters",
		Aliases:    []string{"cluster", "memberclusters", "membercluster", "mcl"},
		SuggestFor: []string{"members", "nodes", "list"},
		Short:      "List the members, whether they are ready and how many objects each shall hold",
		Long: `List the members, whether they are ready and how many objects each shall hold.

  READY    True? if the hub does not observe the cluster now, and it was ready before; Cordoned and Draining mark a
           cluster that gets no new objects
  AS OF    live, or how long ago the hub last observed the cluster
  NODES    ready nodes / all nodes
  OBJECTS  hub objects that the cluster shall hold or still holds, in the namespace of -n if you may list no others;
           ? if you may list no bindings

If you may not list MemberClusters, the command shows the members that accept objects of your namespace (-n), without
fields about other namespaces.`,
		Example: `  hansectl clusters

  # Names of the members that are not ready
  hansectl clusters -o json | jq -r '.clusters[] | select(.ready != "True") | .name'`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(cmd); err != nil {
				return err
			}
			return clusters(cmd.Context(), h, &w, out)
		},
	}
	out.addTo(cmd, "name")
	w.addTo(cmd.Flags())
	return cmd
}

func clusters(ctx context.Context, h *hub, w *window, out output) error {
	c, err := h.reader(w)
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
	if apierrors.IsForbidden(err) {
		objects, err = countObjectsIn(ctx, c, c.Namespace)
	}
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
