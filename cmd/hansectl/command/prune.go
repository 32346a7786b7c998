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
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/views"
	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/wire"
)

// prune has the arguments of one run of the command prune.
type prune struct {
	hub         *hub
	out         output
	window      window
	dryRun, yes bool
}

func newPrune(h *hub) *cobra.Command {
	p := &prune{hub: h}
	cmd := &cobra.Command{
		Use:   "prune [CLUSTER...]",
		Short: "Remove the copies on members that no binding claims, or list them with --dry-run",
		Long: `Remove the copies on members that this hub wrote and that no binding claims. Such copies remain, for example, if the
hub was restored from a backup that lacks their objects. All members are asked unless you name some. The command first
lists the copies, and asks you. With --dry-run, or without a terminal and without --yes, it only lists them.

REMOVAL is what the command does: Delete, or Orphan for CustomResourceDefinitions, Namespaces and copies that were on
the member before Hanse took them over. The list contains only kinds that the member grants to the hub in all
namespaces and that you may list on the hub, and at most 5,000 copies of a member. A warning names the kinds that could
not be listed, and counts the copies that you may not see.

OUTCOME is what was done:

  Removed   the copy is gone
  Deleting  the member accepted the delete, and the object waits for its finalizers
  Orphaned  the object stays, without marks of the hub
  Claimed   a binding claims the copy by now; it stays
  NotOurs   the hub did not apply the object, or it is a copy of another hub; it stays
  Held      the copy is newer than the hub: run hansectl accept-restore first
  Failed    WHY has the cause, for example that the object changed after it was listed

Copies that others may need, such as ConfigMaps and RBAC, are removed last.

Except with --dry-run, you need the verb prune on the MemberClusters. The exit code is 1 if a copy is Held or Failed,
or if a cluster could not be asked.`,
		Example: `  # List the copies on all members
  hansectl prune --dry-run

  # Remove the copies on one member
  hansectl prune eu-fra-1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := p.out.check(cmd); err != nil {
				return err
			}
			if p.out.format != "" && !p.dryRun {
				return usageError(cmd, errors.New("--output needs --dry-run"))
			}
			return p.run(cmd.Context(), args)
		},
		ValidArgsFunction: h.completeMoreClusters,
	}
	p.out.addTo(cmd)
	p.window.addTo(cmd.Flags())
	cmd.Flags().BoolVar(&p.dryRun, "dry-run", false, "Only list the copies.")
	cmd.Flags().BoolVar(&p.yes, "yes", false, "Do not ask for a confirmation.")
	return cmd
}

func (p *prune) run(ctx context.Context, clusters []string) error {
	c, _, err := p.hub.connect()
	if err != nil {
		return err
	}
	viewer, err := p.window.open(ctx, p.hub, c)
	if err != nil {
		return err
	}
	if clusters, err = existingOrAll(ctx, c, clusters); err != nil {
		return err
	}
	found, faults := unclaimedCopies(ctx, viewer, clusters)
	if err := p.out.print(p.hub.streams.Out, found); err != nil {
		return err
	}
	notAsked := p.hub.noteMembers(found.Notes, faults)
	if p.dryRun || len(found.Copies) == 0 {
		return notAsked
	}
	if err := p.hub.confirm(p.yes, "%s", aboutToPrune(found.Copies)); err != nil {
		return err
	}
	pruned := pruneCopies(ctx, viewer, found.Copies)
	pruned.Write(p.hub.streams.Out, time.Now())
	if left, held := pruned.Left(); left > 0 {
		text := counted(left, "copy") + " left"
		if held > 0 {
			text += fmt.Sprintf(", of which %d newer than the hub: see hansectl accept-restore", held)
		}
		return errors.Join(errors.New(text), notAsked)
	}
	return notAsked
}

// existingOrAll returns the given clusters, sorted, or all clusters if there are none. It returns an error if the hub
// lacks one of them.
func existingOrAll(ctx context.Context, c client.Client, clusters []string) ([]string, error) {
	if err := existing(ctx, c, clusters, nil); err != nil {
		return nil, err
	}
	if len(clusters) == 0 {
		members, err := listClusters(ctx, c)
		if err != nil {
			return nil, err
		}
		for _, m := range members {
			clusters = append(clusters, m.Name)
		}
	}
	slices.Sort(clusters)
	return slices.Compact(clusters), nil
}

// unclaimedCopies lists the copies on the clusters for which the hub has no binding. faults are the errors of clusters
// that did not answer.
func unclaimedCopies(ctx context.Context, viewer *views.Client, clusters []string) (found view.Unclaimed, faults []view.ClusterNote) {
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
	return found, faults
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
