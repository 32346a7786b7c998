package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
)

func newProblems(h *hub) *cobra.Command {
	var out output
	var w window
	limit := 10
	cmd := &cobra.Command{
		Use:   "problems",
		Short: "Show clusters, policies and objects with a problem, and the slowest clusters",
		Long: `Show the problems that need a user. They are read from the hub; no request is sent to a member:

  Rollouts               waves that wait for an approval or for clusters, revisions that failed, and objects whose
                         clusters have an older revision than the hub object
  Clusters               MemberClusters that are not Ready, or whose credentials, topology, unclaimed copies or held
                         removals need a user
  Policies               placements and override policies that are not accepted, placements with a kind that the hub
                         cannot read, bundles and operators that are not stored, and removals that wait for
                         hansectl confirm
  Kinds                  kinds whose copies never become Healthy, because their status is not understood; they hold
                         waves and drains
  Objects                objects with a condition Scheduled, Applied or Healthy that is False (the first is shown),
                         objects that the hub cannot read, and objects whose deletion on the hub waits for finalizers
  Slowest clusters       members without the desired content; the member whose copy has waited longest comes first.
                         BEHIND: such copies / all copies there. OLDEST: the object that has waited longest
  Oldest drift           copies that differ from the desired content and stay so: paused on the member, only reported,
                         not created again, contested, or changed by the cluster
  Most contested fields  paths that another field manager keeps changing, with that manager and the number of copies

All namespaces are included unless you name one. Policies and bundles of kinds that you may not list are left out, with
a warning.`,
		SuggestFor: []string{"top", "issues", "errors"},
		Example: `  hansectl problems

  # In one namespace, and more of it
  hansectl problems -n monitoring --limit 50

  # Clusters that are behind, for a script
  hansectl problems -o json | jq -r '.slowestClusters[].cluster'`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := out.check(cmd); err != nil {
				return err
			}
			if limit < 1 {
				return usageError(cmd, fmt.Errorf("--limit %d: want at least 1", limit))
			}
			return h.problems(cmd.Context(), &w, out, limit)
		},
	}
	out.addTo(cmd)
	w.addTo(cmd.Flags())
	cmd.Flags().IntVar(&limit, "limit", limit, "Maximum number of lines of each part.")
	return cmd
}

func (h *hub) problems(ctx context.Context, w *window, out output, limit int) error {
	c, err := h.reader(w)
	if err != nil {
		return err
	}
	var members hubv1.MemberClusterList
	err = h.unlessForbidden(c.List(ctx, &members), "regions and states of clusters are missing")
	switch {
	case meta.IsNoMatchError(err):
		return errNoHub
	case err != nil:
		return fmt.Errorf("listing MemberClusters: %w", err)
	}
	if _, err := h.warnOfSilence(ctx, c); err != nil {
		return err
	}
	found, namespace := view.NewGatherer(members.Items), *h.flags.Namespace
	kinds := placedKinds{}
	if err := h.eachPolicy(ctx, c, namespace, kinds, found.AddPolicy); err != nil {
		return err
	}
	if err := h.eachBundle(ctx, c, namespace, found.AddBundle); err != nil {
		return err
	}
	visit := func(b hubv1.BindingObject) {
		found.Add(b)
		kinds.addBinding(b)
	}
	if namespace != "" {
		err = eachBindingIn(ctx, c, namespace, visit)
	} else {
		err = eachBinding(ctx, c, visit)
	}
	if err != nil {
		return err
	}
	if err := h.eachDeleting(ctx, c, kinds, namespace, found.AddDeleting); err != nil {
		return err
	}
	return out.print(h.streams.Out, found.Worst(limit))
}

// eachPolicy reads the conditions of all policies in a namespace. If the namespace is empty, it reads all policies,
// including the cluster-scoped ones. It adds the kinds that placements select to kinds. If the user may not list a kind
// of policies, it prints a warning and skips the kind.
func (h *hub) eachPolicy(ctx context.Context, c client.Client, namespace string, kinds placedKinds, visit func(of string, conditions []metav1.Condition)) error {
	lists := []client.ObjectList{&hubv1.PlacementList{}, &hubv1.OverridePolicyList{}}
	if namespace == "" {
		lists = append(lists, &hubv1.ClusterPlacementList{}, &hubv1.ClusterOverridePolicyList{})
	}
	for _, list := range lists {
		if err := h.unlessForbidden(c.List(ctx, list, client.InNamespace(namespace)), "not all policies are considered"); err != nil {
			return fmt.Errorf("listing policies: %w", err)
		}
		err := meta.EachListItem(list, func(o runtime.Object) error {
			gvk, err := c.GroupVersionKindFor(o)
			if err != nil {
				return fmt.Errorf("reading a policy: %w", err)
			}
			switch p := o.(type) {
			case hubv1.PlacementObject:
				kinds.addSelectors(p)
				visit(gvk.Kind+" "+nameOf(p), p.PlacementStatus().Conditions)
			case hubv1.OverridePolicyObject:
				visit(gvk.Kind+" "+nameOf(p), p.OverrideStatus().Conditions)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachBundle reads the bundles in a namespace. If the namespace is empty, it reads all bundles, including
// ClusterBundles and operators. If the user may not list a kind, it prints a warning and skips the kind.
func (h *hub) eachBundle(ctx context.Context, c client.Client, namespace string, visit func(hubv1.BundleObject)) error {
	kinds := []client.ObjectList{&hubv1.BundleList{}}
	if namespace == "" {
		kinds = append(kinds, &hubv1.ClusterBundleList{}, &hubv1.FederatedOperatorList{})
	}
	for _, list := range kinds {
		if err := h.unlessForbidden(c.List(ctx, list, client.InNamespace(namespace)), "not all bundles are considered"); err != nil {
			return fmt.Errorf("listing bundles: %w", err)
		}
		err := meta.EachListItem(list, func(o runtime.Object) error {
			visit(o.(hubv1.BundleObject))
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// nameOf returns NAMESPACE/NAME, or NAME for a cluster-scoped object.
func nameOf(o metav1.Object) string {
	return strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
}
