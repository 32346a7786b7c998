package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/view"
)

func newKinds(h *hub) *cobra.Command {
	var out output
	var w window
	var problems bool
	cmd := &cobra.Command{
		Use:   "kinds [KIND]",
		Short: "List the kinds in use, the versions that clusters serve, and clusters that lack a kind",
		Long: `List the kinds that have a binding or that a placement selects by name, except those of Hanse. They are read from the
hub; no request is sent to a member.

  OBJECTS   objects with a binding, those of bundles included
  COPIES    copies that clusters shall hold
  SERVED    wanted clusters that serve the kind / wanted clusters; "unknown" ones have not reported it yet
  VERSIONS  versions that clusters serve, with the number of clusters if not all serve the same
  HUB       version at which the hub serves the kind; "not on the hub"; "unknown" if its API server could not tell
  PROBLEMS  wanted clusters that lack the kind or a version that they need; a kind that the hub lacks or cannot read;
            a kind whose status is not understood: its copies never become Healthy

A cluster is wanted if a binding has it as a target, or if a decision leaves it out because it does not serve the kind
or the version. Before the first object of a kind has a binding, a cluster is wanted if a placement selects it by name
or label. Objects of the hub need the hub's version, and objects of bundles the versions in their manifests.

With KIND, the command shows one row per cluster. OBJECTS counts the objects that the cluster shall hold, and APPLIED and
HEALTHY count their copies in these states. PROBLEMS counts the copies that are not applied or are Degraded. All
namespaces are included unless you name one. With -n, kinds without a namespace are left out.

The exit code is 0. With --problems it is 1 if a kind has a problem.`,
		Example: `  hansectl kinds

  # One kind, with a row per cluster
  hansectl kinds prometheuses.monitoring.coreos.com

  # Fail if a cluster lacks a kind
  hansectl kinds --problems`,
		SuggestFor: []string{"api-resources", "crds", "apis", "versions"},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return arguments("KIND")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.check(cmd); err != nil {
				return err
			}
			if problems && len(args) > 0 {
				return usageError(cmd, errors.New("--problems and KIND exclude each other"))
			}
			if len(args) > 0 {
				return h.kind(cmd.Context(), &w, out, args[0])
			}
			return h.allKinds(cmd.Context(), &w, out, problems)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return h.completeKinds(typed), cobra.ShellCompDirectiveNoFileComp
		},
	}
	out.addTo(cmd)
	w.addTo(cmd.Flags())
	cmd.Flags().BoolVar(&problems, "problems", false, "Show only kinds with a problem. The exit code is 1 if a kind has a problem.")
	return cmd
}

func (h *hub) allKinds(ctx context.Context, w *window, out output, problems bool) error {
	found, _, err := h.inventory(ctx, w)
	if err != nil {
		return err
	}
	kinds := found.Kinds(*h.flags.Namespace)
	if !problems {
		return out.print(h.streams.Out, kinds)
	}
	kinds = kinds.WithProblems()
	if err := out.print(h.streams.Out, kinds); err != nil {
		return err
	}
	switch n := len(kinds.Kinds); n {
	case 0:
		return nil
	case 1:
		return errors.New("1 kind has a problem")
	default:
		return fmt.Errorf("%d kinds have a problem", n)
	}
}

func (h *hub) kind(ctx context.Context, w *window, out output, name string) error {
	found, silence, err := h.inventory(ctx, w)
	if err != nil {
		return err
	}
	kind, err := found.Find(name)
	if errors.Is(err, view.ErrNoSuchKind) {
		kind, err = h.kindOnHub(name)
	}
	if err != nil {
		return fmt.Errorf("finding the kind %q: %w", name, err)
	}
	return out.print(h.streams.Out, found.Of(kind, silence, time.Now()))
}

// kindOnHub finds a kind that the hub serves, by any name that kubectl accepts. It is needed for kinds that are not in
// use, and for short names.
func (h *hub) kindOnHub(name string) (schema.GroupKind, error) {
	mapper, err := h.flags.ToRESTMapper()
	if err != nil {
		return schema.GroupKind{}, fmt.Errorf("reading the kinds of the hub: %w", err)
	}
	mapping, err := findKind(mapper, name)
	if meta.IsNoMatchError(err) {
		return schema.GroupKind{}, fmt.Errorf("%w, and the hub does not serve it%s", view.ErrNoSuchKind, didYouMean(h.similarKinds(name)))
	}
	if err != nil {
		return schema.GroupKind{}, err
	}
	return mapping.GroupVersionKind.GroupKind(), nil
}

// inventory reads the kinds in use: the kinds that bindings have or that placements select. If the user has named a
// namespace, it reads only the bindings and placements for this namespace.
func (h *hub) inventory(ctx context.Context, w *window) (*view.Inventory, *view.Silence, error) {
	c, err := h.reader(w)
	if err != nil {
		return nil, nil, err
	}
	if err := h.narrow(ctx, c); err != nil {
		return nil, nil, err
	}
	var members hubv1.MemberClusterList
	err = h.unlessForbidden(c.List(ctx, &members), "kinds that clusters serve are missing")
	switch {
	case meta.IsNoMatchError(err):
		return nil, nil, errNoHub
	case err != nil:
		return nil, nil, fmt.Errorf("listing MemberClusters: %w", err)
	}
	silence, err := h.warnOfSilence(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	served, err := h.servedKinds()
	if err != nil {
		return nil, nil, err
	}
	found, namespace := view.NewInventory(members.Items, served), *h.flags.Namespace
	if namespace == "" {
		err = errors.Join(h.eachPlacement(ctx, c, found.AddPlacement), eachBinding(ctx, c, found.AddBinding))
	} else {
		err = errors.Join(h.eachPlacementFor(ctx, c, namespace, found.AddPlacement), eachBindingIn(ctx, c, namespace, found.AddBinding))
	}
	return found, silence, err
}

// eachPlacement reads all placements.
func (h *hub) eachPlacement(ctx context.Context, c client.Client, visit func(hubv1.PlacementObject)) error {
	var everywhere hubv1.ClusterPlacementList
	if err := h.unlessForbidden(c.List(ctx, &everywhere), "ClusterPlacements are not considered"); err != nil {
		return fmt.Errorf("listing ClusterPlacements: %w", err)
	}
	for i := range everywhere.Items {
		visit(&everywhere.Items[i])
	}
	var placements hubv1.PlacementList
	if err := h.unlessForbidden(c.List(ctx, &placements), "Placements are not considered"); err != nil {
		return fmt.Errorf("listing Placements: %w", err)
	}
	for i := range placements.Items {
		visit(&placements.Items[i])
	}
	return nil
}

// eachPlacementFor reads the placements that may select objects of a namespace.
func (h *hub) eachPlacementFor(ctx context.Context, c client.Client, namespace string, visit func(hubv1.PlacementObject)) error {
	around, err := h.surroundings(ctx, c, namespace)
	if err != nil {
		return err
	}
	somewhere := hubv1.SelectableObject{ObjectIdentity: hubv1.ObjectIdentity{Namespace: namespace}, NamespaceLabels: around.NamespaceLabels}
	for _, p := range around.Placements {
		if in, err := hubv1.InScope(p.GetNamespace(), p.SelectedNamespaces(), somewhere); in && err == nil {
			visit(p)
		}
	}
	return nil
}

// servedKinds reads the kinds that the hub's API server serves, without using a cache.
func (h *hub) servedKinds() (view.HubKinds, error) {
	out := view.HubKinds{Kinds: map[schema.GroupKind]view.HubKind{}, Unread: map[string]bool{}}
	config, err := h.flags.ToRESTConfig()
	if err != nil {
		return out, fmt.Errorf("finding the hub: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return out, fmt.Errorf("connecting to the hub %s: %w", config.Host, err)
	}
	lists, err := disco.ServerPreferredResources()
	unread, partly := discovery.GroupDiscoveryFailedErrorGroups(err)
	switch {
	case apierrors.IsForbidden(err):
		out.All = true
		return out, h.unlessForbidden(err, "the kinds of the hub are missing")
	case err != nil && !partly:
		return out, fmt.Errorf("reading the kinds of the hub: %w", err)
	}
	for gv := range unread {
		out.Unread[gv.Group] = true
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "get") {
				continue
			}
			out.Kinds[schema.GroupKind{Group: gv.Group, Kind: r.Kind}] = view.HubKind{Version: gv.Version, Plural: r.Name, Namespaced: r.Namespaced}
		}
	}
	return out, nil
}
