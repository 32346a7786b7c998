package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/store/inputs"
	"github.com/hanse-dev/hanse/view"
)

func newOperators(h *hub) *cobra.Command {
	var out output
	var w window
	cmd := &cobra.Command{
		Use:   "operators [NAME]",
		Short: "List the operators that the hub installs on members, and the clusters where they are ready",
		Long: `List the FederatedOperators of the hub. They are read from the hub; no request is sent to a member.

  CHART     chart and its version that the hub has stored, or manifests; in brackets a newer version, if the hub asks the repository for it
  VERSION   version of the operator, as the chart says it
  CLUSTERS  clusters on which the operator is ready / clusters that its placement selects
  STORED    whether the hub has stored the objects of the newest generation
  KINDS     number of kinds that the operator defines; -o wide has the first names, and -o json all

With -o wide, a second table has a row per cluster and a column per operator, with the version of its copies there.

A version or True with ? is the last known value: the hub receives no changes from the cluster.

Notes name the clusters that are behind: they have an older copy of an object than other clusters, or not the newest
revision of a rollout. Other notes name the custom kinds with objects on clusters that no FederatedOperator defines, and
the kinds of operators with objects on clusters that the operator's placement does not select.

With NAME, the conditions that are not True are shown, what the newest revision of a rollout adds, changes and removes,
and one row per cluster:

  REVISION   revision of the operator that the cluster shall hold, if a rollout places the operator
  PHASE      Passing, Changing or Degraded at its revision; Waiting for its wave; Unknown if the cluster does not answer
  MISSING    objects of the revision that the cluster has not applied yet, and objects that are about to leave
  VERSION    version of the operator's workloads there: their label app.kubernetes.io/version, or the tag of their first image
  OBJECTS    objects of the operator with the desired content / that the cluster shall hold
  RESOURCES  objects of the operator's kinds that the cluster holds or shall hold
  WAITS FOR  the first object that the operator waits for. Until the operator is ready, no object of its kinds is created on the cluster.

The commands crds and rbac read the Helm chart of an operator. They render it on this machine: they send no request to a
hub or a member, and download nothing.`,
		Example: `  hansectl operators

  # One operator, with a row per cluster
  hansectl operators rotors

  # Which cluster has which version
  hansectl operators -o wide

  # Operators with a newer version of their chart, if the hub asks for it
  hansectl operators -o json | jq -r '.operators[] | select(.available) | "\(.name) \(.available)"'

  # Clusters on which an operator is not ready, for a script
  hansectl operators rotors -o json | jq -r '.onClusters[] | select(.ready | not).cluster'`,
		SuggestFor: []string{"federatedoperators", "fop"},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return arguments("NAME")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.check(cmd); err != nil {
				return err
			}
			if len(args) > 0 {
				return h.operator(cmd.Context(), &w, out, args[0])
			}
			return h.allOperators(cmd.Context(), &w, out)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return h.completeOperators(cmd, typed)
		},
	}
	out.addTo(cmd, "wide")
	w.addTo(cmd.Flags())
	cmd.AddCommand(newOperatorsCRDs(h), newOperatorsRBAC(h), newOperatorsRegenerate(h))
	return cmd
}

// completeOperators completes the names of FederatedOperators.
func (h *hub) completeOperators(cmd *cobra.Command, typed string) ([]string, cobra.ShellCompDirective) {
	names, err := h.objectNames(cmd, "federatedoperators."+hubv1.GroupVersion.Group, typed)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (h *hub) allOperators(ctx context.Context, w *window, out output) error {
	c, err := h.reader(w)
	if err != nil {
		return err
	}
	var operators hubv1.FederatedOperatorList
	switch err := c.List(ctx, &operators); {
	case meta.IsNoMatchError(err):
		return errNoHub
	case err != nil:
		return fmt.Errorf("listing FederatedOperators: %w", err)
	}
	silence, err := h.warnOfSilence(ctx, c)
	if err != nil {
		return err
	}
	observed, err := h.observed(ctx, c, silence)
	if err != nil {
		return err
	}
	found := view.NewOperatorGatherer(operators.Items, observed)
	if err := h.unlessForbidden(eachBinding(ctx, c, found.AddBinding), "kinds in use without a FederatedOperator are not known"); err != nil {
		return err
	}
	return out.print(h.streams.Out, found.Operators())
}

func (h *hub) operator(ctx context.Context, w *window, out output, name string) error {
	c, err := h.reader(w)
	if err != nil {
		return err
	}
	b, err := h.findBundle(ctx, c, hubv1.FederatedOperatorKind, name)
	if err != nil {
		return err
	}
	silence, err := h.warnOfSilence(ctx, c)
	if err != nil {
		return err
	}
	observed, err := h.observed(ctx, c, silence)
	if err != nil {
		return err
	}
	found := view.NewOperatorObjects(b.(*hubv1.FederatedOperator), observed)
	if err := h.unlessForbidden(eachBinding(ctx, c, found.AddBinding), "clusters are missing"); err != nil {
		return err
	}
	record, err := inputs.SetRollout(ctx, c, hubv1.ReferenceTo(b))
	if err := h.unlessForbidden(err, "the revisions of clusters are not shown"); err != nil {
		return err
	}
	if record != nil {
		lists, err := inputs.SetLists(ctx, c, &record.Spec)
		if err := h.unlessForbidden(err, "what the newest revision adds, changes and removes is not shown"); err != nil {
			return err
		}
		found.AddSet(&record.Spec, lists)
	}
	// Objects that the newest manifests or the next revision add may have no binding yet.
	if view.Unstored(b) == "" && record == nil {
		for _, id := range h.unplacedOf(ctx, c, b, found.Bindings()) {
			found.AddUnplaced(id)
		}
	}
	return out.print(h.streams.Out, found.OnClusters())
}
