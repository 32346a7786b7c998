package command

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/rollout"
	"github.com/hanse-dev/hanse/view"
)

func newRollout(h *hub) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rollout",
		Short: "See and steer how a change reaches the clusters in waves",
		Long: `See and steer how a change reaches the clusters in the waves of a placement's spec.rollout.

The subcommands of placements set annotations: hanse.dev/rollout-pause, -approve, -skip and -promote. undo sets
hanse.dev/rollout-undo on the object. You need the verb of the same name on placements.

PLACEMENT is the name of a Placement, or placement/NAME or clusterplacement/NAME. An approval, a skip and a promotion
apply only to the changes in progress: if no object is changing, the command fails. An unknown wave, cluster or
revision is an error that names the existing ones.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Args: usage(knownCommand),
	}
	cmd.AddCommand(newRolloutStatus(h), newRolloutHistory(h), newRolloutUndo(h), newRolloutPause(h), newRolloutResume(h),
		newRolloutApprove(h), newRolloutSkip(h), newRolloutPromote(h))
	return cmd
}

// staged has an object whose changes are rolled out in waves, and the binding of the object.
type staged struct {
	id      hubv1.ObjectIdentity
	object  *unstructured.Unstructured // nil if the object is deleted
	binding hubv1.BindingObject
}

// readStaged reads an object that has a rollout. If the object has no rollout, it returns an error with the reason.
func (h *hub) readStaged(ctx context.Context, c client.Client, id hubv1.ObjectIdentity, version string) (staged, error) {
	s := staged{id: id}
	var err error
	if s.binding, err = readBinding(ctx, c, id); err != nil {
		return s, err
	}
	if s.object, err = h.template(ctx, c, id, version, s.binding); err != nil {
		return s, err
	}
	switch {
	case s.object == nil && s.binding == nil:
		return s, h.noObject(ctx, c, id)
	case s.binding == nil:
		return s, fmt.Errorf("%s goes to no cluster: see hansectl status", id)
	case s.binding.BindingSpec().Rollout != nil:
		return s, nil
	}
	followed, err := h.followed(ctx, c, s.binding.BindingSpec().PlacementRef)
	switch {
	case err != nil:
		return s, err
	case followed == nil:
		return s, fmt.Errorf("%s has no rollout", id)
	case followed.PlacementSpec().Rollout == nil:
		return s, fmt.Errorf("%s has no rollout: %s %s sets no spec.rollout, so a change goes to all clusters at once", id, placementKind(followed), nameOf(followed))
	}
	return s, fmt.Errorf("%s has no revision yet: until the hub has stored one, a change goes to all clusters at once", id)
}

// followed returns the placement that an object follows. It returns nil if the object follows no placement, or if the
// user may not read the placement.
func (h *hub) followed(ctx context.Context, c client.Client, ref *hubv1.PlacementReference) (placementObject, error) {
	if ref == nil {
		return nil, nil
	}
	p := emptyPlacement(ref.Kind)
	err := c.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, p)
	if err == nil {
		return p, nil
	}
	if err := h.unlessForbidden(client.IgnoreNotFound(err), "the placement is not considered"); err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", ref.Kind, ref.Name, err)
	}
	return nil, nil
}

// placementArguments requires one argument for a placement, and then one argument for each of the names.
func placementArguments(names ...string) cobra.PositionalArgs {
	return usage(func(cmd *cobra.Command, args []string) error {
		if err := arguments(append([]string{"PLACEMENT"}, names...)...)(cmd, args); err != nil {
			return err
		}
		if kind, _ := placementArgument(args[0]); emptyPlacement(kind) == nil {
			return fmt.Errorf("PLACEMENT %q: want NAME, placement/NAME or clusterplacement/NAME", args[0])
		}
		return nil
	})
}

// placementArgument splits an argument into the kind and the name of a placement. Without a kind, it returns the kind
// Placement.
func placementArgument(arg string) (kind, name string) {
	if kind, name, found := strings.Cut(arg, "/"); found {
		return kind, name
	}
	return "placement", arg
}

// followers returns the bindings of the objects that follow a placement.
func followers(ctx context.Context, c client.Client, p placementObject) ([]hubv1.BindingObject, error) {
	var out []hubv1.BindingObject
	visit := func(b hubv1.BindingObject) {
		if rollout.Follows(b, p) {
			out = append(out, b)
		}
	}
	if p.GetNamespace() != "" {
		err := eachBindingIn(ctx, c, p.GetNamespace(), visit)
		return out, err
	}
	err := eachBinding(ctx, c, visit)
	return out, err
}

// printWaves prints which waves wait for the clusters now, because they are cordoned or suspended. placements are the
// placements to examine.
func (h *hub) printWaves(ctx context.Context, c client.Client, placements []hubv1.PlacementObject, clusters []*hubv1.MemberCluster) error {
	placements = slices.DeleteFunc(placements, func(p hubv1.PlacementObject) bool { return p.PlacementSpec().Rollout == nil })
	if len(placements) == 0 || len(clusters) == 0 {
		return nil
	}
	var moving []hubv1.BindingObject
	err := eachBinding(ctx, c, func(b hubv1.BindingObject) {
		if r := b.BindingSpec().Rollout; r != nil && r.Wave != "" {
			moving = append(moving, b)
		}
	})
	if err := h.unlessForbidden(err, "waves that wait for the cluster are not shown"); err != nil {
		return err
	}
	for _, p := range placements {
		named := "clusterplacement/" + p.GetName()
		if p.GetNamespace() != "" {
			named = fmt.Sprintf("placement/%s -n %s", p.GetName(), p.GetNamespace())
		}
		for _, cluster := range clusters {
			if text := view.WaveThatWaits(p, moving, cluster); text != "" {
				fmt.Fprintf(h.streams.Out, "  %s: %s\n", named, text)
			}
		}
	}
	return nil
}

// annotate changes the annotations of an object. After a write conflict it reads the object and tries again.
func annotate(ctx context.Context, c client.Client, object client.Object, change func(map[string]string)) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		before, ok := object.DeepCopyObject().(client.Object)
		if !ok {
			return fmt.Errorf("copying a %T", object)
		}
		annotations := map[string]string{}
		maps.Copy(annotations, object.GetAnnotations())
		change(annotations)
		object.SetAnnotations(annotations)
		return c.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
}
