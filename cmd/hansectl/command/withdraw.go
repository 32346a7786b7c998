package command

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func newWithdraw(h *hub) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "withdraw (KIND NAME | KIND/NAME)",
		Short: "Remove the copies of an object that no placement selects any more",
		Long: `Remove the copies of an object that no placement selects any more; the object on the hub stays.

When its placement is deleted or no longer selects it, an object keeps its copies, and its binding has the reason
` + hubv1.ReasonPlacementGone + `. This command sets the annotation ` + hubv1.WithdrawAnnotation + ` on the object to the UID of its binding. The hub
then withdraws the copies by deletion.whenDeleted of the last placement of the object, with the checks that every
removal passes.

The command refuses an object that a placement selects, and an object of a bundle: remove that one from the bundle.`,
		Example: `  hansectl withdraw prometheus web -n monitoring`,
		Args:    objectArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name := kindAndName(args)
			return h.withdraw(cmd.Context(), kind, name, yes)
		},
		ValidArgsFunction: h.completeObjects,
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "Do not ask for a confirmation.")
	return cmd
}

func (h *hub) withdraw(ctx context.Context, kind, name string, yes bool) error {
	c, _, err := h.connect()
	if err != nil {
		return err
	}
	id, version, err := h.identify(ctx, c, kind, name)
	if err != nil {
		return err
	}
	binding, err := readBinding(ctx, c, id)
	if err != nil {
		return err
	}
	if inBundle(binding) != "" {
		return notOnHub(id, binding, "remove the object from %s, or delete the bundle")
	}
	object, err := readObject(ctx, c, id, version)
	switch {
	case err != nil:
		return err
	case object == nil:
		return h.noObject(ctx, c, id)
	case binding == nil:
		return fmt.Errorf("%s has no copies: it has no binding", id)
	}
	scheduled := meta.FindStatusCondition(binding.BindingStatus().Conditions, hubv1.ConditionScheduled)
	if scheduled == nil || scheduled.Reason != hubv1.ReasonPlacementGone {
		return fmt.Errorf("a placement selects %s: take the object or its clusters out of the placement, or delete the object", id)
	}
	clusters := counted(len(binding.BindingSpec().Clusters), "cluster")
	if err := h.confirm(yes, "This removes the copies of %s from %s.", id, clusters); err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{hubv1.WithdrawAnnotation: binding.GetUID()}}})
	if err != nil {
		return fmt.Errorf("asking for the withdrawal of %s: %w", id, err)
	}
	if err := c.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("asking for the withdrawal of %s: %w", id, err)
	}
	fmt.Fprintf(h.streams.Out, "%s is being withdrawn from %s: hansectl status shows the progress\n", id, clusters)
	return nil
}
