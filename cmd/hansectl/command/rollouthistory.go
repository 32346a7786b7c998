package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/placement/rollout"
	"github.com/hanse-dev/hanse/view"
)

func newRolloutHistory(h *hub) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "history (KIND NAME | KIND/NAME)",
		Short: "Show the revisions of an object that the hub stores",
		Long: `Show the revisions of an object that the hub stores. For an object of a bundle, these are the revisions of the bundle.

  GENERATION  generation of the object on the hub with this revision
  PASSED      yes if the revision passed on all clusters
  WHERE       clusters that hold the revision
  NOTE        the revision failed, or a later revision replaced it before it had passed,
              or its template is that of an earlier revision`,
		Example: `  hansectl rollout history deployment web -n shop`,
		Args:    objectArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.check(cmd); err != nil {
				return err
			}
			kind, name := kindAndName(args)
			return h.rolloutHistory(cmd.Context(), out, kind, name)
		},
		ValidArgsFunction: h.completeObjects,
	}
	out.addTo(cmd)
	return cmd
}

func (h *hub) rolloutHistory(ctx context.Context, out output, kind, name string) error {
	c, _, err := h.connect()
	if err != nil {
		return err
	}
	id, version, err := h.identify(ctx, c, kind, name)
	if err != nil {
		return err
	}
	set, err := h.readSet(ctx, c, id)
	if err != nil {
		return err
	}
	if set != nil && set.in.Spec != nil {
		return out.print(h.streams.Out, view.SetHistoryOf(set.in))
	}
	found, err := h.readStaged(ctx, c, id, version)
	if err != nil {
		return err
	}
	return out.print(h.streams.Out, view.RolloutHistoryOf(id, found.binding))
}

func newRolloutUndo(h *hub) *cobra.Command {
	var to int64
	var acknowledged []string
	cmd := &cobra.Command{
		Use:   "undo (KIND NAME | KIND/NAME) [--to-revision N] [--acknowledge VERSION]",
		Short: "Return the clusters to an earlier revision of an object",
		Long: `Return the clusters to an earlier revision of an object, wave by wave: set the annotation hanse.dev/rollout-undo on
the object. Without --to-revision, it is the last revision that passed on all clusters, except the current one.

The object on the hub keeps its newest spec. The next change of the object ends the undo, and so does the removal of the
annotation. A change of its policies alone goes to the clusters with the template of the earlier revision.

For a bundle or operator, and for each of its objects, the annotation is set on the bundle: the whole bundle returns.
Clusters keep its CustomResourceDefinitions, which only go forward.

A CustomResourceDefinition does not return to a revision that lacks a version at which clusters store objects, unless
--acknowledge names this version. A cluster that still stores objects at this version then keeps its definition, and its
row has the reason StoredVersionKept.`,
		Example: `  # Return to the last revision that passed on all clusters
  hansectl rollout undo deployment web -n shop

  # Return a whole operator
  hansectl rollout undo federatedoperator gears

  # Return to a revision of hansectl rollout history
  hansectl rollout undo deployment web -n shop --to-revision 5

  # Return although clusters store objects at v2, which the earlier definition lacks
  hansectl rollout undo crd gears.example.com --acknowledge v2`,
		Args: objectArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("to-revision") && to < 1 {
				return usageError(cmd, fmt.Errorf("--to-revision %d: want 1 or more", to))
			}
			kind, name := kindAndName(args)
			return h.rolloutUndo(cmd.Context(), kind, name, to, acknowledged)
		},
		ValidArgsFunction: h.completeObjects,
	}
	cmd.Flags().Int64Var(&to, "to-revision", 0, "The revision to return to; by default the last revision, other than the current one, that passed on all clusters.")
	cmd.Flags().StringSliceVar(&acknowledged, "acknowledge", nil, "The versions of a CustomResourceDefinition that the earlier revision may lack, although clusters store objects at them.")
	return cmd
}

func (h *hub) rolloutUndo(ctx context.Context, kind, name string, to int64, acknowledged []string) error {
	c, _, err := h.connect()
	if err != nil {
		return err
	}
	id, version, err := h.identify(ctx, c, kind, name)
	if err != nil {
		return err
	}
	if len(acknowledged) > 0 && !decide.NoRollback(id) {
		return fmt.Errorf("%s is no CustomResourceDefinition: leave out --acknowledge", id)
	}
	set, err := h.readSet(ctx, c, id)
	if err != nil && !errors.Is(err, errNoSet) {
		return err
	}
	if set != nil {
		return h.undoSet(ctx, c, set, to, acknowledged)
	}
	if err := h.undoneInBundle(ctx, c, id); err != nil {
		return err
	}
	found, err := h.readStaged(ctx, c, id, version)
	if err != nil {
		return err
	}
	if found.object == nil {
		return fmt.Errorf("%s is deleted: there is nothing to return to", id)
	}
	spec := found.binding.BindingSpec()
	revision, err := rollout.UndoTo(spec, to)
	if err != nil {
		return fmt.Errorf("returning %s to an earlier revision: %w", id, err)
	}
	if stored := view.StoredVersions(found.binding); stored != "" {
		h.warn(fmt.Sprintf("warning: the hub refuses a revision that lacks a version at which clusters store objects (UndoBlocked), unless --acknowledge names the version: %s\n", stored))
	}
	return h.undo(ctx, c, id, found.object, spec, revision, acknowledged)
}

// undo sets the annotation of an object, or of a bundle, with which its clusters return to a revision.
func (h *hub) undo(ctx context.Context, c client.Client, id hubv1.ObjectIdentity, object client.Object, spec *hubv1.BindingSpec, revision int64, acknowledged []string) error {
	named := strings.ToLower(id.Kind) + "/" + id.Name
	if rollout.Undone(spec, revision) {
		printLine(h.streams.Out, named, "the clusters get revision %d already", revision)
		return nil
	}
	if err := annotate(ctx, c, object, rollout.Undo(revision, time.Now(), acknowledged...)); err != nil {
		return fmt.Errorf("returning %s to revision %d: %w", id, revision, err)
	}
	how := "wave by wave, without soak and approvals: the revision has passed on all clusters before"
	if !spec.Revision(revision).Passed {
		how = "wave by wave"
	}
	printLine(h.streams.Out, named, "returns to revision %d, %s; hansectl rollout status %s --watch shows the progress", revision, how, named)
	if newest := spec.Rollout.Newest; newest != revision {
		printLine(h.streams.Out, named, "%s", rollout.StillHas(newest))
	}
	return nil
}

// undoSet returns the clusters to an earlier revision of a bundle.
func (h *hub) undoSet(ctx context.Context, c client.Client, s *setOf, to int64, acknowledged []string) error {
	switch {
	case len(acknowledged) > 0:
		return fmt.Errorf("%s: clusters keep the CustomResourceDefinitions of a bundle, which only go forward: leave out --acknowledge", s.of)
	case s.in.Spec == nil:
		return fmt.Errorf("%s: you may not read its SetRollout, which has the revisions", s.of)
	case s.in.Bundle == nil || s.in.Bundle.GetDeletionTimestamp() != nil:
		return fmt.Errorf("%s is deleted: there is nothing to return to", s.of)
	}
	spec := decide.BindingOfSet(s.in.Spec)
	revision, err := rollout.UndoTo(spec, to)
	if err != nil {
		return fmt.Errorf("returning %s to an earlier revision: %w", s.of, err)
	}
	if s.asked != "" {
		h.warn(fmt.Sprintf("warning: %s changes with %s: the whole bundle returns\n", s.asked, s.of))
	}
	return h.undo(ctx, c, s.of.Identity(), s.in.Bundle, spec, revision, nil)
}

// undoneInBundle returns an error if the object is a bundle or belongs to a bundle that is not rolled out as a whole,
// because the hub then stores no revisions of the bundle. For an operator, the error also says which versions of its
// kinds the earlier chart must define.
func (h *hub) undoneInBundle(ctx context.Context, c client.Client, id hubv1.ObjectIdentity) error {
	binding, err := readBinding(ctx, c, id)
	if err != nil {
		return err
	}
	of := hubv1.BundleReference{Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}
	switch {
	case binding != nil && binding.BindingSpec().ObjectRef.Bundle != nil:
		of = *binding.BindingSpec().ObjectRef.Bundle
		err = notOnHub(id, binding, "return to the earlier content of %s, and the change goes through the waves")
	case !isBundle(id):
		return nil
	default:
		err = fmt.Errorf("%s has no revisions: return to its earlier content, and the change goes through the waves", id)
	}
	if of.Kind != hubv1.FederatedOperatorKind {
		return err
	}
	var stored []string
	if err := h.unlessForbidden(eachClusterBinding(ctx, c, func(b hubv1.BindingObject) {
		if in := b.BindingSpec().ObjectRef.Bundle; in != nil && *in == of {
			if versions := view.StoredVersions(b); versions != "" {
				stored = append(stored, versions)
			}
		}
	}), "versions at which clusters store objects are not shown"); err != nil {
		return err
	}
	if len(stored) == 0 {
		return err
	}
	return fmt.Errorf("%w; the hub refuses a chart whose definitions lack a version at which clusters store objects (UndoBlocked): %s", err, strings.Join(stored, "; "))
}
