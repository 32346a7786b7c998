package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/scopes"
	"github.com/hanse-dev/hanse/view/preview"
)

func newCordon(h *hub) *cobra.Command {
	var clusters clusterChoice
	cmd := &cobra.Command{
		Use:   "cordon CLUSTER | --region REGION",
		Short: "Send no new objects to a cluster; its copies stay",
		Long: `Send no new objects to a cluster: set spec.unschedulable of its MemberCluster.

Objects on the cluster stay and are kept up to date. Their number of replicas stays or decreases. To move the objects
to other clusters, drain the cluster. A wave of a rollout waits for the cluster: the command says which one.`,
		Example: `  hansectl cordon eu-fra-1

  hansectl cordon --region eu-central-1`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var c client.Client
			var cordoned []*hubv1.MemberCluster
			err := clusters.each(cmd.Context(), h, func(hub client.Client, cluster *hubv1.MemberCluster) error {
				c, cordoned = hub, append(cordoned, cluster)
				return cordon(cmd.Context(), h, hub, cluster)
			})
			if err != nil {
				return err
			}
			placements, err := scopes.Placements(cmd.Context(), c)
			if err := h.unlessForbidden(err, "waves that wait for the cluster are not shown"); err != nil {
				return err
			}
			return h.printWaves(cmd.Context(), c, placements, cordoned)
		},
	}
	clusters.addTo(cmd, h)
	return cmd
}

func cordon(ctx context.Context, h *hub, hub client.Client, cluster *hubv1.MemberCluster) error {
	name := cluster.Name
	if cluster.Spec.Unschedulable {
		printLine(h.streams.Out, "membercluster/"+name, "is cordoned already")
		return nil
	}
	before := cluster.DeepCopy()
	cluster.Spec.Unschedulable = true
	if err := changeCluster(ctx, hub, before, cluster); err != nil {
		return err
	}
	there := "objects on it stay"
	if counts, err := countObjects(ctx, hub); err == nil {
		there = counted(counts[name], "object") + " on it stay"
		if counts[name] == 1 {
			there += "s"
		}
	}
	printLine(h.streams.Out, "membercluster/"+name, "cordoned: the cluster gets no new objects; %s", there)
	return nil
}

func newUncordon(h *hub) *cobra.Command {
	var clusters clusterChoice
	cmd := &cobra.Command{
		Use:   "uncordon CLUSTER | --region REGION",
		Short: "Send new objects to a cluster again; end its drain",
		Long: `Send new objects to a cluster again, and end its drain: unset spec.unschedulable and spec.drain of its MemberCluster.

Objects that moved to another cluster stay there, unless their placement requests rebalance. Objects that drain
--evict removed although no other cluster could take them come back to this cluster.`,
		Example: `  hansectl uncordon eu-fra-1

  hansectl uncordon --region eu-central-1`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return clusters.each(cmd.Context(), h, func(hub client.Client, cluster *hubv1.MemberCluster) error {
				return uncordon(cmd.Context(), h, hub, cluster)
			})
		},
	}
	clusters.addTo(cmd, h)
	return cmd
}

func uncordon(ctx context.Context, h *hub, hub client.Client, cluster *hubv1.MemberCluster) error {
	name := cluster.Name
	if !cluster.Spec.Unschedulable && cluster.Spec.Drain == nil {
		printLine(h.streams.Out, "membercluster/"+name, "is not cordoned")
		return nil
	}
	before, ended, back := cluster.DeepCopy(), "", ""
	if d := cluster.Spec.Drain; d != nil {
		ended = "its drain is ended; "
		if d.Evict {
			back = "; objects that the drain evicted come back"
		}
	}
	cluster.Spec.Unschedulable, cluster.Spec.Drain = false, nil
	if err := changeCluster(ctx, hub, before, cluster); err != nil {
		return err
	}
	printLine(h.streams.Out, "membercluster/"+name, "uncordoned: %sthe cluster may get new objects; objects that moved to other clusters do not come back by themselves%s", ended, back)
	return nil
}

// connectTo connects to the hub and reads a MemberCluster. A missing MemberCluster is an error.
func connectTo(ctx context.Context, h *hub, name string) (client.Client, *hubv1.MemberCluster, error) {
	hub, _, err := h.connect()
	if err != nil {
		return nil, nil, err
	}
	cluster, err := readCluster(ctx, hub, name)
	return hub, cluster, err
}

// readCluster reads a MemberCluster. A missing MemberCluster is an error.
func readCluster(ctx context.Context, hub client.Client, name string) (*hubv1.MemberCluster, error) {
	cluster := &hubv1.MemberCluster{}
	err := hub.Get(ctx, client.ObjectKey{Name: name}, cluster)
	switch {
	case meta.IsNoMatchError(err):
		return nil, errNoHub
	case apierrors.IsNotFound(err):
		return nil, noCluster(ctx, hub, name)
	case err != nil:
		return nil, fmt.Errorf("reading MemberCluster %s: %w", name, err)
	}
	return cluster, nil
}

// noCluster returns the error for an unknown MemberCluster. It lists the existing names, if the user may list them.
func noCluster(ctx context.Context, hub client.Client, name string) error {
	members, err := listClusters(ctx, hub)
	if err != nil {
		return fmt.Errorf("the hub has no membercluster/%s: hansectl clusters lists them", name)
	}
	var names []string
	for i := range members {
		names = append(names, members[i].Name)
	}
	return fmt.Errorf("the hub has no membercluster/%s: %s", name, preview.ThereAre(names))
}

// changeCluster patches only the fields of a MemberCluster that differ between before and after.
func changeCluster(ctx context.Context, hub client.Client, before, after *hubv1.MemberCluster) error {
	if err := hub.Patch(ctx, after, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("changing MemberCluster %s: %w", after.Name, err)
	}
	return nil
}
