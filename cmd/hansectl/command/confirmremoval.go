package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/guard"
)

// confirmation has the arguments of one run of the command confirm.
type confirmation struct {
	hub *hub

	kind, name string
	yes        bool
}

func newConfirm(h *hub) *cobra.Command {
	c := &confirmation{hub: h}
	cmd := &cobra.Command{
		Use:   "confirm (KIND NAME | KIND/NAME)",
		Short: "Confirm a removal of copies that the hub holds",
		Long: `Confirm a removal of copies that the hub holds.

The hub holds removals if too many copies would be deleted at once, or the last copy of an object. The cause can be a
placement, a MemberCluster with spec.leave.policy Delete, or a bundle that no longer contains objects. This command shows
the copies and the reason, asks you, and sets the annotation hanse.dev/confirm-removal. A confirmation is valid once. It
covers at most a tenth more copies than the command has shown, and no other cluster or reason.

KIND is placement, clusterplacement, membercluster, bundle, clusterbundle or federatedoperator.`,
		Example: `  hansectl confirm placement web -n shop

  # Objects that a bundle no longer contains
  hansectl confirm bundle web -n shop

  # Without a question, as in a script
  hansectl confirm membercluster eu-fra-1 --yes`,
		Args: objectArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name := kindAndName(args)
			c.kind, c.name = strings.ToLower(kind), name
			if c.object() == nil {
				return usageError(cmd, fmt.Errorf("KIND %q: want placement, clusterplacement, membercluster, bundle, clusterbundle or federatedoperator", kind))
			}
			return c.run(cmd.Context())
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			return h.completeOwn(cmd, args, typed, "placement", "clusterplacement", "membercluster", "bundle", "clusterbundle", "federatedoperator")
		},
	}
	cmd.Flags().BoolVar(&c.yes, "yes", false, "Do not ask for a confirmation.")
	return cmd
}

// object returns an empty object of the kind that the user has named. It returns nil if the kind is neither
// MemberCluster, nor a kind of placements or bundles.
func (c *confirmation) object() client.Object {
	switch c.kind {
	case "membercluster", "memberclusters", "mcl":
		return &hubv1.MemberCluster{}
	}
	if p := emptyPlacement(c.kind); p != nil {
		return p
	}
	if b := emptyBundle(c.kind, client.ObjectKey{}); b != nil {
		return b
	}
	return nil
}

func (c *confirmation) run(ctx context.Context) error {
	hub, _, err := c.hub.connect()
	if err != nil {
		return err
	}
	object, key := c.object(), client.ObjectKey{Name: c.name}
	named := c.kind + "/" + c.name
	switch object.(type) {
	case *hubv1.Placement, *hubv1.Bundle:
		if key.Namespace, _, err = c.hub.flags.ToRawKubeConfigLoader().Namespace(); err != nil {
			return fmt.Errorf("finding the namespace: %w", err)
		}
	}
	err = hub.Get(ctx, key, object)
	switch {
	case meta.IsNoMatchError(err):
		return errNoHub
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the hub has no %s%s", named, c.hub.elsewhere(key.Namespace))
	case err != nil:
		return fmt.Errorf("reading %s: %w", named, err)
	}
	held, confirmed := guard.Held(object)
	if held == nil {
		printLine(c.hub.streams.Out, named, "holds no removal")
		return nil
	}
	if confirmed {
		printLine(c.hub.streams.Out, named, "removal %s is confirmed already", held.ID)
		return nil
	}
	c.show(held)
	if err := c.hub.confirm(c.yes, "This deletes %s on %s.", counted(int(held.Copies), "copy"), counted(len(held.Clusters), "cluster")); err != nil {
		return err
	}
	before := object.DeepCopyObject().(client.Object)
	annotations := map[string]string{}
	for k, v := range object.GetAnnotations() {
		annotations[k] = v
	}
	guard.Confirm(held)(annotations)
	object.SetAnnotations(annotations)
	if err := hub.Patch(ctx, object, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("confirming removal %s of %s: %w", held.ID, named, err)
	}
	printLine(c.hub.streams.Out, named, "removal %s confirmed: the hub deletes %s within seconds", held.ID, counted(int(held.Copies), "copy"))
	return nil
}

// show prints which copies will be deleted, and why.
func (c *confirmation) show(held *hubv1.RemovalHeld) {
	const named = 20
	clusters := held.Clusters
	more := ""
	if len(clusters) > named {
		clusters, more = clusters[:named], fmt.Sprintf(" and %d more", len(held.Clusters)-named)
	}
	out := c.hub.streams.Out
	fmt.Fprintf(out, "Removal:   %s, held since %s\n", held.ID, held.Since.UTC().Format(time.RFC3339))
	fmt.Fprintf(out, "Copies:    %d\n", held.Copies)
	fmt.Fprintf(out, "Clusters:  %s%s\n", strings.Join(clusters, ", "), more)
	for i, cause := range held.Causes {
		label := "Causes:    "
		if i > 0 {
			label = "           "
		}
		fmt.Fprintf(out, "%s%s\n", label, cause)
	}
}
