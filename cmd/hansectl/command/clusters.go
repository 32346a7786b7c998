package command

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/preview"
)

func newClusters(h *hub) *cobra.Command {
	var out output
	var w window
	cmd := &cobra.Command{
		Use:        "clusters [NAME...]",
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

For one cluster that you name, further lines have its zones, served kinds, credentials and cluster ID.

If you may not list MemberClusters, the command shows the members that accept objects of your namespace (-n), without
fields about other namespaces.`,
		Example: `  hansectl clusters

  # One of them, with more about it
  hansectl clusters eu-fra-1

  # Names of the members that are not ready
  hansectl clusters -o json | jq -r '.clusters[] | select(.ready != "True") | .name'`,
		RunE: func(cmd *cobra.Command, names []string) error {
			if err := out.check(cmd); err != nil {
				return err
			}
			return clusters(cmd.Context(), h, &w, out, names)
		},
		ValidArgsFunction: h.completeMoreClusters,
	}
	out.addTo(cmd, "name")
	w.addTo(cmd.Flags())
	return cmd
}

// clusters prints the named members, or all if there are no names.
func clusters(ctx context.Context, h *hub, w *window, out output, names []string) error {
	c, err := h.reader(w)
	if err != nil {
		return err
	}
	members, err := listClusters(ctx, c)
	if err != nil {
		return err
	}
	if members, err = namedMembers(members, names); err != nil {
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
	found := view.Clusters(members, objects, silence, time.Now())
	if len(names) == 1 {
		found.Facts = view.ClusterFacts(&members[0], time.Now())
	}
	return out.print(h.streams.Out, found)
}

// namedMembers returns the members with these names, or all if there are no names.
func namedMembers(members []hubv1.MemberCluster, names []string) ([]hubv1.MemberCluster, error) {
	if len(names) == 0 {
		return members, nil
	}
	var all []string
	for i := range members {
		all = append(all, members[i].Name)
	}
	for _, name := range names {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("the hub has no MemberCluster %q that you may see: %s", name, preview.ThereAreLike(name, all))
		}
	}
	return slices.DeleteFunc(members, func(m hubv1.MemberCluster) bool { return !slices.Contains(names, m.Name) }), nil
}
