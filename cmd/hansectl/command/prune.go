package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/views"
	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/wire"
)

func newPrune(h *hub) *cobra.Command {
	var yes bool
	var window window
	cmd := &cobra.Command{
		Use:   "prune [CLUSTER...]",
		Short: "Remove the copies on members that no binding claims",
		Long: `Remove the copies on members that this hub wrote and that no binding claims. The command first lists the copies, as
hansectl unclaimed does, and asks you.

  Removed   the copy is gone
  Deleting  the member accepted the delete, and the object waits for its finalizers
  Orphaned  the object stays, without marks of the hub: a CustomResourceDefinition, a Namespace, or a copy that was on
            the member before Hanse took it over
  Claimed   a binding claims the copy by now; it stays
  NotOurs   the hub did not apply the object, or it is a copy of another hub; it stays
  Held      the copy is newer than the hub: run hansectl accept-restore first
  Failed    WHY has the cause, for example that the object changed after it was listed

Copies that others may need, such as ConfigMaps and RBAC, are removed last. Without a terminal and without --yes, the
command only prints the list.

You need the verb prune on the MemberClusters. The exit code is 1 if a copy is Held or Failed.`,
		Example: `  hansectl prune eu-fra-1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return h.prune(cmd.Context(), &window, args, yes)
		},
		ValidArgsFunction: h.completeMoreClusters,
	}
	window.addTo(cmd.Flags())
	cmd.Flags().BoolVar(&yes, "yes", false, "Do not ask for a confirmation.")
	return cmd
}

func (h *hub) prune(ctx context.Context, w *window, clusters []string, yes bool) error {
	c, _, err := h.connect()
	if err != nil {
		return err
	}
	viewer, err := w.open(ctx, h, c)
	if err != nil {
		return err
	}
	found, faults, err := h.unclaimed(ctx, c, viewer, clusters)
	if err != nil {
		return err
	}
	found.Write(h.streams.Out, time.Now())
	notAsked := h.noteUnclaimed(found, faults)
	if len(found.Copies) == 0 {
		return notAsked
	}
	if err := h.confirm(yes, "%s", aboutToPrune(found.Copies)); err != nil {
		return err
	}
	pruned := pruneCopies(ctx, viewer, found.Copies)
	pruned.Write(h.streams.Out, time.Now())
	if left, held := pruned.Left(); left > 0 {
		text := counted(left, "copy") + " left"
		if held > 0 {
			text += fmt.Sprintf(", of which %d newer than the hub: see hansectl accept-restore", held)
		}
		return errors.Join(errors.New(text), notAsked)
	}
	return notAsked
}

// aboutToPrune describes the deletion that the user is asked to confirm.
func aboutToPrune(copies []view.UnclaimedCopy) string {
	var deleted, orphaned, held int
	for _, c := range copies {
		switch {
		case c.Newer:
			held++
		case c.Removal == hubv1.RemovalOrphan:
			orphaned++
		default:
			deleted++
		}
	}
	parts := []string{"This deletes " + counted(deleted, "copy") + " on the members"}
	if orphaned > 0 {
		parts = append(parts, fmt.Sprintf("takes the hub's marks off %d", orphaned))
	}
	if held > 0 {
		parts = append(parts, fmt.Sprintf("leaves %d that are newer than the hub", held))
	}
	return strings.Join(parts, ", ") + "."
}

// pruneCopies deletes the copies on several clusters at the same time. The results have the order of the copies.
func pruneCopies(ctx context.Context, viewer *views.Client, copies []view.UnclaimedCopy) view.Pruned {
	var byCluster [][]view.UnclaimedCopy
	for i, c := range copies {
		if i == 0 || c.Cluster != copies[i-1].Cluster {
			byCluster = append(byCluster, nil)
		}
		last := len(byCluster) - 1
		byCluster[last] = append(byCluster[last], c)
	}
	outcomes := make([][]view.PrunedCopy, len(byCluster))
	var asking errgroup.Group
	asking.SetLimit(askedAtOnce)
	for i, here := range byCluster {
		asking.Go(func() error {
			for some := range slices.Chunk(here, askedTogether) {
				outcomes[i] = append(outcomes[i], pruneSome(ctx, viewer, some)...)
			}
			return nil
		})
	}
	_ = asking.Wait() // never fails: errors are stored for each copy
	return view.Pruned{Copies: slices.Concat(outcomes...)}
}

// pruneSome deletes several copies on one cluster with one request.
func pruneSome(ctx context.Context, viewer *views.Client, copies []view.UnclaimedCopy) []view.PrunedCopy {
	cluster, request := copies[0].Cluster, wire.PruneRequest{}
	for _, c := range copies {
		request.Copies = append(request.Copies, c.ShownCopy)
	}
	var answer wire.PruneAnswer
	err := viewer.Ask(ctx, cluster, wire.Prune, "", request, &answer)
	if err == nil && len(answer.Copies) != len(copies) {
		err = fmt.Errorf("the hub answered for %d of %d copies", len(answer.Copies), len(copies))
	}
	out := make([]view.PrunedCopy, len(copies))
	for i, c := range copies {
		out[i] = view.PrunedCopy{Cluster: cluster}
		if err != nil {
			out[i].PrunedCopy = wire.PrunedCopy{Object: c.Object, Outcome: wire.PruneFailed, Message: err.Error()}
		} else {
			out[i].PrunedCopy = answer.Copies[i]
		}
	}
	return out
}
