package command

import (
	"context"
	"errors"
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
	var checks bool
	limit := 10
	cmd := &cobra.Command{
		Use:   "problems",
		Short: "Show clusters, policies and objects with a problem, and check the hub with --checks",
		Long: `Show the problems that need a user. They are read from the hub; no request is sent to a member:

  What needs you         one line for each cause, the most urgent first, as on the first page of the console: objects
                         that are degraded, not applied or not scheduled (WHY is what the worst copy says); clusters
                         that are not Ready (their copies count in their line), or whose credentials, topology or
                         unclaimed copies need a user; rollouts that failed, were rolled back or wait; policies that
                         are not accepted; removals that wait for hansectl confirm; kinds whose status is not
                         understood; and objects whose deletion on the hub waits for finalizers. Objects that are
                         still progressing are left out
  Slowest clusters       members without the desired content; the member whose copy has waited longest comes first.
                         BEHIND: such copies / all copies there. OLDEST: the object that has waited longest
  Oldest drift           copies that differ from the desired content and stay so: paused on the member, only reported,
                         not created again, contested, or changed by the cluster
  Most contested fields  paths that another field manager keeps changing, with that manager and the number of copies

All namespaces are included unless you name one, or may read only that of your context. Policies and bundles of kinds that you may not list are left out, with
a warning.

With --checks, the last part has the results of these checks, and how to mend each fault:

  hub API             the API server answers and serves every kind of Hanse
  hub                 a hub runs: a process renews the Lease hanse-hub
  version, clock      the versions of hub and hansectl are at most one minor version apart, and the clock of the hub
                      is at most 5 s ahead of this machine's
  webhook             the webhook for policies answers a dry run of a placement, and its certificate is valid
  author webhook      the webhook that records the authors of policies has a valid certificate, and records you
  member NAME         the member is Ready, no condition needs a user, and its credentials do not expire within 7 days
  placements          the hub accepts all placements
  grants              members serve the kinds of the objects that are placed there, and let the hub write them
  revisions           only if copies wait for a revision of a rollout that is stored no more

The checks are of the whole hub, also with --namespace. A check for which you lack rights is Unknown.

The exit code is 0 even if there are problems. With --checks, it is 1 if a check failed.`,
		SuggestFor: []string{"top", "issues", "errors", "check", "doctor", "verify", "diagnose"},
		Example: `  hansectl problems

  # In one namespace, and more of it
  hansectl problems -n monitoring --limit 50

  # Also check the hub, its webhooks, and the grants of members
  hansectl problems --checks

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
			if checks {
				return h.problemsAndChecks(cmd.Context(), &w, out, limit)
			}
			found, err := h.problems(cmd.Context(), &w, limit)
			if err != nil {
				return err
			}
			return out.print(h.streams.Out, found)
		},
	}
	out.addTo(cmd)
	w.addTo(cmd.Flags())
	cmd.Flags().BoolVar(&checks, "checks", false, "Also check the API server, the hub, its webhooks and its members.")
	cmd.Flags().IntVar(&limit, "limit", limit, "Maximum number of lines of each part, except the checks.")
	return cmd
}

// problemsAndChecks prints the problems and the checks. If the problems cannot be read, it prints only the checks.
func (h *hub) problemsAndChecks(ctx context.Context, w *window, out output, limit int) error {
	done, err := h.runChecks(ctx)
	if err != nil {
		return err
	}
	var failure error
	if n := done.Failed(); n > 0 {
		failure = fmt.Errorf("%s failed", counted(n, "check"))
	}
	if len(done.Checks) == 1 { // the API server does not serve the kinds of Hanse
		return errors.Join(out.print(h.streams.Out, done), failure)
	}
	found, err := h.problems(ctx, w, limit)
	if err != nil {
		return errors.Join(out.print(h.streams.Out, done), err, failure)
	}
	found.Checks = done.Checks
	return errors.Join(out.print(h.streams.Out, found), failure)
}

func (h *hub) problems(ctx context.Context, w *window, limit int) (view.Problems, error) {
	c, err := h.reader(w)
	if err != nil {
		return view.Problems{}, err
	}
	if err := h.narrow(ctx, c); err != nil {
		return view.Problems{}, err
	}
	var members hubv1.MemberClusterList
	err = h.unlessForbidden(c.List(ctx, &members), "regions and states of clusters are missing")
	switch {
	case meta.IsNoMatchError(err):
		return view.Problems{}, errNoHub
	case err != nil:
		return view.Problems{}, fmt.Errorf("listing MemberClusters: %w", err)
	}
	if _, err := h.warnOfSilence(ctx, c); err != nil {
		return view.Problems{}, err
	}
	found, namespace := view.NewGatherer(members.Items), *h.flags.Namespace
	kinds := placedKinds{}
	if err := h.eachPolicy(ctx, c, namespace, kinds, found.AddPolicy); err != nil {
		return view.Problems{}, err
	}
	if err := h.eachBundle(ctx, c, namespace, found.AddBundle); err != nil {
		return view.Problems{}, err
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
		return view.Problems{}, err
	}
	if err := h.eachDeleting(ctx, c, kinds, namespace, found.AddDeleting); err != nil {
		return view.Problems{}, err
	}
	return found.Worst(limit), nil
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
