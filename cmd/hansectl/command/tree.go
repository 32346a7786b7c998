package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/hub/views"
	"github.com/hanse-dev/hanse/view"
	"github.com/hanse-dev/hanse/view/wire"
)

// tree has the arguments of one run of the command tree.
type tree struct {
	hub      *hub
	window   window
	out      output
	clusters []string
	limit    int
}

func newTree(h *hub) *cobra.Command {
	t := &tree{hub: h}
	cmd := &cobra.Command{
		Use:   "tree (PLACEMENT | KIND NAME | KIND/NAME)",
		Short: "Show the objects of a placement, bundle or operator, their clusters, and the objects that controllers made for them there",
		Long: `Show the objects that follow a placement, the clusters that hold them, and the objects that controllers made for them
on the clusters, by ownerReferences, down to pods. For a Bundle, ClusterBundle or FederatedOperator, its objects are
shown.

PLACEMENT is the name of a Placement of the namespace. KIND is placement, clusterplacement, bundle, clusterbundle or
federatedoperator. On members, the command shows the workloads whose kinds the member grants to the hub (chart value
listWorkloads, or hansectl join --list-workloads), with only their names and their health. For cluster-scoped objects it
shows no workloads. If you may not get an object, a line below it says so.`,
		Example: `  # The objects of a Placement, their copies and their pods
  hansectl tree metrics -n monitoring

  # Of a ClusterPlacement, on one cluster
  hansectl tree clusterplacement/fleet-default --cluster cn-sha-1

  # Of a Bundle
  hansectl tree bundle web -n shop`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return arguments("PLACEMENT")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := t.out.check(cmd); err != nil {
				return err
			}
			if t.limit < 1 {
				return usageError(cmd, errors.New("--limit is at least 1"))
			}
			return t.run(cmd.Context(), strings.Join(args, "/"))
		},
	}
	t.out.addTo(cmd)
	t.window.addTo(cmd.Flags())
	cmd.Flags().StringSliceVar(&t.clusters, "cluster", nil, "Show only this cluster. Can be repeated.")
	cmd.Flags().IntVar(&t.limit, "limit", 50, "Maximum number of objects to show.")
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		return h.completeOwn(cmd, args, typed, "placement", "clusterplacement", "bundle", "clusterbundle", "federatedoperator")
	}
	_ = cmd.RegisterFlagCompletionFunc("cluster", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return h.completeClusters(cmd, nil, typed)
	})
	return cmd
}

func (t *tree) run(ctx context.Context, name string) error {
	c, err := t.hub.reader(&t.window)
	if err != nil {
		return err
	}
	shown, namespace, err := t.read(ctx, c, name)
	if err != nil {
		return err
	}
	viewer, err := t.window.open(ctx, t.hub, c)
	if err != nil {
		fmt.Fprintf(t.hub.streams.ErrOut, "warning: objects on the members are not shown: %v\n", err)
	} else {
		shown.Notes = t.grow(ctx, viewer, namespace, shown)
	}
	return t.out.print(t.hub.streams.Out, shown)
}

// read returns the tree of a placement or bundle, without the children on members. It also returns the namespace of the
// placement or bundle.
func (t *tree) read(ctx context.Context, c client.Client, text string) (shown view.Tree, namespace string, err error) {
	if kind, name, named := strings.Cut(text, "/"); named {
		b, err := t.hub.findBundle(ctx, c, kind, name)
		if err != nil {
			return shown, "", err
		}
		if b != nil {
			shown, err = t.ofBundle(ctx, c, b)
			return shown, b.GetNamespace(), err
		}
	}
	placement, err := t.find(ctx, c, text)
	if err != nil {
		return shown, "", err
	}
	bindings, err := following(ctx, c, placement)
	if err != nil {
		return shown, "", err
	}
	if err := existing(ctx, c, t.clusters, bindings); err != nil {
		return shown, "", err
	}
	root := view.PlacementName{Kind: placementKind(placement), Namespace: placement.GetNamespace(), Name: placement.GetName()}
	return view.TreeOf(root, bindings, t.clusters, t.limit), placement.GetNamespace(), nil
}

func (t *tree) ofBundle(ctx context.Context, c client.Client, b hubv1.BundleObject) (view.Tree, error) {
	bindings, err := bundled(ctx, c, hubv1.ReferenceTo(b))
	if err != nil {
		return view.Tree{}, err
	}
	if err := existing(ctx, c, t.clusters, bindings); err != nil {
		return view.Tree{}, err
	}
	if unstored := view.Unstored(b); unstored != "" {
		t.hub.warn("warning: " + unstored + "\n")
	}
	of := hubv1.OfBundle(b)
	root := view.PlacementName{Kind: of.Kind, Namespace: of.Namespace, Name: of.Name}
	return view.TreeOfBundle(root, bindings, t.hub.unplacedOf(ctx, c, b, bindings), t.clusters, t.limit), nil
}

// find reads the placement that the argument names: NAME, placement/NAME or clusterplacement/NAME.
func (t *tree) find(ctx context.Context, c client.Client, text string) (hubv1.PlacementObject, error) {
	kind, name, named := strings.Cut(text, "/")
	if !named {
		kind, name = "placement", text
	}
	p := emptyPlacement(kind)
	if p == nil {
		return nil, fmt.Errorf("%q is no kind of placement or bundle: want placement, clusterplacement, bundle, clusterbundle or federatedoperator", kind)
	}
	return p, t.hub.readPlacement(ctx, c, p, name)
}

func placementKind(p hubv1.PlacementObject) string {
	if p.GetNamespace() == "" {
		return "ClusterPlacement"
	}
	return "Placement"
}

// following returns the bindings of the objects that follow a placement.
func following(ctx context.Context, c client.Client, p hubv1.PlacementObject) ([]hubv1.BindingObject, error) {
	var out []hubv1.BindingObject
	keep := func(b hubv1.BindingObject) {
		if ref := b.BindingSpec().PlacementRef; ref != nil && ref.Kind == placementKind(p) && ref.UID == p.GetUID() {
			out = append(out, b)
		}
	}
	if p.GetNamespace() == "" {
		err := eachBinding(ctx, c, func(b hubv1.BindingObject) { keep(b.DeepCopyObject().(hubv1.BindingObject)) })
		return out, err
	}
	var list hubv1.ResourceBindingList
	if err := c.List(ctx, &list, client.InNamespace(p.GetNamespace())); err != nil {
		return nil, fmt.Errorf("listing ResourceBindings in namespace %s: %w", p.GetNamespace(), err)
	}
	for i := range list.Items {
		keep(&list.Items[i])
	}
	return out, nil
}

// askedTogether is the number of objects in one request to the hub. The hub accepts more.
const askedTogether = 25

// grow reads the children of the copies from the members, and adds them to the tree. If a member does not answer, only
// its branches are missing, and a note has the reason.
func (t *tree) grow(ctx context.Context, viewer *views.Client, namespace string, shown view.Tree) (notes []string) {
	for _, cluster := range shown.Clusters() {
		for objects := range slices.Chunk(shown.On(cluster), askedTogether) {
			var answer wire.ChildrenAnswer
			if err := viewer.Ask(ctx, cluster, wire.Children, namespace, wire.ChildrenRequest{Objects: objects}, &answer); err != nil {
				notes = append(notes, fmt.Sprintf("%s: %v", cluster, err))
				break
			}
			shown.Grow(cluster, answer.Objects)
			for _, n := range answer.Notes {
				if n = cluster + ": " + n; !slices.Contains(notes, n) {
					notes = append(notes, n)
				}
			}
		}
	}
	return notes
}
