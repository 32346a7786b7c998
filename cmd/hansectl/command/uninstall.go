package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

// uninstall has the arguments of one run of the command uninstall.
type uninstall struct {
	hub *hub

	inCluster, yes bool
}

func newUninstall(h *hub) *cobra.Command {
	u := &uninstall{hub: h}
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Stop the hub and remove its finalizers, so that no deletion hangs; members keep their copies",
		Long: `Stop the hub and remove its finalizers.

It scales the Deployment hanse-hub to 0, and waits for its pods and until no replica holds the Lease hanse-hub. Then it
removes the finalizer ` + hubv1.WithdrawFinalizer + ` from all MemberClusters, ResourceBindings and
ClusterResourceBindings. It deletes nothing on members. On the hub, it completes deletions that wait only for the
finalizer. If it cannot stop a hub, such as a process outside the cluster, it returns an error with the holder of the
Lease.

The chart hanse-hub runs the command before helm uninstall. Run it by hand if the hub is not a pod. The Secrets of
hanse-system stay: a hub that is installed again continues with the existing bindings, bundles and members.`,
		Example: `  hansectl uninstall
  helm uninstall hanse -n hanse-system`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error { return u.run(cmd.Context()) },
	}
	cmd.Flags().BoolVar(&u.inCluster, "in-cluster", false, "Use the ServiceAccount of the pod in which hansectl runs.")
	cmd.Flags().BoolVar(&u.yes, "yes", false, "Do not ask for a confirmation.")
	return cmd
}

func (u *uninstall) run(ctx context.Context) error {
	hub, address, err := u.connect()
	if err != nil {
		return err
	}
	if err := u.hub.confirm(u.yes, "This stops the hub at %s; members keep their copies.", address); err != nil {
		return err
	}
	fmt.Fprintf(u.hub.streams.Out, "Hub at %s\n", address)
	release, err := u.stop(ctx, hub)
	if err != nil {
		return err
	}
	if err := u.awaitNoLeader(ctx, hub); err != nil {
		return err
	}
	left, err := u.strip(ctx, hub)
	if err != nil {
		return err
	}
	fmt.Fprintf(u.hub.streams.Out, "The hub is stopped. Objects that stay on the hub, without its finalizer: %s. Members keep all copies unchanged.\n", left)
	if !u.inCluster {
		fmt.Fprintf(u.hub.streams.Out, "Next: helm uninstall %s --namespace %s\n", release, hubv1.SystemNamespace)
	}
	return nil
}

func (u *uninstall) connect() (client.Client, string, error) {
	if !u.inCluster {
		return u.hub.connect()
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, "", fmt.Errorf("finding the ServiceAccount of this pod: %w", err)
	}
	c, err := newClient(u.hub.adjust(config))
	if err != nil {
		return nil, "", fmt.Errorf("connecting to the hub %s: %w", config.Host, err)
	}
	return c, config.Host, nil
}
