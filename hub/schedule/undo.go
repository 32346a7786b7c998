package schedule

import (
	"context"
	"fmt"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/crdupgrade"
	"github.com/hanse-dev/hanse/decide"
	"github.com/hanse-dev/hanse/member/health"
	"github.com/hanse-dev/hanse/rollout"
)

// mostUndo is the maximum length, in characters, of the text that tells why an undo is blocked. It leaves room for the
// other text in BindingRollout.Message.
const mostUndo = 450

// undoBlocked returns why clusters cannot return to an earlier revision of a CustomResourceDefinition: they store
// objects at a version that this revision lacks. The text is empty if they can return, or if no undo is requested.
func (s *Scheduler) undoBlocked(ctx context.Context, in decide.Input) string {
	earlier := requestedUndo(in)
	if earlier == nil {
		return ""
	}
	report, err := s.checkUndo(ctx, in, earlier)
	if err != nil {
		return fmt.Sprintf("cannot compare revision %d with the versions that clusters store: %v", earlier.Number, err)
	}
	if text := crdupgrade.UndoMessage(mostUndo, report); text != "" {
		return fmt.Sprintf("%s: revision %d: %s", hubv1.ReasonUndoBlocked, earlier.Number, text)
	}
	return ""
}

// checkUndo compares an earlier revision of a CustomResourceDefinition with the versions in which the API servers of
// clusters store its objects.
func (s *Scheduler) checkUndo(ctx context.Context, in decide.Input, earlier *hubv1.ObjectRevision) (crdupgrade.Report, error) {
	template, err := s.Revisions.Template(ctx, earlier.Template)
	if err != nil {
		return crdupgrade.Report{}, err
	}
	stored, err := health.StoredVersions(in.Binding.BindingStatus().Clusters)
	if err != nil {
		return crdupgrade.Report{}, err
	}
	after, err := crdupgrade.Definition(template)
	if err != nil {
		return crdupgrade.Report{}, err
	}
	return crdupgrade.Check(ctx, crdupgrade.Input{After: after, StoredVersions: stored})
}

// requestedUndo returns the revision of a CustomResourceDefinition to which a user wants to return. It returns nil if
// no undo is requested, or if the rollout has already returned to it.
func requestedUndo(in decide.Input) *hubv1.ObjectRevision {
	if !decide.NeverBack(in.Object.ID) || in.Object.Template == nil || in.Binding == nil || in.Spec().Rollout == nil {
		return nil
	}
	value := in.Object.Template.GetAnnotations()[hubv1.RolloutUndoAnnotation]
	number, ok := rollout.UndoNumber(value)
	if !ok || value == in.Spec().Rollout.Undone {
		return nil
	}
	return in.Spec().Revision(number)
}
