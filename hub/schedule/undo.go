package schedule

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	hubv1 "github.com/hanse-dev/hanse/api/v1alpha1"
	"github.com/hanse-dev/hanse/bundles/crd"
	"github.com/hanse-dev/hanse/hub/store/revisions"
	"github.com/hanse-dev/hanse/member/health"
	"github.com/hanse-dev/hanse/placement/decide"
	"github.com/hanse-dev/hanse/placement/rollout"
)

// maxUndoLength is the maximum length, in characters, of the text that tells why an undo is blocked. It leaves room for
// the other text in BindingRollout.Message.
const maxUndoLength = 450

// undoBlocked returns why clusters cannot return to an earlier revision: a part of it is stored no more, or, for a
// CustomResourceDefinition, clusters store objects at a version that the revision lacks. The text is empty if they can
// return, or if no undo is requested.
func (s *Scheduler) undoBlocked(ctx context.Context, in decide.Input) string {
	earlier := requestedUndo(in)
	switch {
	case earlier == nil:
		return ""
	case s.opts.Rollouts.Revisions.Lost(earlier.Template) || s.opts.Rollouts.Revisions.Lost(earlier.Policies):
		return fmt.Sprintf("cannot return to revision %d, whose Secret is gone: see hansectl rollout history", earlier.Number)
	case !decide.NoRollback(in.Object.ID):
		return ""
	}
	report, err := s.checkUndo(ctx, in, earlier)
	if err != nil {
		return fmt.Sprintf("cannot compare revision %d with the versions that clusters store: %v", earlier.Number, err)
	}
	if text := crd.UndoMessage(maxUndoLength, "run hansectl rollout undo with --acknowledge VERSION", report); text != "" {
		return fmt.Sprintf("%s: revision %d: %s", hubv1.ReasonUndoBlocked, earlier.Number, text)
	}
	return ""
}

// checkUndo compares an earlier revision of a CustomResourceDefinition with the versions in which the API servers of
// clusters store its objects. Only versions of the stored revisions and of the hub's object count.
func (s *Scheduler) checkUndo(ctx context.Context, in decide.Input, earlier *hubv1.ObjectRevision) (crd.Report, error) {
	template, err := s.opts.Rollouts.Revisions.Template(ctx, earlier.Template)
	if err != nil {
		return crd.Report{}, err
	}
	stored, err := health.StoredVersions(in.Binding.BindingStatus().Clusters)
	if err != nil {
		return crd.Report{}, err
	}
	after, err := crd.Definition(template)
	if err != nil {
		return crd.Report{}, err
	}
	known, err := revisions.Definitions(ctx, s.opts.Rollouts.Revisions, in.Spec())
	if err != nil {
		return crd.Report{}, err
	}
	newest, err := crd.Definition(in.Object.Template)
	if err != nil {
		return crd.Report{}, err
	}
	return crd.Check(ctx, crd.Input{
		After: after, StoredVersions: stored, Earlier: append(known, newest), Acknowledged: acknowledgedVersions(in.Object.Template),
	})
}

// acknowledgedVersions returns the changes that the annotation RolloutUndoAcknowledgeAnnotation of a
// CustomResourceDefinition permits: the removal of versions at which clusters store objects.
func acknowledgedVersions(o *unstructured.Unstructured) []hubv1.AcknowledgedChange {
	var out []hubv1.AcknowledgedChange
	for version := range strings.SplitSeq(o.GetAnnotations()[hubv1.RolloutUndoAcknowledgeAnnotation], ",") {
		if version = strings.TrimSpace(version); version != "" {
			out = append(out, crd.RemovedVersion(o.GetName(), version))
		}
	}
	return out
}

// requestedUndo returns the revision to which a user wants to return. It returns nil if no undo is requested, or if the
// rollout has already returned to it.
func requestedUndo(in decide.Input) *hubv1.ObjectRevision {
	if in.Object.Template == nil || in.Binding == nil || in.Spec().Rollout == nil {
		return nil
	}
	value := in.Object.Template.GetAnnotations()[hubv1.RolloutUndoAnnotation]
	number, ok := rollout.UndoNumber(value)
	if !ok || value == in.Spec().Rollout.Undone {
		return nil
	}
	return in.Spec().Revision(number)
}
