package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
)

func newOperatorsRegenerate(h *hub) *cobra.Command {
	yes := false
	cmd := &cobra.Command{
		Use:   "regenerate NAME",
		Short: "Replace the passwords and certificates that the chart of an operator generated",
		Long: `Replace all values that the templates of an operator's chart generated, such as passwords and certificates.

The hub keeps these values, so that an upgrade does not change them. This command asks you, and sets the annotation
hanse.dev/regenerate-values, which is valid once. The hub then renders the chart with new values, and sends them to the
members as it sends each change of the operator: by the rollout of the placement. A CA and its certificates change
together, but pods that read them at their start must restart.`,
		Example: `  hansectl operators regenerate rotors

  # Without a question, as in a script
  hansectl operators regenerate rotors --yes`,
		Args: arguments("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error { return h.regenerate(cmd.Context(), args[0], yes) },
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return h.completeOperators(cmd, typed)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "Do not ask for a confirmation.")
	return cmd
}

func (h *hub) regenerate(ctx context.Context, name string, yes bool) error {
	c, _, err := h.connect()
	if err != nil {
		return err
	}
	b, err := h.findBundle(ctx, c, hubv1.FederatedOperatorKind, name)
	if err != nil {
		return err
	}
	o, named := b.(*hubv1.FederatedOperator), "federatedoperator/"+name
	kept := o.Status.GeneratedValues
	if kept == nil {
		printLine(h.streams.Out, named, "has no kept values")
		return nil
	}
	if o.Annotations[hubv1.RegenerateValuesAnnotation] == kept.ID {
		printLine(h.streams.Out, named, "new values are requested already")
		return nil
	}
	values := counted(int(kept.Values), "value")
	if err := h.confirm(yes, "This replaces %s, on each cluster with the operator.", values); err != nil {
		return err
	}
	before := o.DeepCopy()
	if o.Annotations == nil {
		o.Annotations = map[string]string{}
	}
	o.Annotations[hubv1.RegenerateValuesAnnotation] = kept.ID
	if err := c.Patch(ctx, o, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("requesting new values for %s: %w", named, err)
	}
	printLine(h.streams.Out, named, "requested new values: the hub replaces %s within seconds", values)
	return nil
}
